// SPDX-License-Identifier: Apache-2.0

package application

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart/render"
	"shipper.dev/shipper/chart/values"
	"shipper.dev/shipper/webhook/response"
	"shipper.dev/shipper/webhook/templatecheck"
)

// validateTemplate validates a template, and whether its patches apply to their values.
func (w *Webhook) validateTemplate(template *shipper.ReleaseEnvironment) field.ErrorList {
	path := field.NewPath("spec", "template")
	errs := templatecheck.Validate(template, path)
	if template.Resources != nil && template.ResourcesDigest != "" {
		errs = append(errs, field.Forbidden(path.Child("resourcesDigest"), "Shipper writes it in Releases: leave it out"))
	}
	if len(errs) > 0 || !values.LayersOf(template).Differ() || len(template.ValuesFrom) > 0 { // a source may add values
		return errs
	}
	return templatecheck.ValidatePatches(template, path, w.State.Clusters())
}

// warnOfUnusedValues warns of values for clusters, and for regions of a placement, that a Release will not use, as clusters are now.
func warnOfUnusedValues(a *response.Response, template *shipper.ReleaseEnvironment, choice []string, clusters []shipper.Cluster) {
	if len(choice) == 0 {
		return
	}
	var vain []string
	for _, values := range template.ValuesPerCluster {
		if !slices.Contains(choice, values.Name) {
			vain = append(vain, values.Name)
		}
	}
	if len(vain) > 0 {
		a.Warn("valuesPerCluster has values for %s, where it will not run as clusters are now: it is placed on %s",
			abridged(vain), abridged(choice))
	}
	if template.ClusterRequirements.Placement == nil { // templatecheck warns of regions that are not named
		return
	}
	var elsewhere []string
	for _, values := range template.ValuesPerRegion {
		if !slices.ContainsFunc(clusters, func(c shipper.Cluster) bool {
			return c.Spec.Region == values.Name && slices.Contains(choice, c.Name)
		}) {
			elsewhere = append(elsewhere, values.Name)
		}
	}
	if len(elsewhere) > 0 {
		a.Warn("valuesPerRegion has values for %s, where it will not run as clusters are now: it is placed on %s",
			abridged(elsewhere), abridged(choice))
	}
}

// pods counts the Pods of a Release at full capacity in each cluster. same is false when the clusters differ; otherwise each
// has as many as the first.
func (w *Webhook) pods(ctx context.Context, rel *shipper.Release, clusters []string) (counts []int32, same bool, err error) {
	if len(rel.Spec.Environment.ValuesFrom) > 0 {
		return []int32{0}, true, fmt.Errorf("release %s has values from ConfigMaps or Secrets, which are not merged here", rel.Name)
	}
	counts = make([]int32, max(len(clusters), 1))
	groups, err := render.GroupOf(ctx, rel, render.ClustersOf(w.State.Clusters(), clusters))
	if err != nil {
		return []int32{0}, true, err
	}
	for _, in := range groups {
		n, err := w.Charts.Replicas(ctx, rel, in.Cluster)
		if err != nil {
			return []int32{0}, true, err
		}
		for i := range counts {
			if len(in.Names) == 0 || slices.Contains(in.Names, clusters[i]) {
				counts[i] = n
			}
		}
	}
	return counts, len(slices.Compact(slices.Clone(counts))) == 1, nil
}

// perCluster describes the number of Pods per cluster where it differs.
func perCluster(rel *shipper.Release, clusters []string, counts []int32) string {
	var parts []string
	for i := 0; i < len(counts) && i < maxClustersNamed; i++ {
		parts = append(parts, fmt.Sprintf("%d in %s", counts[i], clusters[i]))
	}
	if more := len(counts) - len(parts); more > 0 {
		parts = append(parts, fmt.Sprintf("others in %d more", more))
	}
	return fmt.Sprintf("all Pods of Release %s are %s", rel.Name, strings.Join(parts, ", "))
}
