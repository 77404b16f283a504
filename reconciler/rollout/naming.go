// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
		return r.findUnjudged(ctx, s.app, rel)
	}
	var all shipper.ClusterList
	if err := r.client.List(ctx, &all, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing clusters: %w", err)
	}
	in := s.input(&rel.Spec.Environment, r.now)
	in.Clusters = all.Items
	var chosen []render.Cluster
	if choice, err := placement.Select(in); err == nil { // without clusters the chart is rendered as for any
		chosen = render.ClustersOf(all.Items, choice.Chosen)
	}
	naming, err := r.charts.Naming(ctx, rel, chosen)
	if err != nil {
		return fmt.Errorf("deciding how the objects of release %s/%s are named: %w", rel.Namespace, rel.Name, err)
	}
	rel.Spec.Environment.Chart.Naming = stamp.Recorded(naming)
	return nil
}

// findUnjudged returns an error if the chart of a template cannot be read that no webhook of this version has judged: the original stored
// versions that do not exist, and created no Release for them.
func (r *pass) findUnjudged(ctx context.Context, app *shipper.Application, rel *shipper.Release) error {
	if app.Annotations[shipper.AppChartDigestAnnotation] != "" || app.Annotations[shipper.AppRequestedByAnnotation] != "" ||
		app.Spec.Template.Resources != nil {
		return nil
	}
	if _, err := r.charts.Naming(ctx, rel, nil); err != nil {
		return fmt.Errorf("reading the chart of release %s/%s: %w", rel.Namespace, rel.Name, err)
	}
	return nil
}

// describeWorkloads writes down for users which workloads a Release has whose objects are named by Application: those in the first of its
// clusters, for the numbers of Pods may differ.
func (r *pass) describeWorkloads(ctx context.Context, rel *shipper.Release, ct *shipper.CapacityTarget, clusters []render.Cluster) error {
	if rel.Spec.Environment.Chart.Naming != shipper.NamingByApplication || len(clusters) == 0 {
		return nil
	}
	workloads, err := r.charts.Workloads(ctx, rel, clusters[0])
	if err != nil {
		return fmt.Errorf("listing the workloads of release %s/%s: %w", rel.Namespace, rel.Name, err)
	}
	text, err := json.Marshal(workloads)
	if err != nil {
		return fmt.Errorf("writing down the workloads of release %s/%s: %w", rel.Namespace, rel.Name, err)
	}
	metav1.SetMetaDataAnnotation(&ct.ObjectMeta, shipper.WorkloadsAnnotation, string(text))
	return nil
}
