// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// TestADeletionTakesFewRequests bounds what the deletion of an Application in two clusters costs the management cluster.
func TestADeletionTakesFewRequests(t *testing.T) {
	const most = 15
	for name, create := range map[string]func(*Fixture) *shipper.Application{
		"of a chart":   func(f *Fixture) *shipper.Application { return f.Application(appName, "0.0.1", replicaCount, allIn()) },
		"of resources": func(f *Fixture) *shipper.Application { f.Keeps("a", "1"); return f.Placing() },
	} {
		t.Run(name, func(t *testing.T) {
			prepare()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, Plan{Seed: 1, Webhooks: 1, Replicas: 1})
				defer w.end()
				w.begin(2)
				f := newFixture(w, Story{})
				f.Creates(create(f))
				f.Completes(f.Release(0))
				f.rests()
				before := w.Management.Requests.Kinds()
				f.Deletes(&shipper.Application{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: appName}})
				f.IsGone("applications", appName)
				f.rests()
				after, total := w.Management.Requests.Kinds(), 0
				var list []string
				for _, kind := range slices.Sorted(maps.Keys(after)) {
					if n := after[kind] - before[kind]; n > 0 {
						total += n
						list = append(list, fmt.Sprint(n, " ", kind))
					}
				}
				t.Logf("%d requests: %s", total, strings.Join(list, ", "))
				if total > most {
					t.Errorf("%d requests, want %d at most:\n%s", total, most, w.history)
				}
			})
		})
	}
}
