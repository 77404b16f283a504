// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// This file holds the place of functions that are being written elsewhere, and is dropped when they are here.

// Select chooses clusters by the placement or the regions of in.Requirements. The error, an *Error, is only for regions.
func Select(in Input) (Decision, error) {
	var d Decision
	var err error
	p := in.Requirements.Placement
	var why func(*shipper.Cluster) (shipper.PlacementReason, string)
	switch {
	case p == nil:
		var chosen []string
		chosen, err = Choose(in.App, in.Requirements, in.Clusters)
		d.Wanted = len(chosen)
		why = func(c *shipper.Cluster) (shipper.PlacementReason, string) {
			if slices.Contains(chosen, c.Name) {
				return "", ""
			}
			return shipper.PlacementOutranked, "others are chosen"
		}
	case p.Type == shipper.PickFixed:
		d.Wanted = len(p.Clusters)
		why = func(c *shipper.Cluster) (shipper.PlacementReason, string) {
			if slices.Contains(p.Clusters, c.Name) {
				return "", ""
			}
			return shipper.PlacementNotNamed, "placement.clusters does not name it"
		}
	default:
		d.Wanted = len(in.Clusters)
		why = func(c *shipper.Cluster) (shipper.PlacementReason, string) {
			if in.Sticky && slices.Contains(in.Current, c.Name) {
				return "", ""
			}
			if len(c.Status.Conditions) == 0 {
				return shipper.PlacementNotJoined, "it has never been ready"
			}
			if t := c.Spec.Taints; len(t) > 0 && len(p.Tolerations) == 0 {
				return shipper.PlacementTainted, "tainted " + t[0].Key + "=" + t[0].Value + ":NoSchedule: tolerate it in placement.tolerations"
			}
			if p.Count != nil && len(d.Chosen) >= int(*p.Count) {
				return shipper.PlacementOutranked, "others rank higher"
			}
			return "", ""
		}
		if p.Count != nil {
			d.Wanted = int(*p.Count)
		}
	}
	clusters := slices.SortedFunc(slices.Values(in.Clusters), func(a, b shipper.Cluster) int { return strings.Compare(a.Name, b.Name) })
	for i := range clusters {
		v := Verdict{Cluster: clusters[i].Name}
		if v.Reason, v.Message = why(&clusters[i]); v.Reason == "" {
			if v.Chosen, v.Reason = true, shipper.PlacementPicked; slices.Contains(in.Current, v.Cluster) {
				v.Reason = shipper.PlacementKept
			}
			d.Chosen = append(d.Chosen, v.Cluster)
		}
		d.Verdicts = append(d.Verdicts, v)
	}
	if p != nil && p.Type != shipper.PickFixed && p.Count == nil {
		d.Wanted = len(d.Chosen)
	}
	return d, err
}

// Stay returns Current and Sticky of an Input for env: the clusters of newest, which may be nil, and whether env places as newest does.
func Stay(newest *shipper.Release, env *shipper.ReleaseEnvironment) (current []string, sticky bool) {
	if newest == nil || newest.Annotations[shipper.ReleaseClustersAnnotation] == "" {
		return nil, false
	}
	current = strings.Split(newest.Annotations[shipper.ReleaseClustersAnnotation], ",")
	return current, equality.Semantic.DeepEqual(newest.Spec.Environment.ClusterRequirements, env.ClusterRequirements)
}

// Validate returns the errors of a placement at path.
func Validate(_ *shipper.Placement, _ *field.Path) field.ErrorList { return nil }

// ValidateTaints returns the errors of the taints of a Cluster at path.
func ValidateTaints(_ []shipper.ClusterTaint, _ *field.Path) field.ErrorList { return nil }

// ValidateProperties returns the errors of the properties of a Cluster at path.
func ValidateProperties(_ map[string]string, _ *field.Path) field.ErrorList { return nil }
