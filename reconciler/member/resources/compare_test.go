// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

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

func TestObjectsOfOthersAreReadLessOftenWhileNothingChanges(t *testing.T) {
	for _, how := range []shipper.Apply{{TakeOver: shipper.TakeOverNever}, {Type: shipper.ApplyReportDiff}} {
		f := begin(t)
		f.foreign(3)
		it := f.applied(0, "many", how)
		pass := func(after time.Duration) time.Duration {
			f.clock.SetTime(f.clock.Now().Add(after))
			out, _ := f.place(it)
			return out.Later / time.Second
		}
		seconds := []time.Duration{pass(0)}
		for range 6 {
			seconds = append(seconds, pass(seconds[len(seconds)-1]*time.Second))
		}
		seconds = append(seconds, pass(20*time.Second)) // an event caused it
		same(t, "at rest", []time.Duration{4, 8, 16, 32, 60, 60, 60, 40}, seconds)
		f.edit(configMap, "work/c01", func(u *unstructured.Unstructured) { u.SetLabels(map[string]string{"a": "b"}) })
		same(t, "after an edit of an object", []time.Duration{4, 8}, []time.Duration{pass(0), pass(4 * time.Second)})
		it.Generation++
		same(t, "after an edit of the target", time.Duration(4), pass(0))
	}
}
