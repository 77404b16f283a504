// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"shipper.dev/shipper/apis/rules/stamp"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/admission/ask"
	"shipper.dev/shipper/test/env"
)

// rolledOut is an Application with its first Release and that Release's targets, as the reconciler creates them.
type rolledOut struct {
	app      *shipper.Application
	rel      *shipper.Release
	capacity *shipper.CapacityTarget
	traffic  *shipper.TrafficTarget
	install  *shipper.InstallationTarget
}

func rollOut(t *testing.T, namespace string, edits ...func(*shipper.Application)) rolledOut {
	t.Helper()
	reconciler := as(t, reconcilerUser)
	r := rolledOut{app: application(namespace, startRepository(t, "0.0.1", "0.0.2"), edits...)}
	create(t, as(t, "dev"), r.app)
	r.rel = release(t, r.app)
	create(t, reconciler, r.rel)
	r.capacity = &shipper.CapacityTarget{
		ObjectMeta: child(r.rel),
		Spec:       shipper.CapacityTargetSpec{Clusters: []shipper.ClusterCapacityTarget{{Name: "eu", Percent: 1}}},
	}
	r.traffic = &shipper.TrafficTarget{
		ObjectMeta: child(r.rel), Spec: shipper.TrafficTargetSpec{Clusters: []shipper.ClusterTrafficTarget{{Name: "eu"}}},
	}
	r.install = &shipper.InstallationTarget{
		ObjectMeta: child(r.rel), Spec: shipper.InstallationTargetSpec{Clusters: []string{"eu"}, CanOverride: true},
	}
	create(t, reconciler, r.capacity, r.traffic, r.install)
	return r
}

// release creates the Release that app gets next to existing.
func release(t *testing.T, app *shipper.Application, existing ...*shipper.Release) *shipper.Release {
	t.Helper()
	rel, err := stamp.Release(app, existing)
	if err != nil {
		t.Fatal(err)
	}
	rel.Finalizers = nil // no reconciler runs here to remove it
	return rel
}

func child(rel *shipper.Release) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: rel.Namespace, Name: rel.Name, Labels: rel.Labels,
		OwnerReferences: []metav1.OwnerReference{{
			APIVersion: shipper.GroupVersion.String(), Kind: "Release", Name: rel.Name, UID: rel.UID,
		}},
	}
}

func TestReleasesAreMadeByTheReconciler(t *testing.T) {
	t.Parallel()
	ns, reconciler, dev := namespace(t), as(t, reconcilerUser), as(t, "dev")
	app := application(ns, startRepository(t, "0.0.1"))
	create(t, dev, app)
	make := func(u *user, edits ...func(*shipper.Release)) error {
		rel := release(t, app)
		for _, edit := range edits {
			edit(rel)
		}
		return u.Create(t.Context(), rel, client.DryRunAll)
	}
	checkRefused(t, make(reconciler), refused{})
	checkRefused(t, make(dev), refused{403, "Releases are made by Shipper when an Application changes: edit the Application instead"})
	grant(t, "restorer", "stamp", "releases")
	env.Eventually(t, "RBAC to grant the right", func(context.Context) error { return make(as(t, "restorer")) })
	checkRefused(t, make(reconciler, func(r *shipper.Release) { r.OwnerReferences[0].UID = "forged" }),
		refused{422, "metadata.ownerReferences: Invalid value"})
	checkRefused(t, make(reconciler, func(r *shipper.Release) { r.Spec.Environment.Chart.Version = "0.0.9" }),
		refused{422, "metadata.labels[shipper-release-hash]: Invalid value"})
	checkRefused(t, make(reconciler, func(r *shipper.Release) { r.Labels[shipper.AppLabel] = "other" }),
		refused{422, `metadata.labels[shipper-app]: Not found: "other"`})
	checkRefused(t, make(reconciler, func(r *shipper.Release) { delete(r.Annotations, shipper.ReleaseGenerationAnnotation) }),
		refused{422, "metadata.annotations[shipper.booking.com/release.generation]: Invalid value"})
}

