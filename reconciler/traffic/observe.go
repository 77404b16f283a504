// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	rules "shipper.dev/shipper/apis/rules/traffic"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/fleet"
	"shipper.dev/shipper/reconciler/targets"
)

// application is all TrafficTargets of one Application, and what they share.
type application struct {
	app string
	// weights are what the Releases ask for, by cluster.
	weights map[string][]rules.Release
	// going are the Releases whose weight counts no more.
	going sets.Set[string]
	// served are the clusters where a Release had endpoints, by what statuses say.
	served sets.Set[string]
	// podless are the clusters where all of the Release in question is no Pods.
	podless sets.Set[string]
}

// application reads the TrafficTargets that share traffic with tt. Two of them must not speak for one Release.
func (r *Reconciler) application(ctx context.Context, tt *shipper.TrafficTarget) (application, error) {
	out := application{
		app: tt.Labels[shipper.AppLabel], weights: map[string][]rules.Release{}, going: sets.New[string](), served: sets.New[string](),
	}
	if out.app == "" {
		return out, invalid("the label %s is missing", shipper.AppLabel)
	}
	var all shipper.TrafficTargetList
	of := client.MatchingLabels{shipper.AppLabel: out.app}
	if err := r.client.List(ctx, &all, client.InNamespace(tt.Namespace), of); err != nil {
		return out, fmt.Errorf("listing the TrafficTargets of %s: %w", out.app, err)
	}
	for i := range all.Items {
		sibling := &all.Items[i]
		servedIn(out.served, sibling)
		if ended, err := targets.Ended(ctx, r.client, sibling); err != nil {
			return out, err
		} else if ended {
			out.going.Insert(releaseOf(sibling))
			continue
		}
		if sibling.Name != tt.Name && releaseOf(sibling) == releaseOf(tt) {
			return out, invalid("TrafficTarget %q is for the same release %q", sibling.Name, releaseOf(tt))
		}
		capacity, err := r.capacity(ctx, sibling)
		if err != nil {
			return out, err
		}
		awaited := awaitedIn(capacity)
		for _, c := range sibling.Spec.Clusters {
			out.weights[c.Name] = append(out.weights[c.Name], rules.Release{
				Name: releaseOf(sibling), Weight: c.Weight, AsFound: c.AsFound, Awaited: awaited.Has(c.Name),
			})
		}
	}
	capacity, err := r.capacity(ctx, tt)
	out.podless = podlessIn(capacity)
	return out, err
}

// isReady reports whether a Pod says so itself.
func isReady(pod *corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// releaseOf is the Release's name: that of the target, which the label repeats.
func releaseOf(tt *shipper.TrafficTarget) string {
	if release := tt.Labels[shipper.ReleaseLabel]; release != "" {
		return release
	}
	return tt.Name
}

// leaving reports whether a Release that no TrafficTarget is of any more is being removed from clusters.
func (r *Reconciler) leaving(ctx context.Context, namespace, release string) (bool, error) {
	it := &shipper.InstallationTarget{}
	err := r.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: release}, it)
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("reading InstallationTarget %s: %w", release, err)
	}
	if it.DeletionTimestamp == nil {
		return false, nil
	}
	return targets.Ended(ctx, r.client, it)
}

// siblings are all TrafficTargets of the Application of a target, whose weight bears on theirs, or of a Release.
func (r *Reconciler) siblings(ctx context.Context, one client.Object) []reconcile.Request {
	return r.requests(ctx, "", client.InNamespace(one.GetNamespace()),
		client.MatchingLabels{shipper.AppLabel: one.GetLabels()[shipper.AppLabel]})
}

// comesOrGoes passes those events of Releases that decide whether a target's weight counts.
var comesOrGoes = predicate.Funcs{
	UpdateFunc: func(e event.UpdateEvent) bool {
		return e.ObjectOld.GetUID() != e.ObjectNew.GetUID() || len(e.ObjectOld.GetFinalizers()) != len(e.ObjectNew.GetFinalizers()) ||
			(e.ObjectOld.GetDeletionTimestamp() == nil) != (e.ObjectNew.GetDeletionTimestamp() == nil)
	},
}

// ofApplication are the TrafficTargets of the Application an object belongs to.
func (r *Reconciler) ofApplication(ctx context.Context, e fleet.Event) []reconcile.Request {
	if e.Old != nil && e.New != nil && unchangedWeights(e.Old, e.New) {
		return nil
	}
	app := e.Object().GetLabels()[shipper.AppLabel]
	of := client.MatchingLabels{shipper.AppLabel: app}
	return r.requests(ctx, e.Cluster, client.InNamespace(e.Object().GetNamespace()), of)
}

// unchangedWeights reports whether nothing changed in a Pod that traffic depends on. Pods change often.
func unchangedWeights(before, after client.Object) bool {
	old, ok := before.(*corev1.Pod)
	now, both := after.(*corev1.Pod)
	label := func(p *corev1.Pod, key string) string { return p.Labels[key] }
	return ok && both && equality.Semantic.DeepEqual(metav1.GetControllerOf(old), metav1.GetControllerOf(now)) &&
		isReady(old) == isReady(now) && old.Status.Phase == now.Status.Phase &&
		(old.DeletionTimestamp == nil) == (now.DeletionTimestamp == nil) &&
		label(old, shipper.TrafficStatusLabel) == label(now, shipper.TrafficStatusLabel) &&
		label(old, shipper.ReleaseLabel) == label(now, shipper.ReleaseLabel)
}

// targetsIn are the TrafficTargets that ask for traffic in a cluster.
func (r *Reconciler) targetsIn(ctx context.Context, cluster string) []reconcile.Request {
	return r.requests(ctx, cluster)
}

// requests are for the targets among those listed that are in a cluster; in any when it is empty.
func (r *Reconciler) requests(ctx context.Context, cluster string, of ...client.ListOption) []reconcile.Request {
	var targets shipper.TrafficTargetList
	if err := r.client.List(ctx, &targets, of...); err != nil {
		return nil
	}
	var out []reconcile.Request
	for i := range targets.Items {
		in := func(c shipper.ClusterTrafficTarget) bool { return c.Name == cluster }
		if cluster == "" || slices.ContainsFunc(targets.Items[i].Spec.Clusters, in) {
			out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&targets.Items[i])})
		}
	}
	return out
}
