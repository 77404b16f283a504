// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/fleet"
)

// parallelPods is how many Pods of one cluster are labelled at the same time.
const parallelPods = 10

// work reads one cluster, and moves Pods there and turns the Service, when they are ours.
func (r *Reconciler) work(
	ctx context.Context, tt *shipper.TrafficTarget, want shipper.ClusterTrafficTarget, fam application,
) observation {
	member, err := r.fleet.Get(ctx, want.Name)
	if err != nil {
		return observation{want: want, err: err}
	}
	ctx, cancel := member.Context(ctx, fleet.WorkTimeout)
	defer cancel()
	if err := member.Claimed(ctx, tt.Namespace, fam.app); err != nil {
		return observation{want: want, err: err}
	}
	seen := r.observe(ctx, member, tt, want, fam)
	if seen.err != nil {
		return seen
	}
	if seen.moved = seen.plan.Moves(); seen.moved {
		seen.err = r.move(ctx, member, tt.Namespace, seen.plan.Enable, seen.plan.Disable)
	}
	if seen.leads {
		seen.err = errors.Join(seen.err, r.switchService(ctx, member, fam.app, &seen))
	}
	return seen
}

// move labels Pods: first in, then out, so that what is served does not shrink in between.
func (r *Reconciler) move(ctx context.Context, m *fleet.Member, namespace string, in, out []string) error {
	return errors.Join(
		r.label(ctx, m, namespace, in, shipper.TrafficEnabled),
		r.label(ctx, m, namespace, out, shipper.TrafficDisabled),
	)
}

// label sets the traffic label of Pods, and lets Pods in traffic go last when their Deployment is scaled down: otherwise
// Kubernetes takes any, and what is served shrinks until others are let in. Pods that went meanwhile need neither.
func (r *Reconciler) label(ctx context.Context, m *fleet.Member, namespace string, pods []string, value string) error {
	cost := `null` // no annotation: 0
	if value == shipper.TrafficEnabled {
		cost = `"1"`
	}
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"labels":{%q:%q},"annotations":{%q:%s}}}`,
		shipper.TrafficStatusLabel, value, corev1.PodDeletionCost, cost))
	met := make([]error, len(pods))
	fleet.Each(len(pods), parallelPods, func(i int) {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: pods[i]}}
		err := m.Consistent().Patch(ctx, pod, patch, client.FieldOwner(shipper.FieldOwner))
		if client.IgnoreNotFound(err) != nil {
			met[i] = fmt.Errorf("labelling Pod %s: %w", pods[i], err)
			return
		}
		met[i] = m.Settle(ctx, pod) // the next pass would label it again
	})
	return errors.Join(met...)
}