func TestAReleaseMoves(t *testing.T) {
	t.Parallel()
	r, dev := rollOut(t, namespace(t)), as(t, "dev")
	change := func(u *user, edits ...func(*shipper.Release)) error {
		rel := r.rel.DeepCopy()
		for _, edit := range edits {
			edit(rel)
		}
		return u.Update(t.Context(), rel, client.DryRunAll)
	}
	chart := func(rel *shipper.Release) { rel.Spec.Environment.Chart.Version = "0.0.2" }
	checkRefused(t, change(dev, ask.TargetStep(1)), refused{})
	checkRefused(t, change(dev, ask.TargetStep(2)),
		refused{422, "spec.targetStep: Invalid value: 2: must be a step of the strategy: 0 (staging), 1 (full on)"})
	checkRefused(t, change(dev, ask.TargetStep(-1)), refused{422, "spec.targetStep"})
	checkRefused(t, change(dev, chart),
		refused{422, "spec.environment: Forbidden: the Release environment must not be changed; edit the Application instead"})
	checkRefused(t, change(dev, ask.ReleaseAnnotated(shipper.ReleaseClustersAnnotation, "mine")),
		refused{422, "metadata.annotations[shipper.booking.com/release.clusters]: Forbidden"})
	checkRefused(t, change(as(t, reconcilerUser), ask.ReleaseAnnotated(shipper.ReleaseClustersAnnotation, "eu")), refused{})

	bare := r.rel.DeepCopy()
	bare.Annotations, bare.Labels = nil, nil
	checkRefused(t, dev.Update(t.Context(), bare, client.DryRunAll), refused{})
	if diff := cmp.Diff([]map[string]string{r.rel.Labels, r.rel.Annotations}, []map[string]string{bare.Labels, bare.Annotations}); diff != "" {
		t.Errorf("what was left out (-want +got):\n%s", diff)
	}

	b := block(t, r.rel.Namespace)
	key := b.Namespace + "/" + b.Name
	command := "kubectl annotate rel " + r.rel.Name + " shipper.booking.com/rollout-block.override=" + key
	checkRefused(t, change(dev, ask.TargetStep(1)), refused{403, command})
	checkRefused(t, dev.Delete(t.Context(), r.rel.DeepCopy(), client.DryRunAll), refused{403, command})
	checkRefused(t, change(dev, ask.ReleaseAnnotated("a", "b")), refused{})
	checkRefused(t, change(dev, ask.ReleaseAnnotated(shipper.RolloutBlockOverrideAnnotation, key)),
		refused{403, `user "dev" may not override RolloutBlock ` + key})
	grant(t, "sre-of-releases", "override", "rolloutblocks")
	env.Eventually(t, "RBAC to grant the right", func(context.Context) error {
		return change(as(t, "sre-of-releases"), ask.ReleaseAnnotated(shipper.RolloutBlockOverrideAnnotation, " "+key), ask.TargetStep(1))
	})
	status := r.rel.DeepCopy()
	status.Status.AchievedStep = &shipper.AchievedStep{Name: "staging"}
	checkRefused(t, as(t, reconcilerUser).Status().Update(t.Context(), status), refused{})
}

func TestAReleaseOfAnOverridingApplication(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	b := block(t, ns)
	grant(t, "sre-of-applications", "override", "rolloutblocks")
	app := application(ns, startRepository(t, "0.0.1"), ask.Overriding(ns+"/"+b.Name))
	env.Eventually(t, "RBAC to grant the right", func(ctx context.Context) error {
		return as(t, "sre-of-applications").Create(ctx, app.DeepCopy(), client.DryRunAll)
	})
	create(t, as(t, "sre-of-applications"), app)
	reconciler := as(t, reconcilerUser)
	checkRefused(t, reconciler.Create(t.Context(), release(t, app), client.DryRunAll), refused{})

	other := application(ns, startRepository(t, "0.0.1"), func(a *shipper.Application) { a.Name = "other" })
	checkRefused(t, as(t, "dev").Create(t.Context(), other), refused{403, "rollouts blocked by"})

	unblock(t, b) // the Application's override still names it
	late := release(t, app)
	checkRefused(t, reconciler.Create(t.Context(), late, client.DryRunAll), refused{})
	if v, there := late.Annotations[shipper.RolloutBlockOverrideAnnotation]; there {
		t.Errorf("the new Release overrides %q, which is gone", v)
	}
}

