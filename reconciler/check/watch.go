// SPDX-License-Identifier: Apache-2.0

package check

import (
	"context"
	"fmt"
	"maps"
	"strings"

	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"shipper.dev/shipper/apis/rules/check"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/fleet"
)

// watch turns events into keys: those of CheckTargets, of what they wait for, and of Jobs in application clusters.
func (r *Reconciler) watch(mgr ctrl.Manager, c controller.TypedController[Key]) error {
	ofTarget := handler.TypedEnqueueRequestsFromMapFunc(func(_ context.Context, t *shipper.CheckTarget) []Key { return keysOf(t, always) })
	ofTests := handler.TypedEnqueueRequestsFromMapFunc(func(ctx context.Context, it *shipper.InstallationTarget) []Key {
		return r.keysOf(ctx, client.ObjectKeyFromObject(it), hasTests)
	})
	ofOthers := handler.TypedEnqueueRequestsFromMapFunc(r.siblings)
	for _, s := range []source.TypedSource[Key]{
		source.TypedKind(mgr.GetCache(), &shipper.CheckTarget{}, ofTarget, predicate.TypedGenerationChangedPredicate[*shipper.CheckTarget]{}),
		source.TypedKind(mgr.GetCache(), &shipper.InstallationTarget{}, ofTests),
		source.TypedKind(mgr.GetCache(), &shipper.Release{}, ofOthers, changes()),
		r.jobs(),
	} {
		if err := c.Watch(s); err != nil {
			return fmt.Errorf("setting up check: %w", err)
		}
	}
	return nil
}

func always(*shipper.CheckRun) bool { return true }

func hasTests(run *shipper.CheckRun) bool { return run.Check.Tests != nil }

// keysOf are the keys of some checks of a target.
func keysOf(target *shipper.CheckTarget, of func(*shipper.CheckRun) bool) []Key {
	var out []Key
	for i := range target.Spec.Checks {
		run := &target.Spec.Checks[i]
		if !of(run) {
			continue
		}
		for _, cluster := range check.JudgedIn(&target.Spec, run) {
			out = append(out, Key{target.Namespace, target.Name, run.Name, cluster})
		}
	}
	return out
}

// keysOf are the keys of some checks of a target that is known by name.
func (r *Reconciler) keysOf(ctx context.Context, name client.ObjectKey, of func(*shipper.CheckRun) bool) []Key {
	target := &shipper.CheckTarget{}
	if err := r.client.Get(ctx, name, target, client.UnsafeDisableDeepCopy); err != nil {
		if client.IgnoreNotFound(err) != nil {
			log.FromContext(ctx).Error(err, "Cannot find the checks of a Release", "release", name)
		}
		return nil
	}
	return keysOf(target, of)
}

// changes are the events of Releases after which another run may be the current one: another step, annotation or deletion.
func changes() predicate.TypedFuncs[*shipper.Release] {
	return predicate.TypedFuncs[*shipper.Release]{
		UpdateFunc: func(e event.TypedUpdateEvent[*shipper.Release]) bool {
			return e.ObjectOld.Generation != e.ObjectNew.Generation || !maps.Equal(e.ObjectOld.Annotations, e.ObjectNew.Annotations) ||
				e.ObjectOld.DeletionTimestamp.IsZero() != e.ObjectNew.DeletionTimestamp.IsZero()
		},
	}
}

// siblings are the keys of the Application of a Release that comes, goes or changes.
func (r *Reconciler) siblings(ctx context.Context, rel *shipper.Release) []Key {
	var all shipper.CheckTargetList
	err := r.client.List(ctx, &all, client.InNamespace(rel.Namespace), client.MatchingLabels{shipper.AppLabel: rel.Labels[shipper.AppLabel]},
		client.UnsafeDisableDeepCopy)
	if err != nil {
		log.FromContext(ctx).Error(err, "Cannot list the checks of an Application")
	}
	var out []Key
	for i := range all.Items {
		out = append(out, keysOf(&all.Items[i], always)...)
	}
	return out
}

// jobs makes keys for the events of the Jobs of checks, and for clusters that are connected or lost.
func (r *Reconciler) jobs() source.TypedSource[Key] {
	return source.TypedFunc[Key](func(_ context.Context, q workqueue.TypedRateLimitingInterface[Key]) error {
		r.Fleet.WatchInstalled(func(e fleet.Event) {
			o := e.Object()
			parts := strings.Split(o.GetAnnotations()[jobAnnotation], "/")
			if len(parts) == 2 {
				q.Add(Key{o.GetNamespace(), parts[0], parts[1], e.Cluster})
			}
		})
		r.Fleet.WatchMembers(func(cluster string) {
			for _, key := range r.results.waitingFor(cluster) {
				q.Add(key)
			}
		})
		return nil
	})
}
