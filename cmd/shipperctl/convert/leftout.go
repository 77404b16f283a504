// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"cmp"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// leftOutDetails say what an object of KubeFleet that is not converted does, by kind.
var leftOutDetails = map[string]func(document) (string, error){
	"ClusterStagedUpdateStrategy":              stagesOf,
	"StagedUpdateStrategy":                     stagesOf,
	"ClusterStagedUpdateRun":                   runOf,
	"StagedUpdateRun":                          runOf,
	"ClusterApprovalRequest":                   approvalOf,
	"ApprovalRequest":                          approvalOf,
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

// selectorText words a selector of clusters in stages: without one they have no cluster.
func selectorText(s *metav1.LabelSelector) string {
	switch {
	case s == nil:
		return "no cluster"
	case len(s.MatchLabels)+len(s.MatchExpressions) == 0:
		return "every cluster"
	}
	return "clusters with " + metav1.FormatLabelSelector(s)
}

// stagesOf words the stages of a strategy.
func stagesOf(d document) (string, error) {
	from, err := specOf[updateStrategy](d)
	var out []string
	for _, s := range from.Spec.Stages {
		text := fmt.Sprintf("stage %s has %s, %s at a time", s.Name, selectorText(s.LabelSelector),
			cmp.Or(s.MaxConcurrency, new(intstr.FromInt32(1))))
		if s.SortingLabelKey != "" {
			text += ", in the order of label " + s.SortingLabelKey
		}
		for _, task := range s.Before {
			text += ", before it " + task.String()
		}
		for _, task := range s.After {
			text += ", after it " + task.String()
		}
		out = append(out, text)
	}
	return strings.Join(out, "; "), err
}

// runOf words which placement a run carries out, and whether it has begun.
func runOf(d document) (string, error) {
	from, err := specOf[updateRun](d)
	if from.Spec.PlacementName == "" {
		return "", err
	}
	content := "the newest content"
	if from.Spec.Index != "" {
		content = "the content of snapshot " + from.Spec.Index
	}
	return fmt.Sprintf("places %s of %s by strategy %s, state %s", content, from.Spec.PlacementName, from.Spec.Strategy,
		cmp.Or(from.Spec.State, "Initialize (not begun)")), err
}

// approvalOf words what is approved.
func approvalOf(d document) (string, error) {
	from, err := specOf[approvalRequest](d)
	if from.Spec.Run == "" {
		return "", err
	}
	return fmt.Sprintf("approves stage %s of run %s", from.Spec.Stage, from.Spec.Run), err
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
