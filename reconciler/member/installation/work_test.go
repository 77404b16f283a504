// SPDX-License-Identifier: Apache-2.0

package installation

import (
	"testing"

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
