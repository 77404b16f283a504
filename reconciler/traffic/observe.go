// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	rules "shipper.dev/shipper/apis/rules/traffic"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/fleet"
)

// family is all TrafficTargets of one Application, and what they share.
type family struct {
	app string
	// weights is the sum of all weights per cluster.
	weights map[string]uint64
	// others are the weights of the other Releases, by cluster and Release. Those without weight are left out.
	others map[string]map[string]uint32
	// podless are the clusters where all of the Release in question is no Pods.
	podless sets.Set[string]
}

// family reads the TrafficTargets that share traffic with tt. Two of them must not speak for one Release.
func (r *Reconciler) family(ctx context.Context, tt *shipper.TrafficTarget) (family, error) {
	out := family{app: tt.Labels[shipper.AppLabel], weights: map[string]uint64{}, others: map[string]map[string]uint32{}}
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
		if sibling.Name != tt.Name {
			if going, err := r.going(ctx, sibling); err != nil {
				return out, err
			} else if going {
				continue
			}
			if releaseOf(sibling) == releaseOf(tt) {
				return out, invalid("TrafficTarget %q is for the same release %q", sibling.Name, releaseOf(tt))
			}
		}
		out.add(sibling, sibling.Name != tt.Name)
	}
	var err error
	out.podless, err = r.podless(ctx, tt)
	return out, err
}

// add counts the weights of a target, another one's than that in question or its own.
func (f family) add(tt *shipper.TrafficTarget, other bool) {
	for _, c := range tt.Spec.Clusters {
		f.weights[c.Name] += uint64(c.Weight)
		if !other || c.Weight == 0 {
			continue
		}
		if f.others[c.Name] == nil {
			f.others[c.Name] = map[string]uint32{}
		}
		f.others[c.Name][releaseOf(tt)] = c.Weight
	}
}

// coming counts the Pods of other Releases that are about to take traffic in a cluster.
func (f family) coming(cluster string, pods []corev1.Pod, serving sets.Set[string]) int {
	count := 0
	for release, weight := range f.others[cluster] {
		other := releaseIn(pods, release, serving)
		other.Weight, other.TotalWeight = weight, f.weights[cluster]
		count += rules.For(other).Coming
	}
	return count
}

// going tells whether a target is being deleted, or will be because the Release that owns it is or has been. Its
// weight counts no longer then; the garbage collector takes its time.
func (r *Reconciler) going(ctx context.Context, tt *shipper.TrafficTarget) (bool, error) {
	if tt.DeletionTimestamp != nil {
		return true, nil
	}
	for _, owner := range tt.OwnerReferences {
		if owner.APIVersion != shipper.GroupVersion.String() || owner.Kind != "Release" {
			continue
		}
		var release shipper.Release
		key := client.ObjectKey{Namespace: tt.Namespace, Name: owner.Name}
		if err := r.client.Get(ctx, key, &release); client.IgnoreNotFound(err) != nil {
			return false, fmt.Errorf("reading Release %s: %w", owner.Name, err)
		}
		if release.UID != owner.UID || release.DeletionTimestamp != nil { // no UID: there is none
			return true, nil
		}
	}
	return false, nil
}

// sight is what was read of a target in one cluster, and what was done there.
type sight struct {
	want shipper.ClusterTrafficTarget
	// services are the names of those that traffic is shifted on; there should be one.
	services []string
	// idle is true when the Release has no Pods in the cluster, and no weight or is no Pods at all there: nothing is to be done.
	idle bool
	// plan is what has to be done. Empty unless there is one Service.
	plan rules.Plan
	// moved is true when labels of Pods were written in this pass.
	moved bool
	// err is why the cluster could not be read or written.
	err error
}

