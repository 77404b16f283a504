// SPDX-License-Identifier: Apache-2.0

package installation

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/member/drift"
	"shipper.dev/shipper/reconciler/member/survey"
)

// everywhere are clusters in which all goes wrong, at length.
func everywhere(n int) []shipper.ClusterInstallationStatus {
	long := strings.Repeat("x", 2*128)
	out := make([]shipper.ClusterInstallationStatus, n)
	for i := range out {
		out[i] = shipper.ClusterInstallationStatus{
			Name: fmt.Sprint("cluster-", i), Objects: &shipper.InstalledObjects{}, Drift: &shipper.InstalledDrift{Omitted: 1},
		}
		for range survey.MaxUnhealthy {
			out[i].Objects.Unhealthy = append(out[i].Objects.Unhealthy, shipper.UnhealthyObject{Reason: long[:60], Message: long})
		}
		for range drift.MaxFields {
			out[i].Drift.Fields = append(out[i].Drift.Fields, shipper.DriftedField{Field: long, Want: long[:128], Have: long[:128]})
		}
	}
	return out
}

func TestWhatIsToldOfAFleetFitsIntoOneObject(t *testing.T) {
	for n, want := range map[int][3]int{
		1: {10, 20, 1}, 30: {10, 20, 1}, 60: {10, 10, 11}, 200: {3, 3, 18}, 500: {1, 1, 20},
	} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			got := bounded(everywhere(n))
			first := got[0]
			if diff := cmp.Diff(want, [3]int{len(first.Objects.Unhealthy), len(first.Drift.Fields), int(first.Drift.Omitted)}); diff != "" {
				t.Errorf("objects, fields and fields omitted (-want +got):\n%s", diff)
			}
			if raw, err := json.Marshal(got); err != nil || len(raw) > 1<<20 {
				t.Errorf("%d clusters have %d bytes (%v)", n, len(raw), err)
			}
		})
	}
}

func TestWhatWasToldBeforeIsNotChanged(t *testing.T) {
	was, kept := everywhere(100), everywhere(100)
	now := append([]shipper.ClusterInstallationStatus(nil), was...)
	bounded(now)
	if diff := cmp.Diff(kept, was); diff != "" {
		t.Errorf("-before +after:\n%s", diff)
	}
}
