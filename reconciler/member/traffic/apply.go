// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"context"
	"errors"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/fleet"
)

// Work reads one cluster, and moves Pods there and turns the Services of an Application, when they are ours. It returns what came of it for
// each TrafficTarget in effect there, and what serves there.
func (w *Worker) Work(
	ctx context.Context, cluster string, of types.NamespacedName, here ClusterState,
) (map[*shipper.TrafficTarget]Outcome, Serving, error) {
	family, err := w.application(ctx, of.Namespace, of.Name)
	if err != nil {
		return nil, Serving{unknown: true}, err
	}
	family.here = here
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
		return out, Serving{}, nil
	}
	serving, err := w.workIn(ctx, cluster, family, valid, out)
	if err != nil {
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
	return out, serving, nil
}

// workIn plans for all targets from one observation, and then carries that out: first Pods are let in, then others out, so that what is
// served does not shrink in between.
func (w *Worker) workIn(
	ctx context.Context, cluster string, family application, valid []*shipper.TrafficTarget, out map[*shipper.TrafficTarget]Outcome,
) (Serving, error) {
	member, err := w.fleet.Get(ctx, cluster)
	if err != nil {
		return Serving{unknown: true}, err
	}
	ctx, cancel := member.Context(ctx, fleet.WorkTimeout)
	defer cancel()
	if err := member.Claimed(ctx, family.namespace, family.app); err != nil {
		return Serving{unknown: true}, err
	}
	seen, err := w.observe(ctx, member, family)
	if err != nil {
		return Serving{unknown: true}, err
	}
	plans := map[*shipper.TrafficTarget][]Outcome{}
	for _, tt := range valid {
		plans[tt] = seen.plan(tt, out[tt].want, family)
		one := worst(plans[tt])
		one.err = label(ctx, member, family.namespace, seen.patches(plans[tt], enabled, true))
		out[tt] = one
	}
	for _, tt := range valid {
		one := out[tt]
		one.err = errors.Join(one.err, label(ctx, member, family.namespace, seen.patches(plans[tt], disabled, false)),
			switchServices(ctx, member, family.namespace, seen, plans[tt]))
		out[tt] = one
	}
	met := []error{switchPreview(ctx, member, seen, wishedPreview(valid, cluster))}
	for _, service := range seen.outlived {
		met = append(met, dropPorts(ctx, member, service))
	}
	return seen.serving(valid, plans, family.here), errors.Join(met...)
}

// enabled and disabled are the Pods that a plan moves in and out of the traffic of a Service, and those there whose costs of deletion
// have to be corrected.
func enabled(of Outcome) []string  { return append(slices.Clone(of.plan.Enable), of.last...) }
func disabled(of Outcome) []string { return append(slices.Clone(of.plan.Disable), of.first...) }

// switchServices carries out what has to be done with the Services that a target leads in: labels of Pods first, in and then out, so that
// what is served does not shrink in between.
func switchServices(ctx context.Context, m *fleet.Member, namespace string, seen observation, plans []Outcome) error {
	led := slices.DeleteFunc(slices.Clone(plans), func(of Outcome) bool { return !of.leads })
	err := errors.Join(
		label(ctx, m, namespace, seen.patches(led, func(of Outcome) []string { return of.change.Enable }, true)),
		label(ctx, m, namespace, seen.patches(led, func(of Outcome) []string { return of.change.Disable }, false)),
	)
	if err != nil {
		return err
	}
	var met []error
	for i := range led {
		met = append(met, switchService(ctx, m, &led[i]))
	}
	return errors.Join(met...)
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
