// SPDX-License-Identifier: Apache-2.0

package installation

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart"
	"shipper.dev/shipper/reconciler/fleet"
)

func TestErrorsDoNotQuoteWhatIsSecret(t *testing.T) {
	const canary = "k33p-this"
	from := func(source shipper.ValuesSource) sources {
		return sources{pinned: chart.Pinned{From: []shipper.ValuesSource{source}}}
	}
	secret := from(shipper.ValuesSource{SecretKeyRef: &shipper.ValuesKeyRef{Name: "x"}})
	plain := from(shipper.ValuesSource{ConfigMapKeyRef: &shipper.ValuesKeyRef{Name: "x"}})
	invalid := apierrors.NewInvalid(shipper.GroupVersion.WithKind("Service").GroupKind(), "web", field.ErrorList{
		field.Invalid(field.NewPath("spec", "ports").Index(0).Child("port"), canary, "is not a number "+canary),
	})
	type verdict struct {
		Reason  string
		Remedy  fleet.Remedy
		Message string
	}
	for sentence, tc := range map[string]struct {
		of   sources
		err  error
		want verdict
	}{
		"an API server says which field": {
			secret, fmt.Errorf("installing Service web: %w", invalid),
			verdict{shipper.InternalError, fleet.Recheck,
				"installing Service web: the API server answers Invalid, for spec.ports[0].port (FieldValueInvalid)" + chart.Unsaid},
		},
		"a template is not quoted": {
			secret, ofChart(secret.discreet(&chart.Error{Reason: shipper.ChartError, Message: canary})),
			verdict{shipper.ChartError, fleet.Wait, "the chart cannot be rendered with these values" + chart.Unsaid},
		},
		"what could be anything is not told": {
			secret, errors.New(canary), verdict{shipper.InternalError, fleet.Retry, "it failed" + chart.Unsaid},
		},
		"what is worded here is told": {secret, waiting("x is there"), verdict{shipper.InProgress, fleet.Recheck, "x is there"}},
		"that a cluster is away is told": {
			secret, context.DeadlineExceeded, verdict{shipper.ClusterUnreachable, fleet.Retry, "context deadline exceeded"},
		},
		"where nothing is secret all is told": {plain, errors.New(canary), verdict{shipper.InternalError, fleet.Retry, canary}},
	} {
		t.Run(sentence, func(t *testing.T) {
			got := tc.of.discreet(tc.err)
			reason, remedy := fleet.Classify(got)
			if diff := cmp.Diff(tc.want, verdict{reason, remedy, got.Error()}); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// rendered is what a chart renders to, with values that were held.
type rendered map[string]any

func (r rendered) Render(_ context.Context, s Source, _ chart.Target) ([]unstructured.Unstructured, error) {
	s.Later.Layers.Base = r
	return []unstructured.Unstructured{{Object: map[string]any{"kind": "Secret", "stringData": map[string]any{"password": "hunter2"}}}}, nil
}

// TestDigestsOfWhatIsSecretCannotBeTried renders one Secret, of values that are held in a Secret or in a ConfigMap.
func TestDigestsOfWhatIsSecretCannotBeTried(t *testing.T) {
	digestOf := func(from shipper.ValuesSource, held rendered) string {
		t.Helper()
		s := sources{pinned: chart.Pinned{From: []shipper.ValuesSource{from}}}
		got, err := newRendering(t.Context(), held, s).render(Source{Later: &Later{Pinned: s.pinned}}, chart.Target{})
		if err != nil {
			t.Fatal(err)
		}
		return got[0].digest
	}
	secret := shipper.ValuesSource{SecretKeyRef: &shipper.ValuesKeyRef{Name: "x"}}
	plain := shipper.ValuesSource{ConfigMapKeyRef: &shipper.ValuesKeyRef{Name: "x"}}
	one, other := rendered{"password": "hunter2"}, rendered{"password": "hunter2", "more": true}
	fast := digestOf(plain, one)
	if slow := digestOf(secret, one); slow == fast || slow != digestOf(secret, one) || slow == digestOf(secret, other) {
		t.Errorf("the digest is %s, without a key %s", slow, fast)
	}
}
