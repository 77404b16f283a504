// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/memory"
)

// delivered are the labels of an Application that tools have delivered. The chart sets one of them to another value.
var delivered = map[string]string{"app": "common", "team": "web", "app.kubernetes.io/instance": "argo", "kapp.k14s.io/app": "kapp"}

// Labels of Deployments with those: by the rule of earlier versions, and as they are now.
const (
	overridden = "app=common app.kubernetes.io/instance=argo kapp.k14s.io/app=kapp team=web"
	respected  = "app=test-nginx team=web"
)

// labelsStory has a Release that an earlier version made, whose Deployment has the Application's labels in place of the chart's. When what
// it was rendered to is lost with the Deployment, it is made again around its Pods, and serves again after an abort. Later Releases have
// the chart's labels.
func labelsStory() Story {
	incumbent := ""
	return Story{
		Name: "labels",
		Begin: func(f *Fixture) {
			f.Bystand()
			f.earlier.Store(true)
			app := f.Application(appName, "0.0.1", replicaCount, allIn())
			app.Labels = maps.Clone(delivered)
			f.Creates(app)
			incumbent = f.Release(0)
			f.Completes(incumbent)
			f.earlier.Store(false)
		},
		Parts: []Part{
			{
				Name: "rendered again", Floor: replicaCount,
				Before: func(f *Fixture) { f.losesRenderings() },
				Act: func(f *Fixture) {
					before := f.runningPods()
					f.orphansPods()
					f.Settles(incumbent)
					f.same(before, f.runningPods())
				},
				Check: func(f *Fixture) { f.hasLabels(incumbent, overridden) },
			},
			{
				Name: "aborted half way", Floor: replicaCount / 2,
				Act: func(f *Fixture) {
					next := f.Application(appName, "0.0.2", replicaCount, vanguard())
					f.Edits(func(app *shipper.Application) {
						app.Spec.Template = next.Spec.Template
						app.Labels["name"] = "common" // the Service selects by it, for which earlier versions refused the chart
					})
					contender := f.Release(1)
					f.WaitsForCommand(contender, 0)
					f.Steps(contender, 1)
					f.WaitsForCommand(contender, 1)
					f.hasLabels(contender, respected)
					f.Deletes(&shipper.Release{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: contender}})
					f.IsGone("releases", contender)
					f.Settles(incumbent)
				},
				Check: func(f *Fixture) { f.hasLabels(incumbent, overridden) },
			},
			{
				Name: "replaced", Floor: replicaCount,
				Act: func(f *Fixture) {
					next := f.Application(appName, "0.0.2", replicaCount, allIn())
					f.Edits(func(app *shipper.Application) { app.Spec.Template = next.Spec.Template })
					f.Completes(f.Release(1))
				},
				Check: func(f *Fixture) { f.hasLabels(f.ReleasesOf(appName)[1], respected) },
			},
		},
	}
}

// byEarlier makes a Release that is created what an earlier version made of it: with all labels of its Application, and no mark.
func (w *World) byEarlier(r *memory.Review) {
	if !w.earlier.Load() || r.Operation != "CREATE" || r.Kind.ID() != kindOf("releases") || r.Subresource != "" {
		return
	}
	labels := r.Object.GetLabels()
	for key, value := range delivered {
		labels[key] = value
	}
	r.Object.SetLabels(labels)
	unstructured.RemoveNestedField(r.Object.Object, "metadata", "annotations", shipper.ReleaseLabelPrecedenceAnnotation)
}

// losesRenderings has a user delete what Releases were rendered to.
func (f *Fixture) losesRenderings() {
	f.T.Helper()
	for cluster := range f.Clusters {
		for _, o := range f.hosts[cluster].all(secrets) {
			if o.GetNamespace() == shipper.SystemNamespace {
				f.must("deleting a rendering", client.IgnoreNotFound(f.userOf(cluster).Delete(f.Ctx, &corev1.Secret{
					ObjectMeta: metav1.ObjectMeta{Namespace: o.GetNamespace(), Name: o.GetName()},
				})))
			}
		}
	}
}

// runningPods are the Pods among running.
func (f *Fixture) runningPods() map[string]string {
	out := f.running()
	maps.DeleteFunc(out, func(name, _ string) bool { return !strings.Contains(name, " "+pods+" ") })
	return out
}

// hasLabels requires that the Deployment of a Release has these labels in its selector and on its Pods, those of delivered considered.
func (f *Fixture) hasLabels(release, want string) {
	f.T.Helper()
	for cluster := range f.Clusters {
		var d appsv1.Deployment
		f.hosts[cluster].read(deployments, namespace, release+"-test-nginx", &d)
		var selector map[string]string
		if d.Spec.Selector != nil {
			selector = d.Spec.Selector.MatchLabels
		}
		for _, has := range []map[string]string{selector, d.Spec.Template.Labels} {
			var is []string
			for _, key := range slices.Sorted(maps.Keys(delivered)) {
				if value, there := has[key]; there {
					is = append(is, fmt.Sprint(key, "=", value))
				}
			}
			if got := strings.Join(is, " "); got != want {
				f.laws.broken(7, "the Deployment of %s in %s has %q, want %q", release, cluster, got, want)
			}
		}
	}
}
