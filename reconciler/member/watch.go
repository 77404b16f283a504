// SPDX-License-Identifier: Apache-2.0

package member

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/fleet"
	"shipper.dev/shipper/reconciler/member/installation"
	"shipper.dev/shipper/reconciler/member/resources"
	"shipper.dev/shipper/reconciler/member/traffic"
)

// change is an event of an object of the management cluster; before or after may be nil.
type change struct {
	before, after client.Object
	initial       bool
}

func (c change) object() client.Object {
	if c.after != nil {
		return c.after
	}
	return c.before
}

// watch turns events into keys: those of targets, Releases and Applications, and those of application clusters.
func (r *Reconciler) watch(ctx context.Context) error {
	for _, w := range []struct {
		of     client.Object
		handle func(context.Context, change)
	}{
		{&shipper.InstallationTarget{}, r.installationChanged},
		{&shipper.CapacityTarget{}, r.podsChanged},
		{&shipper.TrafficTarget{}, r.podsChanged},
		{&shipper.CheckTarget{}, r.checksChanged},
		{&shipper.Release{}, r.releaseChanged},
		{&shipper.Application{}, r.policyChanged},
	} {
		informer, err := r.cache.GetInformer(ctx, w.of)
		if err != nil {
			return fmt.Errorf("watching %T: %w", w.of, err)
		}
		if _, err := informer.AddEventHandler(eventHandler(ctx, w.handle)); err != nil {
			return fmt.Errorf("watching %T: %w", w.of, err)
		}
	}
	namespace := &metav1.PartialObjectMetadata{}
	namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	for _, w := range []struct {
		of     client.Object
		handle func(context.Context, fleet.Event)
	}{
		{&corev1.Pod{}, r.podOrServiceChanged},
		{&appsv1.Deployment{}, r.podOrServiceChanged},
		{&appsv1.StatefulSet{}, r.podOrServiceChanged},
		{&appsv1.DaemonSet{}, r.podOrServiceChanged},
		{&corev1.Service{}, r.podOrServiceChanged},
		{&discoveryv1.EndpointSlice{}, r.podOrServiceChanged},
		{&corev1.ConfigMap{}, r.anchorChanged},
		{namespace, r.namespaceChanged},
	} {
		if err := r.fleet.Watch(w.of, func(e fleet.Event) { w.handle(ctx, e) }); err != nil {
			return err
		}
	}
	r.fleet.WatchInstalled(func(e fleet.Event) {
		if app, placed := resources.Owner(e); placed {
			r.placedChanged(ctx, e, app)
		} else {
			r.installedChanged(ctx, e)
		}
	})
	r.fleet.WatchMembers(func(cluster string) { r.connectionChanged(ctx, cluster) })
	return nil
}

// eventHandler passes the events of an informer on.
func eventHandler(ctx context.Context, handle func(context.Context, change)) toolscache.ResourceEventHandler {
	send := func(before, after any, initial bool) {
		c := change{initial: initial}
		c.before, _ = before.(client.Object)
		if c.after, _ = after.(client.Object); c.object() != nil {
			handle(ctx, c)
		}
	}
	return toolscache.ResourceEventHandlerDetailedFuncs{
		AddFunc:    func(object any, initial bool) { send(nil, object, initial) },
		UpdateFunc: func(before, after any) { send(before, after, false) },
		DeleteFunc: func(object any) {
			if unknown, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
				object = unknown.Obj
			}
			send(object, nil, false)
		},
	}
}

// put has work done, with low priority if only a watch began.
func (r *Reconciler) put(w work, initial bool) {
	if initial {
		r.queues.check(w)
	} else {
		r.queues.add(w)
	}
}

// installationChanged is about InstallationTargets. Of their own status, nothing is new but the clusters that it names: in those that it
// does not name yet, nothing is written.
func (r *Reconciler) installationChanged(_ context.Context, c change) {
	before, _ := c.before.(*shipper.InstallationTarget)
	after, _ := c.after.(*shipper.InstallationTarget)
	if before != nil && after != nil && sameMeta(before, after) &&
		slices.EqualFunc(before.Status.Clusters, after.Status.Clusters, sameName) {
		return
	}
	pods := before == nil || after == nil || traffic.ComesOrGoes(before, after)
	for _, it := range []*shipper.InstallationTarget{before, after} {
		if it == nil {
			continue
		}
		for _, cluster := range installation.Clusters(it) {
			r.put(keyOf(it, cluster), c.initial)
			if pods && it.Spec.Resources == nil {
				r.put(podsOf(it, cluster), c.initial)
			}
			if w := keyOf(it, cluster); after == nil && w.target == "" {
				r.queues.add(work{w.Key, it.Name}) // ends its retries
			}
		}
	}
}

func sameName(a, b shipper.ClusterInstallationStatus) bool { return a.Name == b.Name }

