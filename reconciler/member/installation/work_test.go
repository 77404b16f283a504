// SPDX-License-Identifier: Apache-2.0

package installation

import (
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/release"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// TestNothingIsInstalledBeforeTheStatusNamesTheCluster is about a crash between the two: objects in a cluster that no status
// names would never be removed. The Worker has nothing to install with.
func TestNothingIsInstalledBeforeTheStatusNamesTheCluster(t *testing.T) {
	const cluster = "eu-west-1"
	named := []shipper.ClusterInstallationStatus{{Name: cluster}}
	for sentence, tc := range map[string]struct {
		finalizers []string
		status     []shipper.ClusterInstallationStatus
	}{
		"a new target":                   {nil, nil},
		"one without a status":           {[]string{shipper.InstallationFinalizer}, nil},
		"one without a finalizer":        {nil, named},
		"one whose status names another": {[]string{shipper.InstallationFinalizer}, []shipper.ClusterInstallationStatus{{Name: "us-east-1"}}},
	} {
		it := &shipper.InstallationTarget{}
		it.Finalizers, it.Spec.Clusters, it.Status.Clusters = tc.finalizers, []string{cluster}, tc.status
		if outcome := (&Worker{}).Work(t.Context(), it, cluster, nil); !outcome.Missing() {
			t.Errorf("%s: the outcome is %+v", sentence, outcome)
		}
	}
}

// TestABlockedReleaseGetsNoRunThatAUserAsksFor has no cluster: a run that waits sends no request.
func TestABlockedReleaseGetsNoRunThatAUserAsksFor(t *testing.T) {
	for sentence, tc := range map[string]struct {
		run   shipper.HookRun
		waits bool
	}{
		"a hook that is run again": {shipper.HookRun{Event: string(release.HookPreUpgrade), Attempt: 2, Request: "2"}, true},
		"a hook that is run first": {shipper.HookRun{Event: string(release.HookPreUpgrade), Attempt: 1}, false},
		"a test of a user":         {shipper.HookRun{Event: string(release.HookTest), Attempt: 1, Request: "7"}, true},
		"a test of a Check":        {shipper.HookRun{Event: string(release.HookTest), Attempt: 1, Request: "check"}, false},
		"a hook of the deletion":   {shipper.HookRun{Event: string(release.HookPreDelete), Attempt: 2}, false},
	} {
		it := &shipper.InstallationTarget{}
		it.Spec.CanOverride = true
		i := &installer{it: it, rendering: &rendering{}, hookOrders: hookOrders{retry: "2", test: "7", blocked: true}}
		if got := i.asked(tc.run); got != tc.waits {
			t.Errorf("%s: asked for by a user is %t", sentence, got)
		}
		if !tc.waits {
			continue
		}
		err := i.begin(t.Context(), wanted{}, item{Kind: "Job", Name: "migrate"}, tc.run)
		if err == nil || !strings.HasSuffix(err.Error(), `Job "migrate" is not run while RolloutBlocks stop the Release`) {
			t.Errorf("%s: %v", sentence, err)
		}
	}
}

func TestAnEndOfABlockWakesItsHooks(t *testing.T) {
	free, stopped := &shipper.Release{}, &shipper.Release{}
	stopped.Status.Conditions = []shipper.Condition{{Type: shipper.ReleaseBlocked, Status: "True"}}
	if !SameOrders(free, free) || !SameOrders(stopped, stopped) || SameOrders(stopped, free) {
		t.Error("the end of a block is not noticed")
	}
}
