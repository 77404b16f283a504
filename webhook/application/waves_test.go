// SPDX-License-Identifier: Apache-2.0

package application

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/webhook/response"
)

func TestWavesAreDescribed(t *testing.T) {
	tier := func(value string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchLabels: map[string]string{"tier": value}}
	}
	cluster := func(name, value string) shipper.Cluster {
		return shipper.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"tier": value}}}
	}
	clusters := []shipper.Cluster{cluster("a", "canary"), cluster("b", "prod"), cluster("c", "prod"), cluster("d", "lab")}
	s := &shipper.RolloutStrategy{Waves: []shipper.Wave{
		{Name: "canary", ClusterSelector: tier("canary"), AfterTasks: &shipper.WaveTasks{
			Approvals: 2, Conditions: []string{"example.com/Verified"}, Wait: "1h", Checks: []shipper.StepCheck{{Check: "errors"}},
		}}, {Name: "none", ClusterSelector: tier("none")},
		{Name: "production", ClusterSelector: tier("prod"), MaxConcurrency: new(intstr.FromString("60%")), BeforeTasks: &shipper.WaveTasks{
			Approvals: 1, Wait: "2h",
		}},
	}}
	outside := shipper.MightNotRollOut + "no wave selects d: a rollout does not complete without them. Label them for a wave, or add a wave " +
		"without clusterSelector"
	empty := func(names string) string {
		return "no cluster is in wave " + names + ": it changes nothing and makes no checks; its gates and its other tasks still hold"
	}
	const covers = "maxFailures covers all clusters of wave production: a rollout fails all the same when every cluster of a wave has " +
		"failed, so at least one must not"
	for sentence, tc := range map[string]struct {
		chosen []string
		dryRun bool
		want   []string
		// all is the maxFailures of the strategy, production that of the last wave.
		all, production *intstr.IntOrString
		// none are the tasks of the wave without clusters.
		none *shipper.WaveTasks
	}{
		"an edit warns of waves without clusters": {chosen: []string{"a", "b", "c"}, want: []string{empty("none")}},
		"an edit warns of clusters that no wave has": {
			chosen: []string{"a", "d"}, want: []string{outside, empty("none, production")},
		},
		"without clusters there is nothing to describe": {dryRun: true},
		"a dry run": {chosen: []string{"a", "b", "c"}, dryRun: true, want: []string{
			shipper.Planned + "wave 0, canary: a, 1 at a time; then it waits for 1h, check errors, approvals (2), example.com/Verified",
			shipper.Planned + "wave 1, none: no cluster",
			shipper.Planned + "wave 2, production: b, c, 2 at a time; before it begins it waits for 2h, approvals (1)",
		}},
		"a dry run says which tasks of a wave without clusters hold": {
			chosen: []string{"b"}, dryRun: true, none: &shipper.WaveTasks{Checks: []shipper.StepCheck{{Check: "errors"}}}, want: []string{
				shipper.Planned + "wave 0, canary: no cluster; then it waits for 1h, approvals (2), example.com/Verified; its checks are not made",
				shipper.Planned + "wave 1, none: no cluster; its checks are not made",
				shipper.Planned + "wave 2, production: b, 1 at a time; before it begins it waits for 2h, approvals (1)",
			},
		},
		"a dry run of waves that may fail": {
			chosen: []string{"a", "b", "c"}, dryRun: true, all: new(intstr.FromInt32(2)), want: []string{
				shipper.Planned + "wave 0, canary: a, 1 at a time; then it waits for 1h, check errors, approvals (2), example.com/Verified",
				shipper.Planned + "wave 1, none: no cluster",
				shipper.Planned + "wave 2, production: b, c, 2 at a time, 1 may fail; before it begins it waits for 2h, approvals (1)",
			},
		},
		"an edit warns of maxFailures of all clusters of a wave": {
			chosen: []string{"a", "b", "c"}, production: new(intstr.FromInt32(2)), want: []string{covers, empty("none")},
		},
		"a dry run says that one of them must not fail": {
			chosen: []string{"a", "b", "c"}, dryRun: true, production: new(intstr.FromString("100%")), want: []string{
				shipper.Planned + "wave 0, canary: a, 1 at a time; then it waits for 1h, check errors, approvals (2), example.com/Verified",
				shipper.Planned + "wave 1, none: no cluster",
				shipper.Planned + "wave 2, production: b, c, 2 at a time, 1 may fail; before it begins it waits for 2h, approvals (1)", covers,
			},
		},
	} {
		a := &response.Response{}
		s.MaxFailures, s.Waves[2].MaxFailures, s.Waves[1].AfterTasks = tc.all, tc.production, tc.none
		previewWaves(a, s, tc.chosen, clusters, tc.dryRun)
		if diff := cmp.Diff(tc.want, a.Warnings()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", sentence, diff)
		}
	}
}
