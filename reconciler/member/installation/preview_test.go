// SPDX-License-Identifier: Apache-2.0

package installation

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"shipper.dev/shipper/apis/rules/override"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart/render"
)

// sourceTaker renders nothing, and keeps what it was asked to render.
type sourceTaker struct{ taken Source }

func (s *sourceTaker) Render(_ context.Context, from Source, _ render.Target, _ Find) (render.Manifest, error) {
	s.taken = from
	return render.Manifest{}, nil
}

func TestAPreviewHasTheOverridesOfTheCluster(t *testing.T) {
	rel := &shipper.Release{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-0"}}
	patch := []shipper.PatchOperation{{"op": "add", "path": "/metadata/labels/in", "value": "${cluster.name}"}}
	rel.Spec.Overrides = []shipper.ReleaseOverride{{
		Name: "shop/edge", Resources: []shipper.OverriddenResource{{Kind: "ConfigMap"}}, Rules: []shipper.OverrideRule{
			{ClusterTerms: []shipper.OverrideClusterTerm{{
				LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"env": "edge"}},
			}}, Patch: patch},
			{Delete: true, ClusterTerms: []shipper.OverrideClusterTerm{{Names: []string{"another"}}}},
		},
	}}
	at := func(env string) *shipper.Cluster {
		return &shipper.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "eu", Labels: map[string]string{"env": env}}}
	}
	for sentence, tc := range map[string]struct {
		cluster *shipper.Cluster
		want    []override.Change
	}{
		"one that matches": {at("edge"), []override.Change{{
			Override: "shop/edge", Namespace: "shop",
			Patch: []shipper.PatchOperation{{"op": "add", "path": "/metadata/labels/in", "value": "eu"}},
		}}},
		"another":               {at("core"), nil},
		"one that is not known": {nil, nil},
	} {
		renderer := &sourceTaker{}
		if _, _, err := Preview(t.Context(), renderer, rel, Cluster{Name: "eu", Object: tc.cluster}); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tc.want, renderer.taken.Overrides, cmpopts.IgnoreFields(override.Change{}, "Selected")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", sentence, diff)
		}
	}
}
