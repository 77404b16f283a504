// SPDX-License-Identifier: Apache-2.0

package state_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"shipper.dev/shipper/apis/rules/block"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/admission/ask"
	"shipper.dev/shipper/webhook/state"
)

func TestBearing(t *testing.T) {
	f := ask.Know(t, ask.Grant(), ask.Block("global/dns"), ask.Block("default/demo"), ask.Block("other/x")).State
	for namespace, want := range map[string]string{
		"default": "default/demo,global/dns", "other": "global/dns,other/x", "quiet": "global/dns", "global": "global/dns",
	} {
		blocks, err := f.BlocksFor(namespace)
		if err != nil {
			t.Fatal(err)
		}
		if got := block.FormatOverrides(block.Names(blocks)); got != want || len(blocks) != 2-boolean(len(want) < 11) {
			t.Errorf("on namespace %s bear %s (%d), want %s", namespace, got, len(blocks), want)
		}
	}
	none := state.New(state.NewIndexers(), nil, "")
	if blocks, err := none.BlocksFor("default"); err != nil || len(blocks) > 0 {
		t.Errorf("where nothing is known bear %v, %v", blocks, err)
	}
}

func boolean(b bool) int {
	if b {
		return 1
	}
	return 0
}

func TestReleasesAreFound(t *testing.T) {
	app := ask.Application(func(a *shipper.Application) { a.Labels = map[string]string{"tier": "one"} })
	on := func(clusters string) func(*shipper.Release) {
		return ask.ReleaseAnnotated(shipper.ReleaseClustersAnnotation, clusters)
	}
	first := ask.Release(app, nil, on("eu-1,us-1"))
	second := ask.Release(ask.Application(ask.Version("2.0.0")), []*shipper.Release{first}, on("us-1"))
	going := ask.Release(ask.Application(ask.Version("3.0.0")), []*shipper.Release{first, second}, func(r *shipper.Release) {
		r.DeletionTimestamp = &metav1.Time{Time: ask.Now}
	})
	stale := ask.Release(ask.Application(ask.Version("4.0.0"), func(a *shipper.Application) { a.UID = "an older one" }),
		[]*shipper.Release{first, second, going}, ask.ReleaseAnnotated(shipper.ReleaseGenerationAnnotation, "9"))
	other := ask.Release(ask.Application(func(a *shipper.Application) { a.Name = "other" }), nil)
	f := ask.Know(t, ask.Grant(), app, first, second, going, stale, other).State

	rels, err := f.Releases(types.NamespacedName{Namespace: "default", Name: "super-server"})
	if err != nil || len(rels) != 4 {
		t.Errorf("Releases: got %d, %v; want 4", len(rels), err)
	}
	around, err := f.App(first)
	if err != nil || around.Newest() != second || around.Previous() != first || around.Name != app.Name {
		t.Errorf("App: got %+v, %v", around, err)
	}
	if diff := cmp.Diff([]map[string]string{app.Labels}, around.Labels); diff != "" {
		t.Errorf("labels of the application (-want +got):\n%s", diff)
	}
	if around, err = f.App(other); err != nil || around.Newest() != other || around.Previous() != nil || around.Labels != nil {
		t.Errorf("App of the only one, whose Application is not known: got %+v, %v", around, err)
	}
	for cluster, want := range map[string][]string{
		"us-1": {"default/" + second.Name, "default/" + first.Name}, "eu-1": {"default/" + first.Name}, "": {},
	} {
		got, err := f.PlacedOn(cluster)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("placed on %q (-want +got):\n%s", cluster, diff)
		}
	}
}

func TestOnlyNewestReleasesNameChecks(t *testing.T) {
	naming := func(name string, checks ...string) func(*shipper.Application) {
		return func(a *shipper.Application) {
			a.Name, a.UID = name, types.UID(name)
			for _, check := range checks {
				steps := a.Spec.Template.Strategy.Steps
				steps[0].Checks = append(steps[0].Checks, shipper.StepCheck{Check: check})
			}
		}
	}
	everywhere := func(a *shipper.Application) {
		naming("strategy")(a)
		a.Spec.Template.Strategy.Checks = []shipper.StepCheck{{Check: "errors"}, {Check: "shipper-checks/errors"}}
	}
	before := ask.Release(ask.Application(naming("web", "errors", "smoke")), nil)
	now := ask.Release(ask.Application(naming("web", "errors", "errors")), []*shipper.Release{before})
	other := ask.Release(ask.Application(everywhere), nil)
	shared := ask.Release(ask.Application(naming("api", "shipper-checks/errors")), nil, func(r *shipper.Release) { r.Namespace = "shop" })
	f := ask.Know(t, ask.Grant(), before, now, other, shared).State
	for key, want := range map[types.NamespacedName][]string{
		{Namespace: "default", Name: "errors"}:        {"default/strategy", "default/web"},
		{Namespace: "default", Name: "smoke"}:         nil,
		{Namespace: "shop", Name: "errors"}:           nil,
		{Namespace: "shipper-checks", Name: "errors"}: {"default/strategy", "shop/api"},
	} {
		newest, err := f.NamingCheck(key)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, rel := range newest {
			got = append(got, rel.Namespace+"/"+rel.Labels[shipper.AppLabel])
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("Applications that name %s (-want +got):\n%s", key, diff)
		}
	}
}

