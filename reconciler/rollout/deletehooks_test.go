// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

func TestTheDeletionRunsHooksOfTheNewestReleaseInstalledInACluster(t *testing.T) {
	in := func(name, status string, hooks ...shipper.HookRun) shipper.ClusterInstallationStatus {
		return shipper.ClusterInstallationStatus{Name: name, Status: status, Hooks: hooks}
	}
	target := func(name string, clusters ...shipper.ClusterInstallationStatus) *shipper.InstallationTarget {
		it := &shipper.InstallationTarget{ObjectMeta: metav1.ObjectMeta{Name: name}}
		it.Status.Clusters = clusters
		return it
	}
	run := func(event string, phase shipper.HookPhase) shipper.HookRun {
		return shipper.HookRun{Event: event, Phase: phase}
	}
	const installed, failed = shipper.InstallationStatusInstalled, shipper.InstallationStatusFailed
	before, after := run("pre-delete", shipper.HookPending), run("post-delete", shipper.HookPending)
	done, other := run("pre-delete", shipper.HookSucceeded), run("pre-install", shipper.HookSucceeded)
	says := func(c shipper.ClusterInstallationStatus, reason, message string) shipper.ClusterInstallationStatus {
		c.Conditions = []shipper.Condition{{
			Type: shipper.TargetReady, Status: corev1.ConditionFalse, Reason: reason, Message: message,
		}}
		return c
	}
	type plan struct {
		In     map[string][]string
		Waits  []string
		Failed bool
	}
	const toRun = "pre-delete hooks are to run"
	for sentence, tc := range map[string]struct {
		newestFirst []*shipper.InstallationTarget
		want        plan
	}{
		"no hooks": {[]*shipper.InstallationTarget{target("b", in("x", installed, other)), target("a", in("x", installed))}, plan{}},
		"hooks of the newest alone": {
			[]*shipper.InstallationTarget{target("b", in("x", installed, other, before)), target("a", in("x", installed, before))},
			plan{map[string][]string{"b": {"x"}}, []string{"cluster x: " + toRun}, false},
		},
		"the newest has none": {
			[]*shipper.InstallationTarget{target("b", in("x", installed)), target("a", in("x", installed, before))}, plan{},
		},
		"the newest is not installed in one of two clusters": {
			[]*shipper.InstallationTarget{
				target("b", in("x", failed, other), in("y", installed, before)), target("a", in("x", installed, before), in("y", installed, before)),
			},
			plan{map[string][]string{"b": {"y"}, "a": {"x"}}, []string{"cluster x: " + toRun, "cluster y: " + toRun}, false},
		},
		"hooks after the deletion keep nothing": {
			[]*shipper.InstallationTarget{target("a", in("x", installed, after))}, plan{map[string][]string{"a": {"x"}}, nil, false},
		},
		"all have succeeded": {
			[]*shipper.InstallationTarget{target("a", in("x", installed, done, after))}, plan{map[string][]string{"a": {"x"}}, nil, false},
		},
		"one runs": {
			[]*shipper.InstallationTarget{target("a", says(in("x", "", before), shipper.InProgress, "it runs"))},
			plan{map[string][]string{"a": {"x"}}, []string{"cluster x: it runs"}, false},
		},
		"one has failed": {
			[]*shipper.InstallationTarget{
				target("a", says(in("x", failed, run("pre-delete", shipper.HookHasFailed)), shipper.HookFailed, "it failed"), in("y", installed, done)),
			},
			plan{map[string][]string{"a": {"x", "y"}}, []string{"cluster x: it failed"}, true},
		},
	} {
		got := planDeleteHooks(tc.newestFirst)
		if tc.want.In == nil {
			tc.want.In = map[string][]string{}
		}
		if diff := cmp.Diff(tc.want, plan{got.in, got.waits, got.failed}); diff != "" {
			t.Errorf("%s: -want +got:\n%s", sentence, diff)
		}
	}
}
