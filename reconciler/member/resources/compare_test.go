// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"fmt"
	"strings"
	"testing"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// foreign puts n ConfigMaps of others into the cluster, and keeps a snapshot of their manifests, which differ, for digest "many".
func (f *fixture) foreign(n int) {
	f.Helper()
	var manifests []string
	for i := range n {
		const text = "{apiVersion: v1, kind: ConfigMap, metadata: {namespace: work, name: c%02d}, data: {k: %s}}\n"
		f.put(fmt.Sprintf(text, i, "theirs"))
		manifests = append(manifests, fmt.Sprintf(text, i, "ours"))
	}
	f.snapshot("many", strings.Join(manifests, "---\n"))
}

// TestObjectsOfOthersAreComparedInParallel fails with -race, or crashes, if two comparisons use the memory of the target without a lock.
func TestObjectsOfOthersAreComparedInParallel(t *testing.T) {
	for _, how := range []shipper.Apply{{TakeOver: shipper.TakeOverNever}, {Type: shipper.ApplyReportDiff}} {
		f := begin(t)
		f.foreign(20)
		f.worker = NewWorker(Options{Client: f.management, Live: f.management, Content: f.contents, Clock: f.clock, Parallel: 8})
		it := f.applied(0, "many", how)
		for range 2 { // the second pass recalls what the first one noted
			out, _ := f.place(it)
			if out.Diff == nil || out.Diff.Objects != 20 {
				t.Errorf("%+v: the diff is %+v", how, out.Diff)
			}
		}
	}
}
