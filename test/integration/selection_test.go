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
	if err := rollouts.admin.List(s.ctx, &kept, client.InNamespace(s.namespace)); err != nil {
		t.Fatal(err)
	}
	for _, part := range kept.Items {
		if strings.Contains(part.Spec.Data, base64.StdEncoding.EncodeToString([]byte("hunter2"))) {
			t.Errorf("the ResourceSnapshot %s has the Secret", part.Name)
		}
	}
	secret := &corev1.Secret{}
	if err := rollouts.admin.Get(s.ctx, s.key(first), secret); err != nil {
		t.Fatal(err)
	}
	if secret.Type != shipper.ResourcesSecretType || secret.Immutable == nil || !*secret.Immutable {
		t.Errorf("the Secret with the content has the type %s", secret.Type)
	}

	s.create(s.configMap("b", "1"))
	second := s.holds(append(before, "ConfigMap ns/b")...)
	if diff := cmp.Diff([]string{first, second}, s.recorded()); diff != "" {
		t.Errorf("the Releases (-want +got):\n%s", diff)
	}
}

func (s *selectionFixture) key(digest string) client.ObjectKey {
	return client.ObjectKey{Namespace: s.namespace, Name: shipper.ResourceSnapshotName(digest, 1)}
}

func TestManyObjectsAtOnceMakeOneRelease(t *testing.T) {
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
			all.Go(func() error { return rollouts.admin.Create(s.ctx, o) })
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
		t.Errorf("the Releases (-want +got):\n%s", diff)
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
	err := rollouts.admin.Get(s.ctx, client.ObjectKey{Namespace: s.namespace, Name: "inside"}, &corev1.ConfigMap{})
	if !apierrors.IsNotFound(err) {
		t.Errorf("it has an effect here: %v", err)
	}
}

func TestContentThatIsTooLargeLeavesTheRelease(t *testing.T) {
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
		t.Errorf("the Releases (-want +got):\n%s", diff)
	}
	for i := range 9 {
		if err := rollouts.admin.Delete(s.ctx, s.configMap(fmt.Sprintf("large-%d", i), "")); err != nil {
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
	s.soon("the refresh", func() error {
		app := s.app()
		app.Annotations[shipper.AppResourcesRefreshAnnotation] = "1"
		return rollouts.admin.Update(s.ctx, app)
	})
	s.holds("ConfigMap ns/a")
	s.reports("")
}

func TestContentBelongsToReleasesAndGoesWithoutThem(t *testing.T) {
	s := beginSelection(t, both...)
	cluster := &shipper.Cluster{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}}
	cluster.Spec.Region, cluster.Spec.APIMaster = s.namespace, "https://127.0.0.1:1"
	s.create(cluster)
	s.create(s.configMap("a", "1"))
	s.selects(shipper.ResourceSelector{Kind: "ConfigMap"})
	completes := func(want ...string) string {
		t.Helper()
		digest := s.holds(want...)
		s.soon("the Release to complete, and to be the owner", func() error {
			rel, kept := s.newest(), &shipper.ResourceSnapshot{}
			if !shipper.ConditionTrue(rel.Status.Conditions, shipper.ReleaseComplete) {
				return fmt.Errorf("its conditions are %v", rel.Status.Conditions)
			}
			if err := rollouts.admin.Get(s.ctx, s.key(digest), kept); err != nil {
				return err
			}
			if len(kept.OwnerReferences) != 1 || kept.OwnerReferences[0].UID != rel.UID {
				return fmt.Errorf("it belongs to %v", kept.OwnerReferences)
			}
			return nil
		})
		return digest
	}
	first := completes("ConfigMap ns/a")
	s.create(s.configMap("b", "1"))
	second := completes("ConfigMap ns/a", "ConfigMap ns/b")
	s.create(s.configMap("c", "1"))
	third := completes("ConfigMap ns/a", "ConfigMap ns/b", "ConfigMap ns/c")
	s.soon("the end of content whose Release is beyond the history", func() error {
		err := rollouts.admin.Get(s.ctx, s.key(first), &shipper.ResourceSnapshot{})
		if !apierrors.IsNotFound(err) {
			return errors.Join(errors.New("it is there"), err)
		}
		return nil
	})
	for _, digest := range []string{second, third} {
		if err := rollouts.admin.Get(s.ctx, s.key(digest), &shipper.ResourceSnapshot{}); err != nil {
			t.Errorf("content that is used is gone: %v", err)
		}
	}
	// A user deletes what the newest Release has.
	kept := &shipper.ResourceSnapshot{}
	if err := rollouts.admin.Get(s.ctx, s.key(third), kept); err != nil {
		t.Fatal(err)
	}
	if err := rollouts.admin.Delete(s.ctx, kept); err != nil {
		t.Fatal(err)
	}
	s.soon("another copy, of the same Release", func() error {
		again := &shipper.ResourceSnapshot{}
		if err := rollouts.admin.Get(s.ctx, s.key(third), again); err != nil {
			return err
		}
		if again.UID == kept.UID || len(again.OwnerReferences) != 1 || again.OwnerReferences[0].UID != s.newest().UID {
			return fmt.Errorf("it is %s, and belongs to %v", again.UID, again.OwnerReferences)
		}
		return nil
	})
	if taken := s.app().Status.Resources; taken == nil || taken.Digest != third || taken.Objects != 3 || taken.SelectedBy != "root" {
		t.Errorf("the status says %+v", taken)
	}
}

// TestAUserWithoutTheRightHasNothingTaken has neither a webhook nor a policy: the reconciler asks before it reads, and before it places
// otherwise what was taken with the rights of another user.
func TestAUserWithoutTheRightHasNothingTaken(t *testing.T) {
	s := beginSelection(t, both...)
	s.create(s.configMap("a", "1"))
	s.selects(shipper.ResourceSelector{Kind: "ConfigMap"})
	first := s.holds("ConfigMap ns/a")
	s.soon("an edit", func() error {
		app := s.app()
		app.Annotations[shipper.AppSelectedByAnnotation] = `{"username":"ben"}`
		app.Spec.Template.Apply = &shipper.Apply{TakeOver: shipper.TakeOverAlways}
		return rollouts.admin.Update(s.ctx, app)
	})
	if message := s.reports(shipper.SelectionNotAllowed); !strings.Contains(message,
		`user "ben", who chose the resources of Application `+s.namespace+"/web, may not list all configmaps in namespace "+s.namespace) {
		t.Errorf("the condition says %q", message)
	}
	s.create(s.configMap("b", "1"))
	s.soon("an edit", func() error {
		app := s.app()
		delete(app.Annotations, shipper.AppSelectedByAnnotation)
		app.Annotations[shipper.AppResourcesRefreshAnnotation] = "1"
		return rollouts.admin.Update(s.ctx, app)
	})
	s.soon("the condition", func() error {
		c := shipper.FindCondition(s.app().Status.Conditions, shipper.ApplicationResourcesSelected)
		if !strings.Contains(c.Message, "names no user whose rights the content could be taken with") {
			return errors.New(c.Message)
		}
		return nil
	})
	if diff := cmp.Diff([]string{first}, s.recorded()); diff != "" {
		t.Errorf("the Releases (-want +got):\n%s", diff)
	}
}
