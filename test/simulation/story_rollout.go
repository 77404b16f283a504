// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// losesCosts takes the costs of deletion off all Pods, as if another Shipper had labelled them.
func (f *Fixture) losesCosts() {
	f.T.Helper()
	for name, server := range f.Clusters {
		for _, pod := range f.hosts[name].all(pods) {
			f.must("editing a Pod", server.Edit("", "pods", pod.GetNamespace(), pod.GetName(), func(u *unstructured.Unstructured) error {
				unstructured.RemoveNestedField(u.Object, "metadata", "annotations", corev1.PodDeletionCost)
				return nil
			}))
		}
	}
}

// rolloutStory rolls forward step by step, goes back, and is aborted.
func rolloutStory() Story {
	incumbent, contender := "", ""
	return Story{
		Name: "rollout",
		Begin: func(f *Fixture) {
			f.Bystand()
			f.Creates(f.Application(appName, "0.0.1", replicaCount, allIn()))
			incumbent = f.Release(0)
			f.Completes(incumbent)
		},
		Parts: []Part{
			{Name: "forward", Floor: replicaCount, Act: func(f *Fixture) {
				next := f.Application(appName, "0.0.2", replicaCount, vanguard())
				f.Edits(func(app *shipper.Application) { app.Spec.Template = next.Spec.Template })
				contender = f.Release(1)
				f.WaitsForCommand(contender, 0)
				f.Steps(contender, 1)
				f.WaitsForCommand(contender, 1)
				f.Steps(contender, 2)
				f.Completes(contender)
			}},
			{
				Name: "backward", Floor: replicaCount, Before: (*Fixture).losesCosts,
				Act: func(f *Fixture) {
					f.Steps(contender, 1)
					f.WaitsForCommand(contender, 1)
					f.Steps(contender, 0)
					f.WaitsForCommand(contender, 0)
				},
			},
			{
				Name: "abort", Floor: replicaCount,
				Before: func(f *Fixture) {
					f.Steps(contender, 1)
					f.WaitsForCommand(contender, 1)
				},
				Act: func(f *Fixture) {
					f.Deletes(&shipper.Release{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: contender}})
					f.IsGone("releases", contender)
					f.Settles(incumbent)
				},
			},
		},
	}
}
