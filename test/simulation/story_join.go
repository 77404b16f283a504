// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// joinStory has content on all clusters, one of which joins and leaves: it gets the content, and none stays.
func joinStory() Story {
	return Story{
		Name: "join", Shared: true,
		Begin: func(f *Fixture) {
			f.Bystand()
			f.addCluster(2)
			f.Keeps("a", "1")
			app := f.Placing()
			app.Spec.Template.ClusterRequirements = shipper.ClusterRequirements{Placement: &shipper.Placement{Type: shipper.PickAll}}
			f.Creates(app)
			f.Completes(f.Release(0))
		},
		Parts: []Part{{
			Name: "joins",
			Act: func(f *Fixture) {
				c := clusterObject(2)
				c.Spec.OnLeave = shipper.OnLeaveRemove
				f.Creates(c)
				f.Eventually("the content in the new cluster", "a", func() string { return f.listed(clusterName(2)) })
			},
			Check: func(f *Fixture) { f.has("a", 1) },
		}, {
			Name: "changes",
			Act: func(f *Fixture) {
				f.Keeps("b", "1")
				f.Completes(f.Release(1))
			},
			Check: func(f *Fixture) { f.has("a b", 2) },
		}, {
			Name: "leaves",
			Act: func(f *Fixture) {
				f.Deletes(&shipper.Cluster{ObjectMeta: metav1.ObjectMeta{Name: clusterName(2)}})
				f.Eventually("the Cluster", "gone", func() string {
					if f.hosts[management].get(kindOf("clusters"), "", clusterName(2)) == nil {
						return "gone"
					}
					return "there"
				})
			},
			Check: func(f *Fixture) {
				if got := f.listed(clusterName(2)); got != "" {
					f.laws.broken(7, "%s keeps %s", clusterName(2), got)
				}
				for _, o := range f.hosts[clusterName(2)].all(configMaps) {
					if o.GetLabels()[shipper.AppLabel] == appName {
						f.laws.broken(7, "%s keeps ConfigMap %s", clusterName(2), o.GetName())
					}
				}
			},
		}},
	}
}
