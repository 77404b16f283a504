// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/charts"
)

// publishPrunable publishes a chart whose objects beside the Deployment and the Service are there when its values say so.
func publishPrunable(t *testing.T) {
	t.Helper()
	files := maps.Clone(ownKind)
	delete(files, "crds/gizmo.yaml")
	delete(files, "templates/gizmo.yaml")
	files["Chart.yaml"] = "apiVersion: v2\nname: prunable\nversion: 0.0.1\n"
	files["templates/more.yaml"] = `{{ range .Values.plain }}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: {{ . }}}
{{ end }}{{ range .Values.keep }}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: {{ . }}, annotations: {helm.sh/resource-policy: " Keep"}}
{{ end }}{{ range .Values.claims }}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: {{ . }}}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
{{ end }}{{ range .Values.roles }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: {{ . }}}
{{ end }}`
	archive, err := charts.PackFiles("prunable", "0.0.1", files)
	if err != nil {
		t.Fatal(err)
	}
	world.charts.Publish(archive)
}

// shared are the ConfigMaps of the story's namespace in west that have no name of a Release's or of Kubernetes'.
func (s *fixture) shared(but ...string) []string {
	s.Helper()
	var list corev1.ConfigMapList
	s.must(world.clusters[west].List(s.ctx, &list, client.InNamespace(s.namespace)))
	names := []string{}
	for _, cm := range list.Items {
		if !slices.Contains(append(but, "kube-root-ca.crt"), cm.Name) {
			names = append(names, cm.Name)
		}
	}
	slices.Sort(names)
	return names
}

func TestWhatNoReleaseRendersAnyMoreGoesWithTheLastThatDid(t *testing.T) {
	t.Parallel()
	publishPrunable(t)
	s := begin(t, west)
	targets := map[string]*shipper.InstallationTarget{}
	install := func(name string, values shipper.ChartValues) {
		for before := range targets {
			s.takeOver(before, false)
		}
		targets[name] = s.install(name, "prunable", "0.0.1", values, west)
		s.installed(name)
	}
	install("web-1", shipper.ChartValues{"plain": []any{"a", "b", "c"}})
	install("web-2", shipper.ChartValues{"plain": []any{"a", "b"}})
	install("web-3", shipper.ChartValues{}) // whose templates of ConfigMaps render to nothing
	var got [][]string
	anchors := []string{"web-1-anchor", "web-2-anchor", "web-3-anchor"}
	got = append(got, s.shared(anchors...))
	for _, name := range []string{"web-2", "web-1"} { // b outlives the one that wrote it last
		s.must(s.management.Delete(s.ctx, targets[name]))
		s.gone(targets[name])
		got = append(got, s.shared(anchors...))
	}
	want := [][]string{{"a", "b", "c"}, {"a", "b", "c"}, {}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("beside the three anchors, in turn: -want +got:\n%s", diff)
	}
	s.installed("web-3")
}

func TestWhatHasNoNamespaceGoesWithTheLastThoughAnotherWroteIt(t *testing.T) {
	t.Parallel()
	publishPrunable(t)
	s := begin(t, west)
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}}
	values := shipper.ChartValues{"roles": []any{role.Name}}
	first := s.install("web-1", "prunable", "0.0.1", values, west)
	s.installed("web-1")
	s.takeOver("web-1", false)
	second := s.install("web-2", "prunable", "0.0.1", values, west)
	s.installed("web-2")
	s.takeOver("web-2", false)
	s.install("web-3", "prunable", "0.0.1", shipper.ChartValues{}, west)
	s.installed("web-3")

	s.must(s.management.Delete(s.ctx, second))
	s.gone(second)
	s.must(world.clusters[west].Get(s.ctx, client.ObjectKeyFromObject(role), role))
	s.must(s.management.Delete(s.ctx, first))
	s.gone(first)
	if err := world.clusters[west].Get(s.ctx, client.ObjectKeyFromObject(role), role); !apierrors.IsNotFound(err) {
		t.Errorf("the ClusterRole is left behind: %v, %v", err, role.Labels)
	}
}

