// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
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
				checkRequests(t, w, before, most)
			})
		})
	}
}

// TestAPlacementTakesFewRequests bounds what it costs the management cluster to place a ConfigMap and a Service in two clusters.
func TestAPlacementTakesFewRequests(t *testing.T) {
	prepare()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Plan{Seed: 1, Webhooks: 1, Replicas: 1})
		defer w.end()
		w.begin(2)
		f := newFixture(w, Story{})
		for n := range 2 { // the first one starts watches
			name := fmt.Sprint("web-", n)
			labels := map[string]string{"app": name}
			meta := metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels}
			f.persist("writing a ConfigMap", func() error { return f.User.Create(f.Ctx, &corev1.ConfigMap{ObjectMeta: meta}) })
			f.persist("writing a Service", func() error {
				return f.User.Create(f.Ctx, &corev1.Service{
					ObjectMeta: meta, Spec: corev1.ServiceSpec{Selector: labels, Ports: []corev1.ServicePort{{Port: 80}}},
				})
			})
			selector := &metav1.LabelSelector{MatchLabels: labels}
			app := f.Placing()
			app.Name = name
			app.Spec.Template.Resources.Select = []shipper.ResourceSelector{
				{Kind: "ConfigMap", LabelSelector: selector}, {Kind: "Service", LabelSelector: selector},
			}
			f.rests()
			before := w.Management.Requests.Kinds()
			f.Creates(app)
			f.rests()
			if n > 0 {
				// Four are reviews of the user who selects. Two list the ResourceOverrides of its namespace and of the global one, live: a
				// cache may show an Application before the overrides that were applied with it.
				checkRequests(t, w, before, 30)
			}
		}
	})
}

// checkRequests bounds the requests to the management cluster since before.
func checkRequests(t *testing.T, w *World, before map[string]int, most int) {
	t.Helper()
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
}
