// SPDX-License-Identifier: Apache-2.0

package installation

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart"
	"shipper.dev/shipper/reconciler/retry"
)

func TestAnObjectThatTheClusterRefusesIsNoInternalError(t *testing.T) {
	large := map[string]any{"spec": strings.Repeat("x", 4096)}
	invalid := func(kind string, errs ...*field.Error) error {
		return apierrors.NewInvalid(schema.GroupKind{Kind: kind}, "it", errs)
	}
	immutable := field.Invalid(field.NewPath("spec", "template"), large, "field is immutable")
	wrong := field.Invalid(field.NewPath("spec", "replicas"), -1, "must be positive")
	const keep = "Keep the fields that cannot change by values of the chart, or give it another name"
	secret := rendering{sources: sourcesOf(&shipper.InstallationTarget{Spec: shipper.InstallationTargetSpec{Chart: &shipper.Chart{}}})}
	secret.sources.found = true
	type verdict struct {
		Reason, Message string
		Action          retry.Action
	}
	for sentence, tc := range map[string]struct {
		kind  string
		there bool
		of    rendering
		err   error
		want  verdict
	}{
		"a template of a Job that is there": {
			kind: "Job", there: true, err: invalid("Job", immutable), want: verdict{shipper.ObjectConflict, `Job "it" is there and cannot become ` +
				`what the chart says: Job "it" is invalid: spec.template: Invalid value: …: field is immutable. ` + keep +
				`, or make it a hook of the chart, which runs anew each time`, retry.Recheck},
		},
		"a type of a Secret, in an object that may hold secret values": {
			kind: "Secret", there: true, of: secret, err: invalid("Secret", field.Invalid(field.NewPath("type"), "x", "field is immutable")),
			want: verdict{shipper.ObjectConflict, `Secret "it" is there and cannot become what the chart says: the API server answers Invalid, ` +
				`for type (FieldValueInvalid)` + chart.Unsaid + `. ` + keep + `, or delete it in the cluster: Shipper creates it again`, retry.Recheck},
		},
		"a wrong value of an object that is there": {
			kind: "Deployment", there: true, err: invalid("Deployment", wrong), want: verdict{shipper.ChartError,
				`installing it: Deployment "it" is invalid: spec.replicas: Invalid value: -1: must be positive`, retry.Recheck},
		},
		"a new object that is wrong": {
			kind: "Job", err: invalid("Job", wrong), want: verdict{shipper.ChartError,
				`installing it: Job "it" is invalid: spec.replicas: Invalid value: -1: must be positive`, retry.Recheck},
		},
		"a field that the kind lacks": {
			kind: "Job", err: &apierrors.StatusError{ErrStatus: metav1.Status{
				Code: 500, Message: "failed to create typed patch object (x): .spec.x: field not declared in schema",
			}}, want: verdict{shipper.ChartError,
				`installing it: failed to create typed patch object (x): .spec.x: field not declared in schema`, retry.Recheck},
		},
		"a policy of the cluster": {
			kind: "Job", err: apierrors.NewForbidden(schema.GroupResource{Resource: "jobs"}, "it", errors.New("exceeded quota")),
			want: verdict{shipper.ObjectRefused, `installing it: jobs "it" is forbidden: exceeded quota`, retry.Recheck},
		},
		"an API server in trouble": {
			kind: "Job", err: apierrors.NewInternalError(errors.New("x")),
			want: verdict{shipper.InternalError, `installing it: Internal error occurred: x`, retry.Retry},
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			i, s := &installer{rendering: &tc.of}, step{item: item{Kind: tc.kind, Name: "it"}}
			if tc.there {
				s.live = &metav1.PartialObjectMetadata{}
			}
			err := i.refused(t.Context(), s, "installing it", tc.err)
			reason, action := retry.ClassifyInCluster(err)
			if diff := cmp.Diff(tc.want, verdict{reason, err.Error(), action}); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestFieldsThatCannotChangeAreNamedWhereTheAPIServerDoesNot(t *testing.T) {
	claim := func(size string, more ...string) map[string]any {
		out := map[string]any{"metadata": map[string]any{"name": "data"}, "spec": map[string]any{"size": size}}
		for _, name := range more {
			out[name] = "by default"
		}
		return out
	}
	wanted := map[string]any{
		"replicas": int64(2), "serviceName": "db", "podManagementPolicy": nil, "ordinals": nil, "volumeClaimTemplates": []any{claim("2Gi")},
		"selector": map[string]any{"matchLabels": map[string]any{"app": "db"}},
	}
	is := map[string]any{
		"replicas": int64(1), "serviceName": "db", "volumeClaimTemplates": []any{claim("1Gi", "status")},
		"selector": map[string]any{"matchLabels": map[string]any{"app": "db"}}, "revisionHistoryLimit": int64(10),
		"podManagementPolicy": "OrderedReady",
	}
	const list = "'replicas', 'ordinals', 'template', 'updateStrategy' and 'minReadySeconds' are forbidden"
	if diff := cmp.Diff([]string{"volumeClaimTemplates"}, differing(wanted, is, list)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	wanted["volumeClaimTemplates"] = []any{claim("1Gi")}
	if got := differing(wanted, is, list); got != nil {
		t.Errorf("of equal claims: %s", got)
	}
}