func TestKeepsWhatIsToBeKept(t *testing.T) {
	t.Parallel()
	publishPrunable(t)
	s := begin(t, west)
	it := s.install("web-1", "prunable", "0.0.1", shipper.ChartValues{
		"plain": []any{"goes", "later"}, "keep": []any{"settings"}, "claims": []any{"data", "adopted"},
	}, west)
	s.installed("web-1")
	claim := &corev1.PersistentVolumeClaim{}
	if s.find(west, "data", claim); claim.UID == "" || len(claim.OwnerReferences) != 0 {
		t.Errorf("the claim is not there or has owners: %+v", claim.ObjectMeta)
	}
	anchor := &corev1.ConfigMap{}
	s.find(west, "web-1-anchor", anchor)
	owned := &corev1.PersistentVolumeClaim{}
	s.find(west, "adopted", owned)
	s.owners(owned, metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: anchor.Name, UID: anchor.UID}) // as the original has it
	later := &corev1.ConfigMap{}
	s.find(west, "later", later)
	before := client.MergeFrom(later.DeepCopy())
	later.Annotations["helm.sh/resource-policy"] = "keep" // by hand
	s.must(world.clusters[west].Patch(s.ctx, later, before))
	for _, o := range []client.Object{owned, later} {
		s.soon("the anchor still owns what is kept", func() string {
			s.find(west, o.GetName(), o)
			if len(o.GetOwnerReferences()) == 0 {
				return ""
			}
			return fmt.Sprint(o.GetOwnerReferences())
		})
	}

	s.must(s.management.Delete(s.ctx, it))
	s.gone(it)
	if diff := cmp.Diff([]string{"later", "settings"}, s.shared()); diff != "" {
		t.Errorf("ConfigMaps that are left: -want +got:\n%s", diff)
	}
	now := &corev1.PersistentVolumeClaim{}
	if s.find(west, "data", now); now.UID != claim.UID || now.DeletionTimestamp != nil {
		t.Errorf("the claim did not stay: %+v", now.ObjectMeta)
	}
	s.install("web-2", "prunable", "0.0.1", shipper.ChartValues{"claims": []any{"data"}}, west)
	s.installed("web-2")
	if s.find(west, "data", now); now.UID != claim.UID || now.Labels[shipper.OwnedByLabel] != "web-2" {
		t.Errorf("the next Release does not go on with the claim: %+v", now.ObjectMeta)
	}
}

func TestLeavesWhatHasAnotherOwner(t *testing.T) {
	t.Parallel()
	publishPrunable(t)
	s := begin(t, west)
	owner := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "owner"}}
	s.must(world.clusters[west].Create(s.ctx, owner))
	it := s.install("web-1", "prunable", "0.0.1", shipper.ChartValues{"plain": []any{"lent", "goes"}}, west)
	s.installed("web-1")
	lent := &corev1.ConfigMap{}
	s.find(west, "lent", lent)
	s.owners(lent, append(lent.OwnerReferences,
		metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: owner.Name, UID: owner.UID})...)

	s.must(s.management.Delete(s.ctx, it))
	s.gone(it)
	if diff := cmp.Diff([]string{"lent", "owner"}, s.shared()); diff != "" {
		t.Errorf("ConfigMaps that are left: -want +got:\n%s", diff)
	}
	if s.find(west, "lent", lent); lent.DeletionTimestamp != nil || len(lent.OwnerReferences) != 1 {
		t.Errorf("an object with another owner did not stay with it: %+v", lent.ObjectMeta)
	}
}

// owners gives an object in west these owners.
func (s *fixture) owners(o client.Object, refs ...metav1.OwnerReference) {
	s.Helper()
	before := client.MergeFrom(o.DeepCopyObject().(client.Object))
	o.SetOwnerReferences(refs)
	s.must(world.clusters[west].Patch(s.ctx, o, before))
}
