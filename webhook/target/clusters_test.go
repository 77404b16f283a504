// SPDX-License-Identifier: Apache-2.0

package target_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/admission/ask"
	"shipper.dev/shipper/webhook/response"
	"shipper.dev/shipper/webhook/target"
)

// inWaves has eu-1 and us-1, in one wave.
func inWaves(r *shipper.Release) {
	r.Spec.Environment.Strategy.Waves = []shipper.Wave{{Name: "all"}}
	metav1.SetMetaDataAnnotation(&r.ObjectMeta, shipper.ReleaseClustersAnnotation, "eu-1,us-1")
	metav1.SetMetaDataAnnotation(&r.ObjectMeta, shipper.ReleaseWavesAnnotation, "eu-1=0,us-1=0")
}

func TestABlockThatNamesAClusterStopsAChangeOfItAlone(t *testing.T) {
	of := func(clusters ...shipper.ClusterCapacityTarget) *shipper.CapacityTarget {
		return capacity(0, func(ct *shipper.CapacityTarget) { ct.Spec.Clusters = clusters })
	}
	in := func(name string, percent int32) shipper.ClusterCapacityTarget {
		return shipper.ClusterCapacityTarget{Name: name, Percent: percent}
	}
	found := func(name string) shipper.ClusterCapacityTarget {
		return shipper.ClusterCapacityTarget{Name: name, AsFound: true}
	}
	installed := func(edit func(*shipper.InstallationTarget), clusters ...string) *shipper.InstallationTarget {
		it := &shipper.InstallationTarget{ObjectMeta: of().ObjectMeta}
		it.Spec.Clusters = clusters
		edit(it)
		return it
	}
	same := func(*shipper.InstallationTarget) {}
	before := of(in("eu-1", 0), in("us-1", 0))
	for sentence, tc := range map[string]struct {
		req     *admission.Request
		kind    target.Kind
		release func(*shipper.Release)
		stopped bool
	}{
		"of another cluster":           {req: ask.Update(ask.Reconciler, of(in("eu-1", 0), in("us-1", 50)), before)},
		"of the named one":             {req: ask.Update(ask.Reconciler, of(in("eu-1", 50), in("us-1", 0)), before), stopped: true},
		"of both":                      {req: ask.Update(ask.Reconciler, of(in("eu-1", 50), in("us-1", 50)), before), stopped: true},
		"that takes the named one out": {req: ask.Update(ask.Reconciler, of(in("us-1", 0)), before), stopped: true},
		"that takes another one out":   {req: ask.Update(ask.Reconciler, of(in("eu-1", 0)), before)},
		"that lets go of the named one": {
			req: ask.Update(ask.Reconciler, of(found("eu-1"), in("us-1", 0)), before), stopped: true,
		},
		"that adds the named one as it is found": {
			req: ask.Update(ask.Reconciler, of(found("eu-1"), in("us-1", 0)), of(in("us-1", 0))),
		},
		"the creation with clusters as they are found": {req: ask.Create(ask.Reconciler, of(found("eu-1"), found("us-1")))},
		"the creation with a request in the named one": {req: ask.Create(ask.Reconciler, of(in("eu-1", 1))), stopped: true},
		"an installation in another cluster": {
			kind: target.Installation, req: ask.Update(ask.Reconciler, installed(same, "us-1"), installed(same)),
		},
		"an installation in the named one": {
			kind: target.Installation, req: ask.Update(ask.Reconciler, installed(same, "eu-1"), installed(same)), stopped: true,
		},
		"an installation with other values": {
			kind: target.Installation, stopped: true, req: ask.Update(ask.Reconciler, installed(func(it *shipper.InstallationTarget) {
				it.Spec.Chart = &shipper.Chart{Name: "other"}
			}, "us-1"), installed(same, "us-1")),
		},
		"that another Release is the newest": {
			kind: target.Installation, req: ask.Update(ask.Reconciler, installed(func(it *shipper.InstallationTarget) {
				it.Spec.CanOverride = true
			}, "eu-1"), installed(same, "eu-1")),
		},
		"of another cluster, without waves": {
			req: ask.Update(ask.Reconciler, of(in("eu-1", 0), in("us-1", 50)), before), stopped: true,
			release: func(r *shipper.Release) { r.Spec.Environment.Strategy.Waves = nil },
		},
		"a deletion by hand": {req: ask.Delete("ann", of(in("us-1", 0))), stopped: true},
	} {
		t.Run(sentence, func(t *testing.T) {
			b := ask.Block("global/dns")
			b.Spec.Scope = &shipper.RolloutBlockScope{Clusters: []string{"eu-1"}}
			r := rel(inWaves)
			if tc.release != nil {
				tc.release(r)
			}
			kind := tc.kind
			if kind.Name == "" {
				kind = target.Capacity
			}
			w := ask.Know(t, ask.Grant(), r, b)
			hook := &target.Webhook{Kind: kind, BlockCheck: w.BlockCheck, State: w.State, Guard: w.Guard}
			err := hook.Validate(t.Context(), tc.req, &response.Response{})
			if diff := cmp.Diff(tc.stopped, err != nil); diff != "" {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
		})
	}
}