// observe reads Pods, Service and EndpointSlices from the cluster's caches, and plans.
func observe(
	ctx context.Context, m *fleet.Member, tt *shipper.TrafficTarget, want shipper.ClusterTrafficTarget, fam family,
) sight {
	out := sight{want: want}
	of := []client.ListOption{client.InNamespace(tt.Namespace), client.MatchingFields{fleet.ByApp: fam.app}}
	var pods corev1.PodList
	if err := m.Client().List(ctx, &pods, of...); err != nil {
		out.err = fmt.Errorf("listing Pods: %w", err)
		return out
	}
	var services corev1.ServiceList
	if err := m.Client().List(ctx, &services, of...); err != nil {
		out.err = fmt.Errorf("listing Services: %w", err)
		return out
	}
	for _, s := range services.Items {
		if s.Labels[shipper.LBLabel] == shipper.LBForProduction && s.DeletionTimestamp == nil {
			out.services = append(out.services, s.Name)
		}
	}
	var slices discoveryv1.EndpointSliceList
	if err := m.Client().List(ctx, &slices, of...); err != nil {
		out.err = fmt.Errorf("listing EndpointSlices: %w", err)
		return out
	}
	serve := serving(slices.Items, out.services)
	release := releaseIn(pods.Items, releaseOf(tt), serve)
	release.Weight, release.TotalWeight, release.AsFound = want.Weight, fam.weights[want.Name], want.AsFound
	release.Coming = fam.coming(want.Name, pods.Items, serve)
	out.idle = len(release.Pods) == 0 && (want.Weight == 0 || fam.podless.Has(want.Name))
	if len(out.services) == 1 {
		out.plan = rules.For(release)
	}
	return out
}

// releaseIn picks the Release's Pods and counts those of the whole Application.
func releaseIn(pods []corev1.Pod, release string, serving sets.Set[string]) rules.Release {
	var out rules.Release
	for i := range pods {
		pod := &pods[i]
		if pod.Annotations[shipper.HookRunAnnotation] != "" { // a hook of the chart: it serves nobody
			continue
		}
		finished := pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
		gone := finished || pod.DeletionTimestamp != nil
		labelled := pod.Labels[shipper.TrafficStatusLabel] == shipper.TrafficEnabled
		if !gone {
			out.AppPods++
		}
		if !gone && labelled {
			out.AppLabelled++
		}
		if pod.Labels[shipper.ReleaseLabel] == release {
			out.Pods = append(out.Pods, rules.Pod{
				Name: pod.Name, Gone: gone, Ready: isReady(pod), Serving: serving.Has(pod.Name), Labelled: labelled,
			})
		}
	}
	return out
}

// serving are the Pods that are ready endpoints of the Services. An endpoint that does not say is ready.
func serving(list []discoveryv1.EndpointSlice, services []string) sets.Set[string] {
	out := sets.New[string]()
	for _, s := range list {
		if !slices.Contains(services, s.Labels[discoveryv1.LabelServiceName]) {
			continue
		}
		for _, e := range s.Endpoints {
			ready := e.Conditions.Ready == nil || *e.Conditions.Ready
			if ready && e.TargetRef != nil && e.TargetRef.Kind == "Pod" {
				out.Insert(e.TargetRef.Name)
			}
		}
	}
	return out
}

// isReady tells whether a Pod says so itself.
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

// siblings are all TrafficTargets of the Application of a target, whose weight bears on theirs, or of a Release.
func (r *Reconciler) siblings(ctx context.Context, one client.Object) []reconcile.Request {
	return r.requests(ctx, "", client.InNamespace(one.GetNamespace()),
		client.MatchingLabels{shipper.AppLabel: one.GetLabels()[shipper.AppLabel]})
}

// comesOrGoes passes those events of Releases that decide whether a target's weight counts.
var comesOrGoes = predicate.Funcs{
	UpdateFunc: func(e event.UpdateEvent) bool {
		return e.ObjectOld.GetUID() != e.ObjectNew.GetUID() ||
			(e.ObjectOld.GetDeletionTimestamp() == nil) != (e.ObjectNew.GetDeletionTimestamp() == nil)
	},
}

// ofApplication are the TrafficTargets of the Application an object belongs to.
func (r *Reconciler) ofApplication(ctx context.Context, e fleet.Event) []reconcile.Request {
	if e.Old != nil && e.New != nil && unmoved(e.Old, e.New) {
		return nil
	}
	app := e.Object().GetLabels()[shipper.AppLabel]
	of := client.MatchingLabels{shipper.AppLabel: app}
	return r.requests(ctx, e.Cluster, client.InNamespace(e.Object().GetNamespace()), of)
}

// unmoved tells whether nothing changed in a Pod that traffic depends on. Pods change often.
func unmoved(before, after client.Object) bool {
	old, ok := before.(*corev1.Pod)
	now, both := after.(*corev1.Pod)
	label := func(p *corev1.Pod, key string) string { return p.Labels[key] }
	return ok && both && isReady(old) == isReady(now) && old.Status.Phase == now.Status.Phase &&
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
