// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"shipper.dev/shipper/apis/rules/stamp"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/fleet"
)

// maxNamed is how many Releases a message names.
const maxNamed = 5

// leaving is the set of Clusters that wait until what Shipper placed there is removed. It is safe for concurrent use.
type leaving struct {
	mu    sync.Mutex
	names map[string]bool
}

func (l *leaving) add(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.names == nil {
		l.names = map[string]bool{}
	}
	l.names[name] = true
}

func (l *leaving) remove(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.names, name)
}

// among are those of some clusters that leave.
func (l *leaving) among(clusters func() []string) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.names) == 0 {
		return nil
	}
	return slices.DeleteFunc(clusters(), func(name string) bool { return !l.names[name] })
}

// handler makes requests for the leaving clusters that an object is or was placed on. They wait a moment: many objects leave together.
func (l *leaving) handler(clusters func(client.Object) []string) handler.EventHandler {
	enqueue := func(q workqueue.TypedRateLimitingInterface[reconcile.Request], objects ...client.Object) {
		for _, o := range objects {
			for _, name := range l.among(func() []string { return clusters(o) }) {
				q.AddAfter(reconcile.Request{NamespacedName: types.NamespacedName{Name: name}}, fleet.Settling)
			}
		}
	}
	type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) { enqueue(q, e.Object) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) { enqueue(q, e.ObjectOld, e.ObjectNew) },
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q queue) { enqueue(q, e.Object) },
	}
}

// placedOn are the clusters that a Release is placed on, or that an InstallationTarget is to be in or still has objects in.
func placedOn(o client.Object) []string {
	switch o := o.(type) {
	case *shipper.Release:
		return stamp.Clusters(o)
	case *shipper.InstallationTarget:
		out := slices.Clone(o.Spec.Clusters)
		for _, c := range o.Status.Clusters {
			out = append(out, c.Name)
		}
		return out
	}
	return nil
}

// leave keeps the finalizer of a Cluster as its onLeave says, and removes it when nothing is left there. It returns what is left of one
// that is being deleted.
func (r *Reconciler) leave(ctx context.Context, cluster *shipper.Cluster) (left []string, err error) {
	has, wants := controllerutil.ContainsFinalizer(cluster, shipper.ClusterFinalizer), cluster.Spec.OnLeave == shipper.OnLeaveRemove
	if wants && cluster.DeletionTimestamp != nil {
		r.leaving.add(cluster.Name) // before the lists: an event that they do not show yet makes a request
		if left, err = r.placed(ctx, cluster.Name); err != nil {
			return nil, err
		}
		wants = len(left) > 0
	}
	if has == wants {
		return left, nil
	}
	was := cluster.DeepCopy()
	if wants {
		controllerutil.AddFinalizer(cluster, shipper.ClusterFinalizer)
	} else {
		controllerutil.RemoveFinalizer(cluster, shipper.ClusterFinalizer)
	}
	patch := client.MergeFromWithOptions(was, client.MergeFromWithOptimisticLock{})
	if err := r.client.Patch(ctx, cluster, patch); client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("writing the finalizer of Cluster %s: %w", cluster.Name, err)
	}
	return left, nil
}

// placed are the Releases, as namespace/name, that are placed on a cluster or whose InstallationTarget has objects there, sorted. It reads
// the whole cache, and only while a cluster leaves: an index by cluster would take memory for every Release and cluster at all times.
func (r *Reconciler) placed(ctx context.Context, cluster string) ([]string, error) {
	var releases shipper.ReleaseList
	var targets shipper.InstallationTargetList
	for _, list := range []client.ObjectList{&releases, &targets} {
		if err := r.client.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("listing what is placed on cluster %s: %w", cluster, err)
		}
	}
	var out []string
	add := func(o client.Object) {
		if slices.Contains(placedOn(o), cluster) {
			out = append(out, client.ObjectKeyFromObject(o).String())
		}
	}
	for i := range releases.Items {
		add(&releases.Items[i])
	}
	for i := range targets.Items {
		add(&targets.Items[i])
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

// leavingCondition says what a leaving Cluster waits for; there is none when nothing is left.
func leavingCondition(conditions []shipper.Condition, left []string, now time.Time) []shipper.Condition {
	if len(left) == 0 {
		return slices.DeleteFunc(conditions, func(c shipper.Condition) bool { return c.Type == shipper.ClusterLeaving })
	}
	names := strings.Join(left[:min(maxNamed, len(left))], ", ")
	if more := len(left) - maxNamed; more > 0 {
		names += fmt.Sprintf(" and %d more", more)
	}
	is := shipper.Condition{
		Type: shipper.ClusterLeaving, Status: corev1.ConditionTrue, Reason: shipper.InProgress,
		Message: fmt.Sprintf("waits for %d Releases: %s; `shipperctl clusters drain` lists the commands that move them, and spec.onLeave: Keep "+
			"leaves their objects there", len(left), names),
	}
	return shipper.SetCondition(conditions, is, metav1.NewTime(now))
}

// turned reports whether more than the message of Leaving changed, which changes with every Release that leaves.
func turned(was, is shipper.ClusterStatus) bool {
	without := func(s shipper.ClusterStatus) shipper.ClusterStatus {
		s.Conditions = slices.Clone(s.Conditions)
		for i := range s.Conditions {
			if s.Conditions[i].Type == shipper.ClusterLeaving {
				s.Conditions[i].Message = ""
			}
		}
		return s
	}
	return !equality.Semantic.DeepEqual(without(was), without(is))
}
