// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"fmt"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// TestAFrozenClusterDoesNotHoldUpOthers has more targets write to a frozen API server than there are workers.
func TestAFrozenClusterDoesNotHoldUpOthers(t *testing.T) {
	s := begin(t, west, east)
	var names []string
	for i := range 6 {
		names = append(names, fmt.Sprintf("web-%d", i))
		s.install(names[i], "test-nginx", "0.0.1", shipper.ChartValues{"nameOverride": fmt.Sprint("n", i)}, west, east)
	}
	for _, name := range names {
		s.installed(name)
	}
	s.must(world.members[east].Pause())
	defer s.clusterIs(east, "")
	defer func() { s.must(world.members[east].Resume()) }()
	began := time.Now()
	for i, name := range names {
		s.change(&shipper.InstallationTarget{ObjectMeta: s.meta(name)}, func(o client.Object) {
			if it, ok := o.(*shipper.InstallationTarget); ok {
				(*it.Spec.Values)["nameOverride"] = fmt.Sprint("m", i)
			}
		})
	}
	s.install("alone", "test-nginx", "0.0.1", shipper.ChartValues{"nameOverride": "lonely"}, west)
	s.installed("alone")
	t.Logf("installed after %s", time.Since(began))
	if took := time.Since(began); took > 15*time.Second {
		t.Errorf("a target of another cluster waited %s", took)
	}
	s.clusterIs(east, shipper.ClusterUnreachable)
}
