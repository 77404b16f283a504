// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

var both = []string{shipper.ResourceSelectorRole, shipper.ValuesKeeper}

func (s *selectionFixture) ownNamespace() shipper.ResourceSelector {
	return shipper.ResourceSelector{Kind: "Namespace", Name: s.namespace}
}

func TestANamespaceIsTakenWithItsContentAndSecretsApart(t *testing.T) {
	s := beginSelection(t, both...)
	s.create(s.configMap("a", "1"))
	s.create(&corev1.Secret{ObjectMeta: s.named("s"), StringData: map[string]string{"password": "hunter2"}})
	s.selects(s.ownNamespace())
	before := []string{"Namespace ns", "ConfigMap ns/a", "Secret ns/s"} // and not the rights that begin grants
	first := s.holds(before...)
	if message := s.reports(""); !strings.HasPrefix(message, "3 objects: 1 Namespace, ") {
		t.Errorf("the condition says %q", message)
	}

	var kept shipper.ResourceSnapshotList
	if err := selections.client.List(s.ctx, &kept, client.InNamespace(s.namespace)); err != nil {
		t.Fatal(err)
	}
	for _, part := range kept.Items {
		if strings.Contains(part.Spec.Data, base64.StdEncoding.EncodeToString([]byte("hunter2"))) {
			t.Errorf("the ResourceSnapshot %s has the Secret", part.Name)
		}
	}
	secret := &corev1.Secret{}
	if err := selections.client.Get(s.ctx, s.key(first), secret); err != nil {
		t.Fatal(err)
	}
	if secret.Type != shipper.ResourcesSecretType || secret.Immutable == nil || !*secret.Immutable {
		t.Errorf("the Secret with the content has the type %s", secret.Type)
	}

	s.create(s.configMap("b", "1"))
	second := s.holds(append(before, "ConfigMap ns/b")...)
	if diff := cmp.Diff([]string{first, second}, s.recorded()); diff != "" {
		t.Errorf("the pins (-want +got):\n%s", diff)
	}
}

func (s *selectionFixture) key(digest string) client.ObjectKey {
	return client.ObjectKey{Namespace: s.namespace, Name: shipper.ResourceSnapshotName(digest, 1)}
}

func TestManyObjectsAtOnceMakeOnePin(t *testing.T) {
	s := beginSelectionAlone(t, both...)
	s.create(s.configMap("c00", "1"))
	s.selects(shipper.ResourceSelector{Kind: "ConfigMap"})
	first := s.holds("ConfigMap ns/c00")
	want := []string{"ConfigMap ns/c00"}
	release := selections.clock.hold()
	defer release()
	const half = 25
	for n := range 2 {
		var all errgroup.Group
		all.SetLimit(4)
		for i := range half {
			o := s.configMap(fmt.Sprintf("c%02d", n*half+i+1), "1")
			want = append(want, "ConfigMap ns/"+o.Name)
			all.Go(func() error { return selections.client.Create(s.ctx, o) })
		}
		if err := all.Wait(); err != nil {
			t.Fatal(err)
		}
		// The watch asks once for each object. Whatever else asks is a pass, which has to leave the first half alone.
		s.soon("passes", func() error { return selections.clock.wasAsked((n+1)*half + 3) })
	}
	release()
	second := s.holds(want...)
	if diff := cmp.Diff([]string{first, second}, s.recorded()); diff != "" {
		t.Errorf("the pins (-want +got):\n%s", diff)
	}
}

func TestTheContentOfAnEnvelopeIsTaken(t *testing.T) {
	s := beginSelection(t, both...)
	s.create(&shipper.Envelope{ObjectMeta: s.named("guard"), Spec: shipper.EnvelopeSpec{Manifests: []shipper.Manifest{
		{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "inside"}},
		{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": map[string]any{"name": "guard"}},
	}}})
	s.selects(shipper.ResourceSelector{Group: shipper.GroupName, Kind: "Envelope", Name: "guard"})
	s.holds("ConfigMap ns/inside", "ClusterRole guard")
	err := selections.client.Get(s.ctx, client.ObjectKey{Namespace: s.namespace, Name: "inside"}, &corev1.ConfigMap{})
	if !apierrors.IsNotFound(err) {
		t.Errorf("it has an effect here: %v", err)
	}
}