func TestTargetsAreTheReconcilers(t *testing.T) {
	t.Parallel()
	r, dev, reconciler := rollOut(t, namespace(t)), as(t, "dev"), as(t, reconcilerUser)
	edits := map[string]func() client.Object{
		"CapacityTarget": func() client.Object {
			o := r.capacity.DeepCopy()
			o.Spec.Clusters[0].Percent = 50
			return o
		},
		"TrafficTarget": func() client.Object {
			o := r.traffic.DeepCopy()
			o.Spec.Clusters[0].Weight = 50
			return o
		},
		"InstallationTarget": func() client.Object {
			o := r.install.DeepCopy()
			o.Spec.CanOverride = false
			return o
		},
	}
	for kind, edit := range edits {
		checkRefused(t, reconciler.Update(t.Context(), edit(), client.DryRunAll), refused{})
		checkRefused(t, dev.Update(t.Context(), edit(), client.DryRunAll), refused{403, "spec of " + kind + "s is written by Shipper only"})
	}
	annotated := r.capacity.DeepCopy()
	annotated.Annotations = map[string]string{"mine": "x"}
	checkRefused(t, dev.Update(t.Context(), annotated, client.DryRunAll), refused{})

	orphan := &shipper.CapacityTarget{ObjectMeta: child(r.rel), Spec: r.capacity.Spec}
	orphan.Name = "no-release"
	checkRefused(t, dev.Create(t.Context(), orphan.DeepCopy(), client.DryRunAll), refused{403, "written by Shipper only"})
	checkRefused(t, reconciler.Create(t.Context(), orphan, client.DryRunAll), refused{422, "there is no Release of this name"})

	b := block(t, r.rel.Namespace)
	for _, edit := range edits {
		checkRefused(t, reconciler.Update(t.Context(), edit(), client.DryRunAll), refused{403, "rollouts blocked by: " + b.Namespace})
		checkRefused(t, dev.Delete(t.Context(), edit(), client.DryRunAll), refused{403, "rollouts blocked by: " + b.Namespace})
	}
	ask.ReleaseAnnotated(shipper.RolloutBlockOverrideAnnotation, b.Namespace+"/"+b.Name)(r.rel)
	if err := admin.Update(t.Context(), r.rel); err != nil {
		t.Fatal(err)
	}
	env.Eventually(t, "the webhook to know the override", func(ctx context.Context) error {
		return reconciler.Update(ctx, edits["CapacityTarget"](), client.DryRunAll)
	})
	for _, edit := range edits {
		checkRefused(t, reconciler.Update(t.Context(), edit(), client.DryRunAll), refused{})
	}
}

func TestClusters(t *testing.T) {
	r, ann := rollOut(t, namespace(t)), as(t, "ann")
	make := func(name string, edits ...func(*shipper.ClusterSpec)) *shipper.Cluster {
		c := &shipper.Cluster{Spec: shipper.ClusterSpec{APIMaster: "https://10.0.0.1", Region: "eu"}}
		c.Name = name
		for _, edit := range edits {
			edit(&c.Spec)
		}
		return c
	}
	http := make("http", func(s *shipper.ClusterSpec) { s.APIMaster = "http://10.0.0.1" })
	checkRefused(t, ann.Create(t.Context(), http), refused{422, "spec.apiMaster: Invalid value"})
	eu := make("admission-eu")
	create(t, ann, eu)
	nowhere := eu.DeepCopy()
	nowhere.Spec.Region = "  "
	checkRefused(t, ann.Update(t.Context(), nowhere), refused{422, "spec.region: Required value"})
	checkRefused(t, ann.Delete(t.Context(), eu.DeepCopy(), client.DryRunAll), refused{})
	if warned := ann.warnings(); len(warned) > 0 {
		t.Errorf("deleting an empty cluster warned %q", warned)
	}

	ask.ReleaseAnnotated(shipper.ReleaseClustersAnnotation, eu.Name)(r.rel)
	if err := admin.Update(t.Context(), r.rel); err != nil {
		t.Fatal(err)
	}
	want := []string{"1 Release(s) are placed on cluster admission-eu and what they run there is left as it is: " +
		r.rel.Namespace + "/" + r.rel.Name + "; those with a placement go elsewhere at once, and what they left is not taken up again when " +
		"a Cluster of this name is created"}
	env.Eventually(t, "the webhook to know where the Release is", func(ctx context.Context) error {
		if err := ann.Delete(ctx, eu.DeepCopy(), client.DryRunAll); err != nil {
			return err
		}
		return differs(want, ann.warnings())
	})
}
