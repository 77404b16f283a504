// SPDX-License-Identifier: Apache-2.0

package kill

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/env"
)

// TestContentIsPlacedWhenKilledAfterEveryWrite adds an object to what is selected, goes back to the content before, and deletes the
// Application: scenario 9, killed.
func TestContentIsPlacedWhenKilledAfterEveryWrite(t *testing.T) {
	undisturbed := map[string]string{}
	if env.IsNightly() { // each part says itself how it ends, but for what the statuses say
		t.Run("undisturbed", func(t *testing.T) { places(t, spared, undisturbed) })
		if t.Failed() {
			return
		}
	}
	t.Run("the answer lost", func(t *testing.T) { places(t, unanswered, undisturbed) })
	if env.IsNightly() {
		t.Run("the answer read", func(t *testing.T) { places(t, answered, undisturbed) })
	}
}

// places runs the parts in one namespace, as live does.
func places(t *testing.T, how death, ends map[string]string) {
	s := begin(t)
	s.LetsSelect()
	s.Keeps("a", "1")
	s.Must("creating the application", world.Management.Create(s.Ctx, s.Placing(slices.Sorted(maps.Values(clusters)))))
	first := s.Release(0)
	s.Completes(first)
	s.rests()
	s.bystanders = s.othersVersions()

	s.chapter("grown", how, 0, ends, func() {
		s.Keeps("b", "1")
		s.Completes(s.Release(1))
	})
	s.has("a b", 2)
	s.chapter("back", how, 0, ends, func() {
		s.Edits(func(app *shipper.Application) { app.Spec.RollbackTo = &shipper.RollbackTo{Release: first} })
		s.Completes(s.Release(2))
	})
	s.has("a", 2)
	s.chapter("deleted", how, 0, ends, func() {
		s.Must("deleting the application", world.Management.Delete(s.Ctx, &shipper.Application{
			ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: s.App},
		}))
		s.Eventually("the application", "gone", func() (string, error) {
			err := world.Management.Get(s.Ctx, s.Key(s.App), &shipper.Application{})
			if apierrors.IsNotFound(err) {
				return "gone", nil
			}
			return "there", err
		})
		s.has("", 0)
	})
}

// has waits until the anchor of each cluster lists these ConfigMaps, none of them pending, they are all that is there, and so many
// ResourceSnapshots are kept.
func (s *fixture) has(names string, snapshots int) {
	s.Helper()
	for cluster, c := range world.Clusters {
		s.Eventually("the content in "+cluster, names+", listed: "+names, func() (string, error) {
			list := &corev1.ConfigMapList{}
			err := c.List(s.Ctx, list, client.InNamespace(s.Namespace), client.MatchingLabels{shipper.AppLabel: s.App})
			var there []string
			for _, cm := range list.Items {
				there = append(there, cm.Name)
			}
			listed, failure := s.listed(c)
			if err == nil {
				err = failure
			}
			return strings.Join(there, " ") + ", listed: " + listed, err
		})
	}
	s.Eventually("the ResourceSnapshots", fmt.Sprint(snapshots), func() (string, error) {
		list := &shipper.ResourceSnapshotList{}
		err := world.Management.List(s.Ctx, list, client.InNamespace(s.Namespace))
		return fmt.Sprint(len(list.Items)), err
	})
}

// listed is what the anchor of a cluster lists.
func (s *fixture) listed(c client.Client) (string, error) {
	anchor := &corev1.ConfigMap{}
	err := c.Get(s.Ctx, client.ObjectKey{
		Namespace: shipper.SystemNamespace, Name: shipper.PlacedAnchorName(s.Namespace, s.App),
	}, anchor)
	if apierrors.IsNotFound(err) {
		return "", nil
	}
	var entries []struct {
		Name    string
		Pending bool
	}
	if err == nil {
		err = json.Unmarshal([]byte(anchor.Data["Inventory"]), &entries)
	}
	var out []string
	for _, e := range entries {
		if e.Pending {
			e.Name += " (pending)"
		}
		out = append(out, e.Name)
	}
	return strings.Join(out, " "), err
}