// podsChanged is about CapacityTargets and TrafficTargets.
func (r *Reconciler) podsChanged(_ context.Context, c change) {
	if c.before != nil && c.after != nil && sameMeta(c.before, c.after) {
		return
	}
	for _, o := range []client.Object{c.before, c.after} {
		if o == nil {
			continue
		}
		for _, cluster := range clustersOf(o) {
			r.put(podsOf(o, cluster), c.initial)
		}
	}
}

// checksChanged is about CheckTargets that ask for the tests of a chart.
func (r *Reconciler) checksChanged(ctx context.Context, c change) {
	target, ok := c.after.(*shipper.CheckTarget)
	if !ok || c.initial || c.before != nil && sameMeta(c.before, c.after) ||
		!slices.ContainsFunc(target.Spec.Checks, func(run shipper.CheckRun) bool { return run.Check.Tests != nil }) {
		return
	}
	for _, cluster := range target.Spec.Clusters {
		r.named(ctx, client.ObjectKeyFromObject(target), cluster, r.queues.add)
	}
}

// clustersOf a target.
func clustersOf(o client.Object) []string {
	var out []string
	switch target := o.(type) {
	case *shipper.InstallationTarget:
		return installation.Clusters(target)
	case *shipper.CapacityTarget:
		for _, c := range target.Spec.Clusters {
			out = append(out, c.Name)
		}
	case *shipper.TrafficTarget:
		for _, c := range target.Spec.Clusters {
			out = append(out, c.Name)
		}
	}
	return out
}

// sameMeta reports whether nothing but the status may have changed.
func sameMeta(a, b client.Object) bool {
	return a.GetUID() == b.GetUID() && a.GetGeneration() == b.GetGeneration() && maps.Equal(a.GetLabels(), b.GetLabels()) &&
		maps.Equal(a.GetAnnotations(), b.GetAnnotations()) && slices.Equal(a.GetFinalizers(), b.GetFinalizers()) &&
		(a.GetDeletionTimestamp() == nil) == (b.GetDeletionTimestamp() == nil)
}

// releaseChanged is about Releases that come or go, with which the weight of their targets counts or not, and those that ask something else
// of their hooks.
func (r *Reconciler) releaseChanged(ctx context.Context, c change) {
	if c.before != nil && c.after != nil && installation.SameOrders(c.before, c.after) && !traffic.ComesOrGoes(c.before, c.after) {
		return
	}
	if c.initial {
		return // its targets have events of their own
	}
	rel := c.object()
	r.each(ctx, rel.GetNamespace(), rel.GetLabels()[shipper.AppLabel], "", func(o client.Object, cluster string) {
		_, installs := o.(*shipper.InstallationTarget)
		if pods := !installs; pods || o.GetName() == rel.GetName() {
			r.queues.add(keyOf(o, cluster))
		}
	})
}

// policyChanged is about Applications with another driftPolicy.
func (r *Reconciler) policyChanged(ctx context.Context, c change) {
	of := func(o client.Object) shipper.DriftPolicy {
		if app, ok := o.(*shipper.Application); ok {
			return app.Spec.DriftPolicy
		}
		return ""
	}
	if c.initial || of(c.before) == of(c.after) {
		return
	}
	r.each(ctx, c.object().GetNamespace(), c.object().GetName(), "", func(o client.Object, cluster string) {
		if _, installs := o.(*shipper.InstallationTarget); installs {
			r.queues.add(keyOf(o, cluster))
		}
	})
}

// podOrServiceChanged is about what an Application has in a cluster besides what its charts bring.
func (r *Reconciler) podOrServiceChanged(_ context.Context, e fleet.Event) {
	for _, o := range []client.Object{e.Old, e.New} {
		if o != nil {
			r.put(podsOf(o, e.Cluster), e.Initial)
		}
	}
}

// anchorChanged is about anchors that are gone or going, and those of other management clusters.
func (r *Reconciler) anchorChanged(ctx context.Context, e fleet.Event) {
	if app, placed := resources.Owner(e); placed {
		r.placedAnchorChanged(ctx, e, app)
		return
	}
	o := e.Object()
	if installation.InPlaceChanged(e) {
		r.put(podsOf(o, e.Cluster), e.Initial)
	}
	if target := installation.AnchorGone(e); target.Name != "" {
		put := func(w work) { r.put(w, e.Initial) }
		if !r.named(ctx, target, e.Cluster, put) && e.New != nil { // to let it go
			put(work{Key{e.Cluster, target.Namespace, cmp.Or(o.GetLabels()[shipper.AppLabel], target.Name), false}, target.Name})
		}
	}
	if r.fleet.ClaimChanged(e) {
		r.each(ctx, o.GetNamespace(), o.GetLabels()[shipper.AppLabel], e.Cluster, func(o client.Object, cluster string) {
			r.put(keyOf(o, cluster), e.Initial)
		})
	}
}

// namespaceChanged is about namespaces that appear or go in a cluster.
func (r *Reconciler) namespaceChanged(ctx context.Context, e fleet.Event) {
	var list shipper.InstallationTargetList
	r.inCluster(ctx, &list, e.Cluster, func(o client.Object) { r.put(keyOf(o, e.Cluster), e.Initial) },
		client.InNamespace(e.Object().GetName()))
}

