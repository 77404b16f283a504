// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"testing"
	"time"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

func TestTheStatusOfAClusterWithoutAPassSinceTheChangeIsNotOfThisGeneration(t *testing.T) {
	ready := shipper.Condition{Type: shipper.TargetReady, Status: "True"}
	ct := &shipper.CapacityTarget{}
	ct.Generation, ct.Status.ObservedGeneration = 2, 1
	ct.Status.Clusters = []shipper.ClusterCapacityStatus{{Name: "hangs", Conditions: []shipper.Condition{ready}}}
	seen := Outcome{want: shipper.ClusterCapacityTarget{Name: "answers"}, ready: ready}
	hangs := Outcome{want: shipper.ClusterCapacityTarget{Name: "hangs"}, missing: true}
	if got := status(ct, []Outcome{seen, hangs}, time.Unix(0, 0)).ObservedGeneration; got != 1 {
		t.Errorf("observedGeneration is %d while a cluster still has its status from before", got)
	}
	hangs.missing, hangs.ready = false, ready
	if got := status(ct, []Outcome{seen, hangs}, time.Unix(0, 0)).ObservedGeneration; got != 2 {
		t.Errorf("observedGeneration is %d after both were read", got)
	}
}
