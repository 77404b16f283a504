// SPDX-License-Identifier: Apache-2.0

package application

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

func TestAPlanSaysWhichOverridesBearInHowManyClusters(t *testing.T) {
	var clusters []shipper.Cluster
	for _, name := range []string{"a", "b", "c"} {
		clusters = append(clusters, shipper.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"env": "env-" + name}}})
	}
	everywhere := []shipper.OverrideRule{{}}
	in := func(names ...string) (out []shipper.OverrideRule) {
		for _, name := range names {
			out = append(out, shipper.OverrideRule{ClusterTerms: []shipper.OverrideClusterTerm{{
				LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"env": "env-" + name}},
			}}})
		}
		return out
	}
	many := make([]shipper.ReleaseOverride, 10)
	for i := range many {
		many[i] = shipper.ReleaseOverride{Name: fmt.Sprintf("n/%d", i), Rules: in("a")}
	}
	for sentence, tc := range map[string]struct {
		copies []shipper.ReleaseOverride
		chosen []string
		want   string
	}{
		"none": {chosen: []string{"a"}},
		"one in a cluster that is not chosen": {
			[]shipper.ReleaseOverride{{Name: "work/edge", Rules: in("c")}}, []string{"a", "b"},
			"1 ResourceOverride bears on it: work/edge in 0 of 2 clusters",
		},
		"two, one by two rules": {
			[]shipper.ReleaseOverride{{Name: "work/edge", Rules: in("a", "b")}, {Name: "global/all", Rules: everywhere, Mandatory: true}},
			[]string{"a", "b", "c"},
			"2 ResourceOverrides bear on it: work/edge in 2 of 3 clusters, global/all (mandatory) in all 3 clusters",
		},
		"of one cluster": {
			[]shipper.ReleaseOverride{{Name: "work/all", Rules: everywhere}}, []string{"b"},
			"1 ResourceOverride bears on it: work/all in its cluster",
		},
		"before clusters are chosen": {
			[]shipper.ReleaseOverride{{Name: "work/all", Rules: everywhere}}, nil, "1 ResourceOverride bears on it: work/all",
		},
		"more than a plan names": {
			many, []string{"b"}, "10 ResourceOverrides bear on it: n/0 in 0 of 1 cluster, n/1 in 0 of 1 cluster, n/2 in 0 of 1 cluster, " +
				"n/3 in 0 of 1 cluster, n/4 in 0 of 1 cluster, n/5 in 0 of 1 cluster, n/6 in 0 of 1 cluster, n/7 in 0 of 1 cluster, 2 more",
		},
	} {
		if diff := cmp.Diff(tc.want, describeOverrides(tc.copies, tc.chosen, clusters)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", sentence, diff)
		}
	}
}

// bearing answers which ResourceOverrides bear on an Application now.
type bearing struct {
	State
	err error
}

func (b bearing) Clusters() []shipper.Cluster { return nil }

func (b bearing) OverridesBearing(_ context.Context, _ *shipper.Application, mandatoryAlone bool) ([]shipper.ReleaseOverride, error) {
	must := shipper.ReleaseOverride{Name: "global/must", Mandatory: true}
	if mandatoryAlone {
		return []shipper.ReleaseOverride{must}, b.err
	}
	return []shipper.ReleaseOverride{{Name: "shop/now"}, must}, b.err
}

func TestAPlanHasTheOverridesThatTheNextReleaseCopies(t *testing.T) {
	earlier := &shipper.Release{ObjectMeta: metav1.ObjectMeta{Name: "web-0"}}
	earlier.Spec.Overrides = []shipper.ReleaseOverride{{Name: "shop/then"}}
	rollback := map[string]string{shipper.ReleaseRollbackOfAnnotation: "web-0"}
	for sentence, tc := range map[string]struct {
		annotations map[string]string
		err         error
		want        string
	}{
		"of an edit":     {want: "2 ResourceOverrides bear on it: shop/now, global/must (mandatory)"},
		"of a rollback":  {annotations: rollback, want: "2 ResourceOverrides bear on it: shop/then, global/must (mandatory)"},
		"not to be read": {err: errors.New("no answer"), want: "ResourceOverrides are not shown: no answer"},
	} {
		w := &Webhook{State: bearing{err: tc.err}}
		p := plan{existing: []*shipper.Release{earlier}, next: &shipper.Release{ObjectMeta: metav1.ObjectMeta{Annotations: tc.annotations}}}
		if diff := cmp.Diff(tc.want, w.planOverrides(t.Context(), &shipper.Application{}, p)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", sentence, diff)
		}
	}
}
