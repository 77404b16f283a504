// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/fleet"
)

// parallelPods is how many Pods of one cluster are labelled at the same time.
const parallelPods = 10

// Work reads one cluster, and moves Pods there and turns the Service of an Application, when they are ours. It returns what came of it for
// each TrafficTarget in effect there.
func (w *Worker) Work(ctx context.Context, cluster, namespace, app string) (map[*shipper.TrafficTarget]Outcome, error) {
	family, err := w.application(ctx, namespace, app)
	if err != nil {
		return nil, err
	}
	out := map[*shipper.TrafficTarget]Outcome{}
	var valid []*shipper.TrafficTarget
	for _, tt := range family.targets {
		i := slices.IndexFunc(tt.Spec.Clusters, func(c shipper.ClusterTrafficTarget) bool { return c.Name == cluster })
		if i < 0 {
			continue
		}
		one := Outcome{want: tt.Spec.Clusters[i], served: family.served.Has(cluster), invalid: family.invalid(tt)}
		if out[tt] = one; one.invalid == nil {
			valid = append(valid, tt)
		}
	}
	if len(valid) == 0 {
		return out, nil
	}
	if err := w.workIn(ctx, cluster, family, valid, out); err != nil {
		for _, tt := range valid {
			one := out[tt]
			one.err = err
			out[tt] = one
		}
	}
	for tt, one := range out {
		one.service, one.shadow = nil, nil // outcomes are kept, and a Service takes memory
		out[tt] = one
	}
	return out, nil
}

// workIn plans for all targets from one observation, and then carries that out: first Pods are let in, then others out, so that what is
// served does not shrink in between.
func (w *Worker) workIn(
	ctx context.Context, cluster string, family application, valid []*shipper.TrafficTarget, out map[*shipper.TrafficTarget]Outcome,
) error {
	member, err := w.fleet.Get(ctx, cluster)
	if err != nil {
		return err
	}
	ctx, cancel := member.Context(ctx, fleet.WorkTimeout)
	defer cancel()
	if err := member.Claimed(ctx, family.namespace, family.app); err != nil {
		return err
	}
	seen, err := w.observe(ctx, member, family)
	if err != nil {
		return err
	}
	for _, tt := range valid {
		one := seen.plan(tt, out[tt].want, family)
		one.moved = one.plan.Moves()
		one.err = label(ctx, member, family.namespace, one.plan.Enable, shipper.TrafficEnabled)
		out[tt] = one
	}
	for _, tt := range valid {
		one := out[tt]
		one.err = errors.Join(one.err, label(ctx, member, family.namespace, one.plan.Disable, shipper.TrafficDisabled))
		if one.leads {
			one.err = errors.Join(one.err, switchService(ctx, member, family.app, &one))
		}
		out[tt] = one
	}
	return switchPreview(ctx, member, family.app, seen, wishedPreview(valid, cluster))
}

// wishedPreview is the Release that the preview Service of a cluster is to select, by what targets say: shipper.NoRelease for no Pods,
// empty when none says anything. While two do, one of which is about to be taken back, it is the newest; targets are oldest first.
func wishedPreview(valid []*shipper.TrafficTarget, cluster string) string {
	wish := ""
	for _, tt := range valid {
		for _, c := range tt.Spec.Clusters {
			switch {
			case c.Name != cluster:
			case c.Preview == shipper.PreviewNone:
				wish = shipper.NoRelease
			case c.Preview == shipper.PreviewRelease:
				wish = releaseOf(tt)
			}
		}
	}
	return wish
}

// move labels Pods: first in, then out, so that what is served does not shrink in between.
func move(ctx context.Context, m *fleet.Member, namespace string, in, out []string) error {
	return errors.Join(
		label(ctx, m, namespace, in, shipper.TrafficEnabled),
		label(ctx, m, namespace, out, shipper.TrafficDisabled),
	)
}

// label sets the traffic label of Pods, and lets Pods in traffic go last when their Deployment is scaled down: otherwise
// Kubernetes takes any, and what is served shrinks until others are let in. Pods that went meanwhile need neither.
func label(ctx context.Context, m *fleet.Member, namespace string, pods []string, value string) error {
	cost := `null` // no annotation: 0
	if value == shipper.TrafficEnabled {
		cost = `"1"`
	}
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"labels":{%q:%q},"annotations":{%q:%s}}}`,
		shipper.TrafficStatusLabel, value, corev1.PodDeletionCost, cost))
	met := make([]error, len(pods))
	var all errgroup.Group
	all.SetLimit(parallelPods)
	for i, name := range pods {
		all.Go(func() error {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
			err := m.Consistent().Patch(ctx, pod, patch, client.FieldOwner(shipper.FieldOwner))
			if client.IgnoreNotFound(err) != nil {
				met[i] = fmt.Errorf("labelling Pod %s: %w", name, err)
				return nil
			}
			met[i] = m.WaitForCache(ctx, pod) // the next pass would label it again
			return nil
		})
	}
	_ = all.Wait()
	return errors.Join(met...)
}