func TestContentThatIsTooLargeLeavesThePin(t *testing.T) {
	s := beginSelectionAlone(t, both...)
	s.create(s.configMap("a", "1"))
	s.selects(shipper.ResourceSelector{Kind: "ConfigMap"})
	first := s.holds("ConfigMap ns/a")
	release := selections.clock.hold() // the first eight are not too large
	defer release()
	for i := range 9 {
		s.create(s.configMap(fmt.Sprintf("large-%d", i), strings.Repeat("x", 1_000_000)))
	}
	release()
	if message := s.reports(shipper.SelectionTooLarge); !strings.Contains(message, "ConfigMap "+s.namespace+"/large-") {
		t.Errorf("the condition says %q", message)
	}
	if diff := cmp.Diff([]string{first}, s.recorded()); diff != "" {
		t.Errorf("the pins (-want +got):\n%s", diff)
	}
	for i := range 9 {
		if err := selections.client.Delete(s.ctx, s.configMap(fmt.Sprintf("large-%d", i), "")); err != nil {
			t.Fatal(err)
		}
	}
	s.reports("")
}

func TestAKindThatMayNotBeReadIsNamedWithTheCommandThatGrantsIt(t *testing.T) {
	s := beginSelection(t)
	s.create(s.configMap("a", "1"))
	s.selects(shipper.ResourceSelector{Kind: "ConfigMap", LabelSelector: &metav1.LabelSelector{}})
	message := s.reports(shipper.SelectionNotReadable)
	want := "Shipper may not list configmaps in namespace " + s.namespace + "; an administrator may let it: " +
		shipper.BindCommand(shipper.ResourceSelectorRole, s.namespace)
	if diff := cmp.Diff(want, message); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	s.bind(shipper.ResourceSelectorRole)
	app := s.app()
	app.Annotations = map[string]string{shipper.AppResourcesRefreshAnnotation: "1"}
	s.soon("the refresh", func() error { return selections.client.Update(s.ctx, app) })
	s.holds("ConfigMap ns/a")
	s.reports("")
}

func TestContentBelongsToReleasesAndGoesWithoutThem(t *testing.T) {
	s := beginSelection(t, both...)
	s.create(s.configMap("a", "1"))
	s.selects(shipper.ResourceSelector{Kind: "ConfigMap"})
	first := s.holds("ConfigMap ns/a")
	rel := &shipper.Release{ObjectMeta: s.named("web-0"), Spec: shipper.ReleaseSpec{Environment: s.app().Spec.Template}}
	rel.Labels = map[string]string{shipper.AppLabel: "web"}
	rel.Annotations = map[string]string{shipper.ReleaseGenerationAnnotation: "0"}
	s.create(rel)
	s.soon("the owner", func() error {
		kept := &shipper.ResourceSnapshot{}
		if err := selections.client.Get(s.ctx, s.key(first), kept); err != nil {
			return err
		}
		if len(kept.OwnerReferences) != 1 || kept.OwnerReferences[0].UID != rel.UID {
			return fmt.Errorf("it belongs to %v", kept.OwnerReferences)
		}
		return nil
	})
	// The next content never gets a Release, since a third one follows.
	s.create(s.configMap("b", "1"))
	second := s.holds("ConfigMap ns/a", "ConfigMap ns/b")
	s.create(s.configMap("c", "1"))
	third := s.holds("ConfigMap ns/a", "ConfigMap ns/b", "ConfigMap ns/c")
	gone := func(digest string) func() error {
		return func() error {
			err := selections.client.Get(s.ctx, s.key(digest), &shipper.ResourceSnapshot{})
			if !apierrors.IsNotFound(err) {
				return errors.Join(errors.New("it is there"), err)
			}
			return nil
		}
	}
	s.soon("the end of content without a Release", gone(second))
	for _, digest := range []string{first, third} {
		if err := selections.client.Get(s.ctx, s.key(digest), &shipper.ResourceSnapshot{}); err != nil {
			t.Errorf("content that is used is gone: %v", err)
		}
	}
	if err := selections.client.Delete(s.ctx, rel); err != nil {
		t.Fatal(err)
	}
	s.soon("the end of content of the last Release", gone(first))
	// A user deletes what is pinned.
	kept := &shipper.ResourceSnapshot{}
	if err := selections.client.Get(s.ctx, s.key(third), kept); err != nil {
		t.Fatal(err)
	}
	if err := selections.client.Delete(s.ctx, kept); err != nil {
		t.Fatal(err)
	}
	s.soon("another copy", func() error {
		again := &shipper.ResourceSnapshot{}
		if err := selections.client.Get(s.ctx, s.key(third), again); err != nil {
			return err
		}
		if again.UID == kept.UID {
			return errors.New("it is the deleted one")
		}
		return nil
	})
}
