// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"fmt"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"shipper.dev/shipper/apis/rules/placement"
	"shipper.dev/shipper/apis/rules/stamp"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart/render"
)

// decideNaming sets chart.naming of the first Release of an Application if its template does not say it: by its chart in the clusters that
// it would get now. Later Releases take it over, so a chart that cannot be read keeps the first from being created.
func (r *pass) decideNaming(ctx context.Context, s *scope, rel *shipper.Release) error {
	if !stamp.Undecided(s.app, s.history.All) {
		return nil
	}
	var all shipper.ClusterList
	if err := r.client.List(ctx, &all, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing clusters: %w", err)
	}
	in := s.input(&rel.Spec.Environment, r.now)
	in.Clusters = all.Items
	var chosen []render.Cluster
	if choice, err := placement.Select(in); err == nil { // without clusters the chart is rendered as for any
		for i := range all.Items {
			if slices.Contains(choice.Chosen, all.Items[i].Name) {
				chosen = append(chosen, render.ClusterOf(&all.Items[i]))
			}
		}
	}
	naming, err := r.charts.Naming(ctx, rel, chosen)
	if err != nil {
		return fmt.Errorf("deciding how the objects of release %s/%s are named: %w", rel.Namespace, rel.Name, err)
	}
	rel.Spec.Environment.Chart.Naming = stamp.Recorded(naming)
	return nil
}
