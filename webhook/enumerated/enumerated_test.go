// SPDX-License-Identifier: Apache-2.0

package enumerated_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/webhook/enumerated"
)

func TestAValueThatTheSchemaDoesNotListIsRefusedByOneMessage(t *testing.T) {
	app := func(policy shipper.DriftPolicy, takeOver shipper.TakeOverPolicy, operators ...shipper.TolerationOperator) *shipper.Application {
		out := &shipper.Application{ObjectMeta: metav1.ObjectMeta{Name: "web"}}
		out.Spec.DriftPolicy = policy
		if takeOver != "" {
			out.Spec.Template.Apply = &shipper.Apply{TakeOver: takeOver}
		}
		if len(operators) > 0 {
			out.Spec.Template.ClusterRequirements.Placement = &shipper.Placement{}
		}
		for _, operator := range operators {
			p := out.Spec.Template.ClusterRequirements.Placement
			p.Tolerations = append(p.Tolerations, shipper.ClusterToleration{Key: "a", Operator: operator})
		}
		return out
	}
	const invalid = `Application.shipper.booking.com "web" is invalid: `
	const takeOver = `spec.template.apply.takeOver: Unsupported value: "never": supported values: "Never", "IfNoDiff", "Always"`
	const driftPolicy = `spec.driftPolicy: Unsupported value: "correct": supported values: "Ignore", "Report", "Correct", "Halt"`
	for sentence, tc := range map[string]struct {
		now, old *shipper.Application
		want     string
	}{
		"listed values":       {app("Correct", shipper.TakeOverNever), nil, ""},
		"no values":           {app("", ""), nil, ""},
		"a field of the spec": {app("correct", ""), nil, invalid + driftPolicy},
		"what it was before":  {app("correct", ""), app("correct", ""), ""},
		"another than before": {app("correct", ""), app("Correct", ""), invalid + driftPolicy},
		"behind a pointer":    {app("", "never"), nil, invalid + takeOver},
		"two fields":          {app("correct", "never"), nil, invalid + "[" + driftPolicy + ", " + takeOver + "]"},
		"an element of a list": {app("", "", "Exists", "exists"), nil, invalid + "spec.template.clusterRequirements.placement.tolerations[1]." +
			`operator: Unsupported value: "exists": supported values: "Equal", "Exists"`},
		"a status is not asked": {
			&shipper.Application{Status: shipper.ApplicationStatus{Summary: &shipper.ApplicationSummary{Health: "so"}}}, nil, "",
		},
	} {
		got := ""
		if err := enumerated.Check("Application", "web", tc.now, tc.old); err != nil {
			got = err.Error()
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", sentence, diff)
		}
	}
}
