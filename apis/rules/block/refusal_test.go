// SPDX-License-Identifier: Apache-2.0

package block_test

import (
	"errors"
	"net/http"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"shipper.dev/shipper/apis/rules/block"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

func TestRefusedBy(t *testing.T) {
	refusal := func(reason metav1.StatusReason, message string, causes ...metav1.StatusCause) error {
		return &apierrors.StatusError{ErrStatus: metav1.Status{
			Code: http.StatusForbidden, Reason: reason, Message: message, Details: &metav1.StatusDetails{Causes: causes},
		}}
	}
	cause := metav1.StatusCause{Type: shipper.CauseRolloutBlock, Field: "global/dns", Message: "global/dns: no"}
	for sentence, tc := range map[string]struct {
		err  error
		want string
	}{
		"the webhook": {refusal(metav1.StatusReasonForbidden, "any text", cause), "global/dns"},
		"the policy": {refusal(metav1.StatusReasonForbidden,
			"denied request: rollouts blocked by: default/demo (no; ann)"), "default/demo"},
		"the policy, as an invalidity": {refusal(metav1.StatusReasonInvalid, `"rollouts blocked by: default/demo"`), "default/demo"},
		"the text in another error":    {refusal(metav1.StatusReasonInternalError, "rollouts blocked by: default/demo"), ""},
		"a cause of another kind": {refusal(metav1.StatusReasonForbidden, "no", metav1.StatusCause{Type: "FieldValueInvalid",
			Field: "spec"}), ""},
		"no status": {errors.New("rollouts blocked by: default/demo"), ""},
		"no error":  {nil, ""},
	} {
		if got := block.RefusedBy(tc.err); got != tc.want {
			t.Errorf("%s: got %q, want %q", sentence, got, tc.want)
		}
	}
}
