// SPDX-License-Identifier: Apache-2.0

package strategy_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"shipper.dev/shipper/apis/rules/stamp"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/admission/ask"
	"shipper.dev/shipper/webhook/response"
	"shipper.dev/shipper/webhook/strategy"
)

func shared(steps ...shipper.RolloutStrategyStep) *shipper.Strategy {
	return &shipper.Strategy{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "careful"}, Spec: shipper.RolloutStrategy{Steps: steps},
	}
}

func TestStrategies(t *testing.T) {
	steps := []shipper.RolloutStrategyStep{ask.Step("canary", 100, 10, 90, 10), ask.Step("full on", 0, 100, 0, 100)}
	careful, edited := shared(steps...), shared(steps[1])
	from := &shipper.StrategyReference{Name: "careful", Digest: "x"}
	app := ask.Application()
	app.Spec.Template.Strategy = &shipper.RolloutStrategy{From: from}
	taken := ask.Release(stamp.WithStrategy(app, &careful.Spec), nil)
	labelled := careful.DeepCopy()
	labelled.Labels = map[string]string{"a": "b"}
	unlike := func(edit func(*shipper.RolloutStrategy)) *shipper.Strategy {
		s := careful.DeepCopy()
		edit(&s.Spec)
		return s
	}
	const invalid = `Strategy.shipper.booking.com "careful" is invalid: spec`
	for sentence, tc := range map[string]struct {
		req     *admission.Request
		refused string
		warned  []string
	}{
		"one for charts may be created":    {ask.Create(ask.Developer, careful), "", nil},
		"one for resources may be created": {ask.Create(ask.Developer, shared()), "", nil},
		"not one that takes another": {
			ask.Create(ask.Developer, unlike(func(s *shipper.RolloutStrategy) { s.From = from })),
			invalid + ".from: Forbidden: a Strategy takes nothing from another one", nil,
		},
		"nor one with fields for charts and for resources": {
			ask.Create(ask.Developer, unlike(func(s *shipper.RolloutStrategy) { s.Rolling = &shipper.RollingClusters{} })),
			invalid + ".rolling: Forbidden: only for resources: a chart has steps", nil,
		},
		"waves without steps are for resources": {
			ask.Create(ask.Developer, unlike(func(s *shipper.RolloutStrategy) { s.Steps, s.Waves = nil, []shipper.Wave{{Name: "all"}} })),
			"", nil,
		},
		"what is probably not intended is a warning": {
			ask.Create(ask.Developer, unlike(func(s *shipper.RolloutStrategy) { s.OnFailure = shipper.OnFailureAbort })), "",
			[]string{"onFailure is Abort and has no effect: nothing fails without progressDeadline"},
		},
		"an edit names who takes it": {
			ask.Update(ask.Developer, edited, careful), "",
			[]string{"Application default/super-server takes it: the Releases that exist keep what they took, the next edit of an Application " +
				"takes this"},
		},
		"other labels are no edit": {ask.Update(ask.Developer, labelled, careful), "", nil},
		"a deletion names whose next edit is refused": {
			ask.Delete(ask.Developer, careful), "",
			[]string{"Application default/super-server takes it: the Releases that exist keep what they took, and the next edit of an " +
				"Application is refused until there is a Strategy default/careful"},
		},
		"a deletion of one that is not taken has no warning": {
			ask.Delete(ask.Developer, &shipper.Strategy{ObjectMeta: metav1.ObjectMeta{Namespace: "other", Name: "careful"}}), "", nil,
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			a := &response.Response{}
			w := &strategy.Webhook{State: ask.Know(t, ask.Grant(), client.Object(taken)).State}
			err := w.Validate(t.Context(), tc.req, a)
			if decision := response.Invalid; tc.refused != "" {
				ask.CheckRefusal(t, err, decision, tc.refused)
				return
			}
			ask.CheckRefusal(t, err, "", "")
			if diff := cmp.Diff(tc.warned, a.Warnings()); diff != "" {
				t.Errorf("warnings (-want +got)\n%s", diff)
			}
		})
	}
}
