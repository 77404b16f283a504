// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	corev1 "k8s.io/api/core/v1"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// sick is the value of a ConfigMap that its ready rule takes for unhealthy.
const sick = "sick"

// healthStory places content that never becomes healthy, in one cluster at a time, and mends it.
func healthStory() Story {
	return Story{
		Name: "health",
		Begin: func(f *Fixture) {
			f.Bystand()
			f.Keeps("a", "1")
			app := f.Placing()
			app.Spec.Template.Resources.Ready = []shipper.ReadyRule{{Kind: "ConfigMap", Expression: `object.data.k != "` + sick + `"`}}
			f.Creates(app)
			f.Completes(f.Release(0))
		},
		Parts: []Part{
			{
				// A cluster that does not answer takes no slot: which clusters are sick depends on when it answers again.
				Name: "sick", Loose: true,
				Act: func(f *Fixture) {
					f.Keeps("a", sick)
					contender := f.Generation(1)
					f.Eventually("what "+contender+" waits for", "objects", func() string {
						c := shipper.FindCondition(f.Get(contender).Status.Conditions, shipper.ReleaseHealthy)
						if c == nil || c.Reason != shipper.ObjectsInProgress || f.sickClusters() == 0 {
							return "others"
						}
						return "objects"
					})
				},
				Check: func(f *Fixture) {
					if got := f.sickClusters(); got != 1 && len(f.plan.Faults) == 0 {
						f.laws.broken(7, "%d clusters have content that is not healthy, and one may change at a time", got)
					}
					if shipper.ConditionTrue(f.Get(f.Generation(1)).Status.Conditions, shipper.ReleaseComplete) {
						f.laws.broken(7, "the Release is complete, and its objects are not healthy")
					}
				},
			},
			{
				Name: "mended",
				Act: func(f *Fixture) {
					f.Keeps("a", "2")
					f.Completes(f.Generation(2))
				},
				Check: func(f *Fixture) {
					if got := f.sickClusters(); got != 0 {
						f.laws.broken(7, "%d clusters have content that is not healthy", got)
					}
				},
			},
		},
	}
}

// sickClusters counts clusters with content that never becomes healthy.
func (f *Fixture) sickClusters() (count int) {
	for cluster := range f.Clusters {
		content := &corev1.ConfigMap{}
		if f.hosts[cluster].read(configMaps, namespace, "a", content) && content.Data["k"] == sick {
			count++
		}
	}
	return count
}
