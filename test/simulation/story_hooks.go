// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// hooksStory installs a chart with hooks and a random password. Each Job is created once in each cluster, even if it is deleted
// afterwards, and keeps an owner when the anchors are deleted. The password is the same again when its Secret was deleted.
func hooksStory() Story {
	var before, after map[string]string
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
					made := f.hosts[name].made(jobs)
					slices.Sort(made)
					if diff := cmp.Diff(want, made); diff != "" {
						f.laws.broken(4, "Jobs in %s (-want +created):\n%s", name, diff)
					}
				}
			},
		}, {
			Name: "anchors deleted",
			Act: func(f *Fixture) { // a Job of a hook is not written again: it gets the new anchor for an owner, or never has one
				before = f.running()
				f.losesAnchors()
				after = f.running()
			},
			Check: func(f *Fixture) { f.same(before, after) },
		}, {
			Name: "password deleted",
			Act: func(f *Fixture) {
				lost := clusterName(0)
				uid := f.hosts[lost].get(secrets, namespace, "password").GetUID()
				f.must("deleting a Secret", f.userOf(lost).Delete(f.Ctx, &corev1.Secret{
					ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "password"},
				}))
				f.Eventually("the Secret", "is there again", func() string { // law 13: as it was
					if o := f.hosts[lost].get(secrets, namespace, "password"); o != nil && o.GetUID() != uid {
						return "is there again"
					}
					return "is gone"
				})
			},
		}, {
			Name: "deleted",
			Act: func(f *Fixture) {
				f.Deletes(&shipper.Application{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: appName}})
				f.IsGone("applications", appName)
			},
			Check: func(f *Fixture) {
				for name := range f.Clusters {
					for _, o := range f.hosts[name].all(secrets) {
						if strings.HasSuffix(o.GetAnnotations()[shipper.PlacedOwnerAnnotation], "/"+appName) {
							f.laws.broken(7, "%s has %s yet, with what was rendered", name, o.GetName())
						}
					}
				}
			},
		}},
	}
}
