// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// abortStory deletes a contender that has all traffic, while the incumbent runs on without: the contender keeps its Pods until the
// incumbent serves again.
func abortStory() Story {
	incumbent, contender := "", ""
	return Story{
		Name: "abort",
		Begin: func(f *Fixture) {
			f.Creates(f.Application(appName, "0.0.1", replicaCount, allIn()))
			incumbent = f.Release(0)
			f.Completes(incumbent)
			next := f.Application(appName, "0.0.2", replicaCount,
				steps{step("alone", 50, 100, 0, 100), step("full on", 0, 100, 0, 100)})
			f.Edits(func(app *shipper.Application) { app.Spec.Template = next.Spec.Template })
			contender = f.Release(1)
			f.WaitsForCommand(contender, 0)
		},
		Parts: []Part{{
			Name: "aborted", Floor: replicaCount,
			Act: func(f *Fixture) {
				f.Deletes(&shipper.Release{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: contender}})
				f.IsGone("releases", contender)
				f.Settles(incumbent)
			},
		}},
	}
}