func TestClustersAndNamespaces(t *testing.T) {
	eu := &shipper.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "eu-1"}}
	there := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "there"}}
	f := ask.Know(t, ask.Grant(), eu, there, ask.GoingNamespace("going")).State
	if diff := cmp.Diff([]shipper.Cluster{*eu}, f.Clusters()); diff != "" {
		t.Errorf("clusters (-want +got):\n%s", diff)
	}
	for namespace, want := range map[string]bool{"going": true, "there": false, "unknown": false} {
		if got := f.NamespaceTerminating(namespace); got != want {
			t.Errorf("namespace %s is going: %v, want %v", namespace, got, want)
		}
	}
}

// live is an API server that has one object of every kind, named there, and that fails for the name broken.
type live struct {
	client.Reader
	asked int
}

func (l *live) Get(_ context.Context, key client.ObjectKey, o client.Object, _ ...client.GetOption) error {
	l.asked++
	switch key.Name {
	case "there":
		o.SetNamespace(key.Namespace)
		o.SetName(key.Name)
		return nil
	case "broken":
		return errors.New("API server is away")
	}
	return apierrors.NewNotFound(shipper.Resource("things"), key.Name)
}

func TestObjectsThatAreNotCachedAreReadLive(t *testing.T) {
	server := &live{}
	known := state.NewIndexers()
	if err := known.Blocks.Add(ask.Block("global/dns")); err != nil {
		t.Fatal(err)
	}
	f := state.New(known, server, "global")
	has := func(name string) (bool, error) {
		b, err := f.Block(t.Context(), types.NamespacedName{Namespace: "global", Name: name})
		return b != nil, err
	}
	for name, want := range map[string]bool{"dns": true, "there": true, "gone": false} {
		if got, err := has(name); got != want || err != nil {
			t.Errorf("block %s: got %v, %v; want %v", name, got, err, want)
		}
	}
	if server.asked != 2 {
		t.Errorf("asked %d times, want 2: cached objects are not read live", server.asked)
	}
	if _, err := has("broken"); err == nil {
		t.Error("an API server that does not answer was taken for a block that does not exist")
	}
	there := types.NamespacedName{Namespace: "default", Name: "there"}
	if app, err := f.Application(t.Context(), there); err != nil || app == nil || app.Kind != "Application" {
		t.Errorf("application: got %v, %v", app, err)
	}
	if rel, err := f.Release(t.Context(), there); err != nil || rel == nil {
		t.Errorf("release: got %v, %v", rel, err)
	}
}

func TestStrip(t *testing.T) {
	rel := ask.Release(ask.Application(), nil, ask.ReleaseAnnotated("kubectl.kubernetes.io/last-applied-configuration", "{}"))
	want := ask.Release(ask.Application(), nil)
	rel.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubectl"}}
	rel.Status = shipper.ReleaseStatus{
		ObservedGeneration: 7, AchievedStep: &shipper.AchievedStep{Step: 1}, Conditions: []shipper.Condition{
			{Type: shipper.ReleaseBlocked, Status: "True", Message: "long"},
			{Type: shipper.ReleaseComplete, Status: "True", Reason: "dropped"},
		},
	}
	want.Status = shipper.ReleaseStatus{ // the fields that show whether a rollout goes back
		AchievedStep: &shipper.AchievedStep{Step: 1},
		Conditions:   []shipper.Condition{{Type: shipper.ReleaseComplete, Status: "True"}},
	}
	got, err := state.Strip(rel)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(any(want), got); diff != "" {
		t.Errorf("release (-want +got):\n%s", diff)
	}
	resources := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4")}
	cluster, since := &shipper.Cluster{}, metav1.NewTime(ask.Now)
	read := shipper.ClusterStatus{ // the fields that placements read
		KubernetesVersion: "1.34", Nodes: new(int32(3)), Capacity: resources, Allocatable: resources,
		Properties: map[string]string{"gpus": "8"}, Conditions: []shipper.Condition{
			{Type: shipper.ClusterJoined, Status: "True", LastTransitionTime: since},
			{Type: shipper.ClusterReady, Status: "False", LastTransitionTime: since, Reason: "Unreachable", Message: "no route to host"},
		},
	}
	read.DeepCopyInto(&cluster.Status)
	cluster.Status.InService, cluster.Status.Conditions[0].Reason, cluster.Status.Conditions[0].Message = true, "dropped", "long"
	cluster.Status.Conditions = append(cluster.Status.Conditions, shipper.Condition{Type: shipper.ClusterCredentialsValid, Status: "True"})
	if got, err = state.Strip(cluster); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(any(&shipper.Cluster{Status: read}), got); diff != "" {
		t.Errorf("cluster (-want +got):\n%s", diff)
	}
	if got, err := state.Strip("a tombstone"); got != "a tombstone" || err != nil {
		t.Errorf("anything else: got %v, %v", got, err)
	}
}
