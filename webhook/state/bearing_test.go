// SPDX-License-Identifier: Apache-2.0

package state_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/webhook/state"
)

func TestOverridesThatWouldBearOnAnApplicationAreThoseOfItsNamespaceAndTheGlobalOne(t *testing.T) {
	one := func(namespace, name string, spec shipper.ResourceOverrideSpec) *shipper.ResourceOverride {
		spec.Resources = []shipper.OverriddenResource{{Kind: "Secret"}}
		spec.Rules = []shipper.OverrideRule{{
			ClusterTerms: []shipper.OverrideClusterTerm{{Names: []string{"eu"}}},
			Patch:        []shipper.PatchOperation{{"op": "add", "path": "/data/password", "value": "secret"}},
		}}
		return &shipper.ResourceOverride{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: spec}
	}
	scheme := runtime.NewScheme()
	if err := shipper.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	server := fake.NewClientBuilder().WithScheme(scheme).WithObjects(
		one("shop", "late", shipper.ResourceOverrideSpec{Priority: 1}),
		one("shop", "of-web", shipper.ResourceOverrideSpec{ApplicationNames: []string{"web"}}),
		one("shop", "of-api", shipper.ResourceOverrideSpec{ApplicationNames: []string{"api"}}),
		one("other", "all", shipper.ResourceOverrideSpec{}),
		one("global", "must", shipper.ResourceOverrideSpec{Mandatory: true}),
		one("global", "may", shipper.ResourceOverrideSpec{}),
	).Build()
	app := &shipper.Application{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
	copied := func(name string, mandatory bool) shipper.ReleaseOverride {
		return shipper.ReleaseOverride{Name: name, Global: name[:2] == "gl", Mandatory: mandatory, Rules: []shipper.OverrideRule{{
			ClusterTerms: []shipper.OverrideClusterTerm{{Names: []string{"eu"}}}, // no patch: a plan needs none of it
		}}}
	}
	reader := state.New(state.NewIndexers(), server, "global")
	for sentence, tc := range map[string]struct {
		mandatoryAlone bool
		want           []shipper.ReleaseOverride
	}{
		"of a new Release": {false, []shipper.ReleaseOverride{
			copied("global/may", false), copied("shop/of-web", false), copied("shop/late", false), copied("global/must", true),
		}},
		"of a rollback": {true, []shipper.ReleaseOverride{copied("global/must", true)}},
	} {
		got, err := reader.OverridesBearing(t.Context(), app, tc.mandatoryAlone)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", sentence, diff)
		}
	}
}

// TestDryRunsReadOverridesByPages: the pages of two dry runs are in memory, whatever users do in parallel.
func TestDryRunsReadOverridesByPages(t *testing.T) {
	app := &shipper.Application{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
	server := &overridePages{overrides: 120, block: make(chan struct{})}
	close(server.block)
	got, err := state.New(state.NewIndexers(), server, "global").OverridesBearing(t.Context(), app, false)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]any{240, []int64{50, 50, 50, 50, 50, 50}}, []any{len(got), server.sizes}); diff != "" {
		t.Errorf("copies, sizes of the pages (-want +got):\n%s", diff)
	}
	server.overrides = 10_000
	server.sizes = nil
	_, err = state.New(state.NewIndexers(), server, "").OverridesBearing(t.Context(), app, false)
	const want = "450 ResourceOverrides bear on the Application, more than the 400 that a Release may keep"
	if err == nil || !strings.HasPrefix(err.Error(), want) || len(server.sizes) != 9 {
		t.Errorf("error %v after %d lists, want %q after 9", err, len(server.sizes), want)
	}
}
