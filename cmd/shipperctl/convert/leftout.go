// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"cmp"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// leftOutDetails say what an object of KubeFleet that is not converted does, by kind.
var leftOutDetails = map[string]func(document) (string, error){
	"ClusterResourcePlacementEviction":         evictionOf,
	"ClusterResourcePlacementDisruptionBudget": budgetOf,
}

// insteadOf says what an object of KubeFleet does that is not converted, and what to do instead.
func insteadOf(d document) string {
	advice := cmp.Or(leftOutOfFleet[d.GetKind()], "this kind, or this version of it, is not known")
	details := leftOutDetails[d.GetKind()]
	if details == nil {
		return advice
	}
	text, err := details(d)
	if err != nil {
		return advice + " (its spec cannot be read: " + err.Error() + ")"
	}
	if text == "" {
		return advice
	}
	return text + ": " + advice
}

// specOf decodes the spec of a document. Fields of another type are errors; unknown ones are not.
func specOf[T any](d document) (out struct {
	Spec T `json:"spec"`
}, err error) {
	err = runtime.DefaultUnstructuredConverter.FromUnstructured(d.Object, &out)
	return out, err
}

// evictionOf words what is removed from which cluster.
func evictionOf(d document) (string, error) {
	from, err := specOf[struct {
		Placement string `json:"placementName"`
		Cluster   string `json:"clusterName"`
	}](d)
	if from.Spec.Placement == "" {
		return "", err
	}
	return fmt.Sprintf("removes once what %s has placed from cluster %s", from.Spec.Placement, from.Spec.Cluster), err
}

// budgetOf words a budget of evictions, with its number.
func budgetOf(d document) (string, error) {
	from, err := specOf[struct {
		MaxUnavailable *intstr.IntOrString `json:"maxUnavailable"`
		MinAvailable   *intstr.IntOrString `json:"minAvailable"`
	}](d)
	switch is := &from.Spec; {
	case is.MaxUnavailable != nil:
		return fmt.Sprintf("refuses evictions that leave more than %s clusters of %s unavailable", is.MaxUnavailable, d.GetName()), err
	case is.MinAvailable != nil:
		return fmt.Sprintf("refuses evictions that leave less than %s clusters of %s available", is.MinAvailable, d.GetName()), err
	}
	return "", err
}