// installedChanged is about objects that charts brought.
func (r *Reconciler) installedChanged(ctx context.Context, e fleet.Event) {
	o := e.Object()
	if name := installation.HookOf(o); name != "" {
		r.named(ctx, types.NamespacedName{Namespace: o.GetNamespace(), Name: name}, e.Cluster, func(w work) { r.put(w, e.Initial) })
	}
	if installation.Gone(e) {
		of := []client.ListOption{client.MatchingLabels{shipper.AppLabel: o.GetLabels()[shipper.AppLabel]}}
		if o.GetNamespace() != "" {
			of = append(of, client.InNamespace(o.GetNamespace()))
		}
		r.inCluster(ctx, &shipper.InstallationTargetList{}, e.Cluster, func(o client.Object) { r.queues.add(keyOf(o, e.Cluster)) }, of...)
	}
	if !installation.Health(e) {
		return
	}
	name, app := o.GetLabels()[shipper.OwnedByLabel], o.GetLabels()[shipper.AppLabel]
	check := func(w work) {
		if e.HealthChanged() || r.installation.Edited(ctx, e, w.Namespace) {
			r.queues.addAfter(w, fleet.Settling)
		}
	}
	if o.GetNamespace() != "" {
		r.named(ctx, types.NamespacedName{Namespace: o.GetNamespace(), Name: name}, e.Cluster, check)
		return
	}
	r.inCluster(ctx, &shipper.InstallationTargetList{}, e.Cluster, func(o client.Object) { check(keyOf(o, e.Cluster)) },
		client.MatchingLabels{shipper.AppLabel: app, shipper.ReleaseLabel: name})
}

// connectionChanged is about a cluster that was connected or lost. A target that leaves a cluster is looked at there, too: it may be the
// same cluster by another name.
func (r *Reconciler) connectionChanged(ctx context.Context, cluster string) {
	for _, list := range []client.ObjectList{
		&shipper.InstallationTargetList{}, &shipper.CapacityTargetList{}, &shipper.TrafficTargetList{},
	} {
		r.inCluster(ctx, list, cluster, func(o client.Object) {
			r.queues.check(keyOf(o, cluster))
			if it, ok := o.(*shipper.InstallationTarget); ok {
				for _, c := range it.Status.Clusters {
					if c.Name != cluster && !slices.Contains(it.Spec.Clusters, c.Name) {
						r.queues.check(keyOf(it, c.Name))
					}
				}
			}
		})
	}
}

// named calls do for the work on the target of a name in a cluster: it says of which Application it is. It returns false if there is no
// such target.
func (r *Reconciler) named(ctx context.Context, target types.NamespacedName, cluster string, do func(work)) (found bool) {
	var it shipper.InstallationTarget
	err := r.client.Get(ctx, target, &it, client.UnsafeDisableDeepCopy)
	if err == nil {
		do(keyOf(&it, cluster))
	} else if !apierrors.IsNotFound(err) {
		log.FromContext(ctx).V(1).Info("A target cannot be read", "target", target, "reason", err.Error())
	}
	return !apierrors.IsNotFound(err)
}

// each calls do for the targets of an Application, with each of their clusters, or only one if that is not empty.
func (r *Reconciler) each(ctx context.Context, namespace, app, cluster string, do func(o client.Object, cluster string)) {
	of := []client.ListOption{client.InNamespace(namespace), client.MatchingLabels{shipper.AppLabel: app}}
	for _, list := range []client.ObjectList{
		&shipper.InstallationTargetList{}, &shipper.CapacityTargetList{}, &shipper.TrafficTargetList{},
	} {
		for _, o := range r.list(ctx, list, of...) {
			for _, name := range clustersOf(o) {
				if cluster == "" || name == cluster {
					do(o, name)
				}
			}
		}
	}
}

// inCluster calls do for those of the targets listed that are or were in a cluster.
func (r *Reconciler) inCluster(
	ctx context.Context, list client.ObjectList, cluster string, do func(client.Object), of ...client.ListOption,
) {
	for _, o := range r.list(ctx, list, of...) {
		if slices.Contains(clustersOf(o), cluster) {
			do(o)
		}
	}
}

// list reads targets from the cache, which are not to be changed.
func (r *Reconciler) list(ctx context.Context, list client.ObjectList, of ...client.ListOption) []client.Object {
	var out []client.Object
	err := r.client.List(ctx, list, append(of, client.UnsafeDisableDeepCopy)...)
	if err == nil {
		err = meta.EachListItem(list, func(o runtime.Object) error {
			if target, ok := o.(client.Object); ok {
				out = append(out, target)
			}
			return nil
		})
	}
	if err != nil {
		log.FromContext(ctx).V(1).Info("Targets cannot be listed", "reason", err.Error())
	}
	return out
}
