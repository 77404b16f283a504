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
	if in.Requirements.Placement != nil {
		return Decide(in), nil
	}
	chosen, err := Choose(in.App, in.Requirements, in.Clusters)
	d := Decision{Chosen: chosen, Wanted: len(chosen)}
	for i := range in.Clusters {
		v := Verdict{Cluster: in.Clusters[i].Name, Reason: shipper.PlacementNotNamed, Message: "is in another region"}
		if slices.Contains(chosen, v.Cluster) {
			v = Verdict{Cluster: v.Cluster, Chosen: true, Reason: shipper.PlacementPicked}
		}
		d.Verdicts = append(d.Verdicts, v)
	}
	slices.SortFunc(d.Verdicts, func(a, b Verdict) int { return strings.Compare(a.Cluster, b.Cluster) })
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
