// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"slices"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// jobsMade is how many Jobs were made in each cluster.
func (f *Fixture) jobsMade() map[string]int {
	out := map[string]int{}
	for name := range f.Clusters {
		out[name] = len(f.hosts[name].made(jobs))
	}
	return out
}

// deleteHooksStory deletes an Application of two Releases whose chart has hooks for that: those of the newest run, once in each cluster,
// one before and one after the removal. Then one whose first hook fails: it serves on until a user gives the hooks up. While a
// block holds that deletion, no hook is tried again.
func deleteHooksStory() Story {
	installs := func(f *Fixture, broken bool) {
		app := f.Application(appName, "0.0.1", 1, allIn())
		app.Spec.Template.Chart.Name = "leaving"
		(*app.Spec.Template.Values)["broken"] = broken
		f.Creates(app)
		f.Completes(f.Release(0))
	}
	deletes := func(f *Fixture) {
		f.Deletes(&shipper.Application{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: appName}})
	}
	made := func(f *Fixture, want ...string) {
		for name := range f.Clusters {
			if diff := cmp.Diff(want, f.hosts[name].made(jobs)); diff != "" {
				f.laws.broken(16, "Jobs in %s (-want +created):\n%s", name, diff)
			}
		}
	}
	return Story{
		Name: "delete-hooks", Shared: true,
		Begin: func(f *Fixture) {
			f.Bystand()
			installs(f, false)
			f.Edits(func(app *shipper.Application) { (*app.Spec.Template.Values)["edition"] = "second" })
			f.Completes(f.Release(1))
		},
		Parts: []Part{{
			Name: "deleted",
			Act: func(f *Fixture) {
				deletes(f)
				f.IsGone("applications", appName)
			},
			Check: func(f *Fixture) { made(f, "before", "after") },
		}, {
			Name: "deleted without hooks",
			Act: func(f *Fixture) {
				installs(f, true)
				deletes(f)
				f.Eventually("the deletion", shipper.HookFailed, func() string {
					var app shipper.Application
					f.hosts[management].read(kindOf("applications"), namespace, appName, &app)
					deleting := shipper.FindCondition(app.Status.Conditions, shipper.ApplicationDeleting)
					if deleting == nil {
						return fmt.Sprint(app.Status.Conditions)
					}
					return deleting.Reason
				})
				f.Blocks("stop")
				f.Eventually("the deletion", shipper.RolloutsBlocked, func() string {
					var app shipper.Application
					f.hosts[management].read(kindOf("applications"), namespace, appName, &app)
					blocked := shipper.FindCondition(app.Status.Conditions, shipper.ApplicationBlocked)
					if blocked == nil {
						return fmt.Sprint(app.Status.Conditions)
					}
					return blocked.Reason
				})
				time.Sleep(10 * time.Second)
				held := f.jobsMade()
				time.Sleep(3 * time.Hour)
				if diff := cmp.Diff(held, f.jobsMade()); diff != "" {
					f.laws.broken(16, "Jobs made while a block held the deletion (-before +after):\n%s", diff)
				}
				f.Deletes(&shipper.RolloutBlock{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "stop"}})
				f.Eventually("hooks after the block", "more", func() string {
					if now := f.jobsMade(); !cmp.Equal(held, now) {
						return "more"
					}
					return "as many"
				})
				f.Edits(func(app *shipper.Application) {
					metav1.SetMetaDataAnnotation(&app.ObjectMeta, shipper.AppDeleteSkipHooksAnnotation, "true")
				})
				f.IsGone("applications", appName)
			},
			Check: func(f *Fixture) {
				for name := range f.Clusters {
					all := f.hosts[name].made(jobs)
					if n := len(slices.DeleteFunc(all, func(job string) bool { return job != "after" })); n != 1 {
						f.laws.broken(16, "%d Jobs after the deletion were created in %s, want that of the first Application alone", n, name)
					}
				}
			},
		}},
	}
}
