// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// TestContentIsFollowedBlockedAndRolledBack places ConfigMaps of the namespace and an Envelope: scenarios 9, 12, 13 and 22.
func TestContentIsFollowedBlockedAndRolledBack(t *testing.T) {
	onTwoClusters(t, func(s *fixture) {
		s.LetsSelect()
		s.Keeps("a", "1")
		s.Must("creating an Envelope", world.Management.Create(s.Ctx, &shipper.Envelope{
			ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "guard"},
			Spec: shipper.EnvelopeSpec{Manifests: []shipper.Manifest{
				{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "inside"}, "data": map[string]any{"k": "in"}},
			}},
		}))
		manifest := s.Placing(s.regions, shipper.ResourceSelector{Group: shipper.GroupName, Kind: "Envelope", Name: "guard"})
		s.applies(manifest.DeepCopy())
		first := s.Release(0)
		s.Completes(first)
		s.placed("a=1 inside=in")

		s.Keeps("b", "1")
		second := s.Release(1)
		s.Completes(second)
		s.placed("a=1 b=1 inside=in")

		block := s.blocks()
		s.Keeps("a", "2")
		s.isSelected("False "+shipper.RolloutsBlocked, block)
		s.Release(1) // and no other
		s.placed("a=1 b=1 inside=in")
		s.lifts(block)
		third := s.Release(2)
		s.Completes(third)
		s.placed("a=2 b=1 inside=in")

		s.Must("deleting what is selected", world.Management.Delete(s.Ctx, s.Content("b", "")))
		fourth := s.Release(3)
		s.Completes(fourth)
		s.placed("a=2 inside=in")
		s.Edits(func(app *shipper.Application) { app.Spec.RollbackTo = &shipper.RollbackTo{Release: second} })
		fifth := s.Release(4)
		s.Completes(fifth)
		s.placed("a=1 b=1 inside=in")
		if digests := [2]string{s.digest(second), s.digest(fifth)}; digests[0] != digests[1] {
			t.Errorf("the digests differ: %v", digests)
		}
		s.hasSpecOf(manifest)

		s.Must("deleting the application", world.Management.Delete(s.Ctx, &shipper.Application{
			ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: s.App},
		}))
		s.placed("")
	})
}

// TestContentOfAUserWhoLostTheRightIsNotTaken is scenario 11.
func TestContentOfAUserWhoLostTheRightIsNotTaken(t *testing.T) {
	onTwoClusters(t, func(s *fixture) {
		s.LetsSelect()
		s.Keeps("a", "1")
		mayList := rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"list", "get"}}
		none, _ := s.as("ben")
		err := none.User.Create(s.Ctx, s.Placing(s.regions))
		s.forbidden("selecting what a user may not read", err, "configmaps")
		ann, _ := s.as("ann", mayList)
		ann.applies(s.Placing(s.regions))
		s.Completes(s.Release(0))
		s.placed("a=1")

		role := &rbacv1.Role{}
		s.Must("reading the role", world.Management.Get(s.Ctx, s.Key("ann"), role))
		role.Rules = role.Rules[:1] // Applications, and no ConfigMaps
		s.Must("taking the right", world.Management.Update(s.Ctx, role))
		s.Eventually("ann lists ConfigMaps", "refused", func() (string, error) {
			if err := ann.User.List(s.Ctx, &corev1.ConfigMapList{}, client.InNamespace(s.Namespace)); apierrors.IsForbidden(err) {
				return "refused", nil
			}
			return "admitted", nil
		})
		s.Keeps("a", "2")
		s.isSelected("False "+shipper.SelectionNotAllowed, "ann")
		s.placed("a=1")
		s.Release(0)
	})
}

// hasSpecOf requires that the template is the manifest's, as `kubectl diff` and GitOps programs compare it, and that no field of spec is
// owned by Shipper.
func (s *fixture) hasSpecOf(manifest *shipper.Application) {
	s.Helper()
	app := &shipper.Application{}
	s.Must("reading the application", world.Management.Get(s.Ctx, s.Key(s.App), app))
	if diff := cmp.Diff(manifest.Spec.Template, app.Spec.Template, cmpopts.EquateEmpty()); diff != "" {
		s.Errorf("spec.template (-manifest +stored):\n%s", diff)
	}
	for _, entry := range app.ManagedFields {
		if entry.Manager != shipper.FieldOwner && !strings.HasPrefix(entry.Manager, "shipper-") {
			continue
		}
		if entry.FieldsV1 != nil && strings.Contains(entry.FieldsV1.GetRawString(), `"f:spec"`) {
			s.Errorf("%s owns fields of spec: %s", entry.Manager, entry.FieldsV1.GetRawString())
		}
	}
}

// placed waits until the ConfigMaps a, b and inside have these values in each cluster, and checks that none of an Envelope is in the
// management cluster.
func (s *fixture) placed(want string) {
	s.Helper()
	for _, cluster := range s.clusters {
		s.Eventually("what is placed in "+cluster, want, func() (string, error) { return s.contents(world.Clusters[cluster]) })
	}
	here, err := s.contents(world.Management)
	s.Must("reading the management cluster", err)
	if strings.Contains(here, "inside") {
		s.Errorf("an Envelope's content is in the management cluster: %s", here)
	}
}

func (s *fixture) contents(in client.Client) (string, error) {
	var out []string
	for _, name := range []string{"a", "b", "inside"} {
		cm := &corev1.ConfigMap{}
		err := in.Get(s.Ctx, s.Key(name), cm)
		if client.IgnoreNotFound(err) != nil {
			return "", err
		}
		if err == nil {
			out = append(out, name+"="+cm.Data["k"])
		}
	}
	return strings.Join(out, " "), nil
}

// isSelected waits for status and reason of ResourcesSelected and a word of its message.
func (s *fixture) isSelected(want, word string) {
	s.Helper()
	s.Eventually("ResourcesSelected of "+s.App, want, func() (string, error) {
		app := &shipper.Application{}
		err := world.Management.Get(s.Ctx, s.Key(s.App), app)
		c := shipper.FindCondition(app.Status.Conditions, shipper.ApplicationResourcesSelected)
		if c == nil {
			return "absent", err
		}
		if !strings.Contains(c.Message, word) {
			return c.Message, err
		}
		return fmt.Sprint(c.Status, " ", c.Reason), err
	})
}

// digest is that of the content that a Release places.
func (s *fixture) digest(release string) string {
	s.Helper()
	rel, err := s.Get(release)
	s.Must("reading "+release, err)
	if rel.Spec.Environment.ResourcesDigest == "" {
		s.Fatalf("%s has no digest", release)
	}
	return rel.Spec.Environment.ResourcesDigest
}
