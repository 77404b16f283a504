// SPDX-License-Identifier: Apache-2.0

package retry_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"shipper.dev/shipper/reconciler/retry"
)

var job = schema.GroupKind{Group: "batch", Kind: "Job"}

// refusal is what an API server answers to an object that is not valid.
func refusal(errs ...*field.Error) error {
	return fmt.Errorf("installing Job %q: %w", "migrate", apierrors.NewInvalid(job, "migrate", errs))
}

// untyped is what one answers to server-side apply of an object that does not fit the schema.
func untyped() error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: 500,
		Message: `failed to create typed patch object (a/web; apps/v1, Kind=Deployment): .spec.x: field not declared in schema`,
	}}
}

func TestWhatIsWrongOutlivesALargeValue(t *testing.T) {
	template := corev1.PodTemplateSpec{}
	template.Annotations = map[string]string{"a": strings.Repeat("x", 4096)}
	at := field.NewPath("spec", "template")
	for sentence, tc := range map[string]struct {
		err  error
		want string
	}{
		"one field": {
			refusal(field.Invalid(at, template, "field is immutable")),
			`installing Job "migrate": Job.batch "migrate" is invalid: spec.template: Invalid value: …: field is immutable`,
		},
		"several fields": {
			refusal(field.Invalid(at, template, "field is immutable"), field.Required(at.Child("spec"), "say it"),
				field.Invalid(at.Child("x"), strings.Repeat("x", 2000), "too long")),
			`installing Job "migrate": Job.batch "migrate" is invalid: [spec.template: Invalid value: …: field is immutable, ` +
				`spec.template.spec: Required value: say it, spec.template.x: Invalid value: …: too long]`,
		},
		"a short message keeps its values": {
			refusal(field.Invalid(at, strings.Repeat("x", 200), "field is immutable")),
			`installing Job "migrate": Job.batch "migrate" is invalid: spec.template: Invalid value: "` + strings.Repeat("x", 200) +
				`": field is immutable`,
		},
	} {
		if got := retry.Brief(tc.err); got != tc.want {
			t.Errorf("%s: %s", sentence, got)
		}
	}
}

func TestRefusalsOfObjectsAreTold(t *testing.T) {
	at := field.NewPath("spec")
	terminating := apierrors.NewForbidden(rels, "x", errors.New("x"))
	terminating.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	const statefulSet = "updates to statefulset spec for fields other than 'replicas', 'template' are forbidden"
	const claim, pod = "spec is immutable after creation except resources.requests", "pod updates may not change fields other than `image`"
	type verdict struct{ invalid, rejected, immutable bool }
	for sentence, tc := range map[string]struct {
		err  error
		want verdict
	}{
		"a value":                     {refusal(field.Invalid(at, 1, "must be positive")), verdict{invalid: true, rejected: true}},
		"a body that is no JSON":      {apierrors.NewBadRequest("x"), verdict{invalid: true, rejected: true}},
		"a body that is too large":    {apierrors.NewRequestEntityTooLargeError("x"), verdict{invalid: true, rejected: true}},
		"a field that its kind lacks": {untyped(), verdict{invalid: true, rejected: true}},
		"a policy":                    {forbidden("denied by policy"), verdict{rejected: true}},
		"a namespace that is going":   {terminating, verdict{}},
		"an API server in trouble":    {apierrors.NewInternalError(errors.New("failed to create typed patch object")), verdict{}},
		"no answer":                   {refused, verdict{}},
		"a template of a Job":         {refusal(field.Invalid(at, 1, "field is immutable")), verdict{true, true, true}},
		"a text that says immutable": {
			refusal(field.Invalid(at, "is immutable\x00: it cannot change\": x", "must be a name")), verdict{invalid: true, rejected: true},
		},
		"an object that says immutable": {
			refusal(field.Invalid(at, map[string]string{"note": "field is immutable"}, "must be a name")), verdict{invalid: true, rejected: true},
		},
		"a choice that says immutable": {
			refusal(field.NotSupported(at, "field is immutable", []string{"a"})), verdict{invalid: true, rejected: true},
		},
		"such a text that cannot change": {refusal(field.Invalid(at, "must be a name", "field is immutable")), verdict{true, true, true}},
		"the second of two errors": {
			refusal(field.Invalid(at, 1, "must be positive"), field.Invalid(at, 1, "field is immutable")), verdict{true, true, true},
		},
		"an address of a Service":         {refusal(field.Invalid(at, 1, "may not change once set")), verdict{true, true, true}},
		"claims of a StatefulSet":         {refusal(field.Forbidden(at, statefulSet)), verdict{true, true, true}},
		"a claim":                         {refusal(field.Forbidden(at, claim)), verdict{true, true, true}},
		"a Pod":                           {refusal(field.Forbidden(at, pod)), verdict{true, true, true}},
		"a value of a PriorityClass":      {refusal(field.Forbidden(at, "may not be changed in an update.")), verdict{true, true, true}},
		"a role of a binding, long ago":   {refusal(field.Invalid(at, 1, "cannot change roleRef")), verdict{true, true, true}},
		"a provisioner of a StorageClass": {refusal(field.Forbidden(at, "updates to provisioner are forbidden.")), verdict{true, true, true}},
	} {
		if got := (verdict{retry.Invalid(tc.err), retry.Rejected(tc.err), retry.Immutable(tc.err)}); got != tc.want {
			t.Errorf("%s: %+v, want %+v", sentence, got, tc.want)
		}
	}
}
