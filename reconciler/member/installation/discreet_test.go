// SPDX-License-Identifier: Apache-2.0

package installation

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart"
	"shipper.dev/shipper/chart/render"
	"shipper.dev/shipper/chart/values"
	"shipper.dev/shipper/reconciler/retry"
)

func TestErrorsDoNotQuoteWhatIsSecret(t *testing.T) {
	const canary = "k33p-this"
	from := func(source shipper.ValuesSource) sources {
		return sources{pinned: values.Pinned{From: []shipper.ValuesSource{source}}}
	}
	secret := from(shipper.ValuesSource{SecretKeyRef: &shipper.ValuesKeyRef{Name: "x"}})
	plain := from(shipper.ValuesSource{ConfigMapKeyRef: &shipper.ValuesKeyRef{Name: "x"}})
	invalid := apierrors.NewInvalid(schema.GroupKind{Kind: "Service"}, "web", field.ErrorList{
		field.Invalid(field.NewPath("spec", "ports").Index(0).Child("port"), canary, "is not a number "+canary),
	})
	type verdict struct {
		Reason  string
		Remedy  retry.Action
		Message string
	}
	for sentence, tc := range map[string]struct {
		of   sources
		err  error
		want verdict
	}{
		"an API server says which field": {
			secret, fmt.Errorf("installing Service web: %w", invalid),
			verdict{shipper.InternalError, retry.Recheck,
				"the API server answers Invalid, for spec.ports[0].port (FieldValueInvalid)" + chart.Unsaid},
		},
		"a template is not quoted": {
			secret, ofChart(secret.discreet(&chart.Error{Reason: shipper.ChartError, Message: canary})),
			verdict{shipper.ChartError, retry.Wait, "the chart cannot be rendered with these values" + chart.Unsaid},
		},
		"unknown text is hidden": {
			secret, errors.New(canary), verdict{shipper.InternalError, retry.Retry, "it failed" + chart.Unsaid},
		},
		"text of this package is shown": {secret, waiting("x is there"), verdict{shipper.InProgress, retry.Recheck, "x is there"}},
		"a lost cluster is shown": {
			secret, fmt.Errorf("Get https://cluster/services/%s: %w", canary, context.DeadlineExceeded),
			verdict{shipper.ClusterUnreachable, retry.Retry, "the cluster cannot be reached, or does not answer in time"},
		},
		"a conflict stays one": {
			secret, fmt.Errorf("installing: %w", apierrors.NewConflict(schema.GroupResource{}, canary, errors.New("changed"))),
			verdict{shipper.InProgress, retry.Requeue, "the API server answers Conflict" + chart.Unsaid},
		},
		"without Secrets all is shown": {plain, errors.New(canary), verdict{shipper.InternalError, retry.Retry, canary}},
	} {
		t.Run(sentence, func(t *testing.T) {
			got := tc.of.discreet(tc.err)
			reason, remedy := retry.ClassifyInCluster(got)
			if diff := cmp.Diff(tc.want, verdict{reason, remedy, got.Error()}); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// rendered is what a chart renders to, with values that were held.
type rendered map[string]any

func (r rendered) Render(_ context.Context, s Source, _ render.Target, _ Find) (render.Manifest, error) {
	s.Later.Layers.Base = r
	return render.Again([]unstructured.Unstructured{{Object: map[string]any{
		"kind": "Secret", "metadata": map[string]any{"name": "it"}, "stringData": map[string]any{"password": "hunter2"},
	}}}, nil), nil
}

// TestDigestsOfWhatIsSecretCannotBeTried renders one Secret, of values that are held in a Secret or in a ConfigMap.
func TestDigestsOfWhatIsSecretCannotBeTried(t *testing.T) {
	digestOf := func(from shipper.ValuesSource, held rendered) string {
		t.Helper()
		s := sources{pinned: values.Pinned{From: []shipper.ValuesSource{from}}}
		source, of := Source{Later: &Later{Pinned: s.pinned}}, render.Target{Naming: shipper.NamingByApplication}
		got, err := (&rendering{renderer: held, sources: s}).render(t.Context(), source, of, nil)
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

// TestObjectsThatMayHoldASecretAreNamedByTheirPlace gives a kind, a name and a namespace the text of a Secret.
func TestObjectsThatMayHoldASecretAreNamedByTheirPlace(t *testing.T) {
	const canary = "k33p-this"
	hidden := shipper.ValuesSource{SecretKeyRef: &shipper.ValuesKeyRef{Name: "x"}}
	open := shipper.ValuesSource{ConfigMapKeyRef: &shipper.ValuesKeyRef{Name: "x"}}
	object := func(kind, name string) wanted {
		return wanted{content: &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": kind, "metadata": map[string]any{"name": name},
		}}}
	}
	entry := item{APIVersion: "v1", Kind: canary, Name: canary}
	invalid := apierrors.NewInvalid(schema.GroupKind{Group: "example.com", Kind: canary}, canary, field.ErrorList{
		field.Invalid(field.NewPath("spec").Child(canary), canary, canary),
		field.Invalid(field.NewPath("metadata", "labels").Key(canary), canary, canary),
	})
	of := func(source shipper.ValuesSource) *installer {
		it := &shipper.InstallationTarget{}
		it.Name, it.Namespace = "web-1", "team"
		return &installer{
			it: it, all: []wanted{object("Service", "web"), object(canary, canary)},
			rendering: &rendering{sources: sources{pinned: values.Pinned{From: []shipper.ValuesSource{source}}}},
		}
	}
	run := shipper.HookRun{Event: "pre-install", Kind: canary, Name: canary, Message: "it did not end within 5m0s", Attempt: 1}
	met := func(i *installer) map[string]error {
		return map[string]error{
			"a kind the cluster does not know": broken("%s is of a kind the cluster does not know", i.called(entry)),
			"another namespace":                i.elsewhere(entry, canary),
			"an object of others":              conflict("%s cannot be installed: it belongs to others", i.called(entry)),
			"an API server that refuses it":    i.about("installing "+i.called(entry), invalid),
			"words around it":                  fmt.Errorf("asking for the kind %s: %w", canary, invalid),
			"a cluster that is away":           fmt.Errorf("Get https://cluster/%s: %w", canary, context.DeadlineExceeded),
			"a hook that fails":                i.failed(run),
			"objects that are being removed":   waiting("waiting until these are gone: %s", list(i.it, []item{entry})),
		}
	}
	got := map[string]string{}
	secret := of(hidden)
	secret.it.Spec.ValuesFrom = []shipper.ValuesSource{hidden}
	for what, err := range met(secret) {
		got[what] = secret.discreet(err).Error()
	}
	want := map[string]string{
		"a kind the cluster does not know": "object 2 is of a kind the cluster does not know",
		"another namespace":                `object 2 of the chart is for another namespace; it can only be installed in "team"`,
		"an object of others":              "object 2 cannot be installed: it belongs to others",
		"an API server that refuses it": "installing object 2: the API server answers Invalid, for spec (FieldValueInvalid), " +
			"metadata (FieldValueInvalid)" + chart.Unsaid,
		"words around it":        "the API server answers Invalid, for spec (FieldValueInvalid), metadata (FieldValueInvalid)" + chart.Unsaid,
		"a cluster that is away": "the cluster cannot be reached, or does not answer in time",
		"a hook that fails": "hook pre-install: object 2 failed: it did not end within 5m0s; change the chart or its values, or have it run " +
			"again: kubectl -n team annotate release web-1 shipper.booking.com/release.hooks.retry=2 --overwrite",
		"objects that are being removed": "waiting until these are gone: 1 objects",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("with a Secret (-want +got):\n%s", diff)
	}
	plain := of(open)
	for what, err := range met(plain) {
		if text := plain.discreet(err).Error(); !strings.Contains(text, canary) {
			t.Errorf("without a Secret, %s does not name the object: %s", what, text)
		}
	}
	unhealthy := &shipper.UnhealthyObject{Name: canary, Message: "pods " + canary + " is forbidden"}
	secret.withheld(entry, unhealthy)
	if diff := cmp.Diff(&shipper.UnhealthyObject{Name: "object 2", Message: "pods object 2 is forbidden"}, unhealthy); diff != "" {
		t.Errorf("in status (-want +got):\n%s", diff)
	}
}
