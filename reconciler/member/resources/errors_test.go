// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"errors"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart/objects"
	"shipper.dev/shipper/reconciler/retry"
)

func TestAnObjectThatTheClusterRefusesIsNoInternalError(t *testing.T) {
	key := objects.Key{Group: "batch", Kind: "Job", Namespace: "work", Name: "a"}
	at := field.NewPath("spec", "template")
	type verdict struct {
		reason, message string
		action          retry.Action
	}
	for sentence, tc := range map[string]struct {
		err  error
		want verdict
	}{
		"a field that cannot change": {
			apierrors.NewInvalid(schema.GroupKind{Group: "batch", Kind: "Job"}, "a", field.ErrorList{
				field.Invalid(at, strings.Repeat("x", 4096), "field is immutable"),
			}),
			verdict{shipper.ObjectRefused, `Job work/a: Job.batch "a" is invalid: spec.template: Invalid value: …: field is immutable; ` +
				`what is there cannot be changed to that: keep these fields, give it another name, or delete it in the cluster`, retry.Recheck},
		},
		"a policy": {
			apierrors.NewForbidden(schema.GroupResource{Resource: "jobs"}, "a", errors.New("exceeded quota")),
			verdict{shipper.ObjectRefused, `Job work/a: jobs "a" is forbidden: exceeded quota`, retry.Recheck},
		},
		"an API server in trouble": {
			apierrors.NewInternalError(errors.New("x")),
			verdict{shipper.InternalError, `Job work/a: Internal error occurred: x`, retry.Retry},
		},
	} {
		err := together([]error{(&pass{}).explain(key, schema.GroupVersionKind{Group: "batch", Version: "v1", Kind: "Job"}, tc.err)})
		reason, action := retry.ClassifyInCluster(err)
		if got := (verdict{reason, err.Error(), action}); got != tc.want {
			t.Errorf("%s: %+v, want %+v", sentence, got, tc.want)
		}
	}
}
