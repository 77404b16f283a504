// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"slices"

	"github.com/google/go-cmp/cmp"
)

// hooksStory installs a chart with hooks. Each Job is created once in each cluster, even if it is deleted afterwards.
func hooksStory() Story {
	return Story{
		Name:  "hooks",
		Begin: func(f *Fixture) { f.Bystand() },
		Parts: []Part{{
			Name: "installed",
			Act: func(f *Fixture) {
				app := f.Application(appName, "0.0.1", 1, allIn())
				app.Spec.Template.Chart.Name = "hooked"
				f.Creates(app)
				f.Completes(f.Release(0))
			},
			Check: func(f *Fixture) {
				want := []string{"post-install-hook-failed", "pre-install-before-hook-creation", "pre-install-hook-succeeded"}
				for name := range f.Clusters {
					made := f.hosts[name].made("batch/jobs")
					slices.Sort(made)
					if diff := cmp.Diff(want, made); diff != "" {
						f.laws.broken(4, "Jobs in %s (-want +created):\n%s", name, diff)
					}
				}
			},
		}},
	}
}
