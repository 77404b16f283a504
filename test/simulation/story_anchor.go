// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// anchorStory has a user delete the anchors in all clusters, of one Release and half-way between two. Nothing that they own goes.
func anchorStory() Story {
	var contender string
	var before, after map[string]string
	return Story{
		Name: "anchor",
		Begin: func(f *Fixture) {
			f.Bystand()
			app := f.Application(appName, "0.0.1", replicaCount, allIn())
			app.Spec.Template.Chart.Name, app.Spec.Template.Chart.Naming = "stateful", shipper.NamingByApplication
			f.Creates(app)
			f.Completes(f.Generation(0))
		},
		Parts: []Part{
			{
				Name: "of one Release", Floor: replicaCount,
				Act: func(f *Fixture) {
					before = f.running()
					f.losesAnchors()
					after = f.running()
				},
				Check: func(f *Fixture) { f.same(before, after) },
			},
			{
				// What both Releases list has both anchors for owners, or the one of the Release that wrote it last.
				Name: "half-way", Floor: replicaCount, Loose: true,
				Before: func(f *Fixture) {
					f.Upgrades("0.0.2", steps{step("one", 100, 25, 100, 0), step("three", 50, 75, 50, 50), step("full on", 0, 100, 0, 100)})
					contender = f.Generation(1)
					f.WaitsForCommand(contender, 0)
					f.Has("db", "0.0.1 0.0.1 0.0.1 0.0.2")
				},
				Act: func(f *Fixture) {
					before = f.running()
					f.losesAnchors()
					after = f.running()
				},
				Check: func(f *Fixture) { f.same(before, after) },
			},
			{
				Name: "deleted",
				Act: func(f *Fixture) {
					f.Deletes(&shipper.Application{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: appName}})
					f.IsGone("applications", appName)
				},
				Check: func(f *Fixture) { f.same(nil, f.running()) },
			},
		},
	}
}

// losesAnchors has a user delete all anchors of the Application in the clusters, and waits until each has been made again and owns what the
// one before did.
func (f *Fixture) losesAnchors() {
	f.T.Helper()
	lost := map[string]bool{}
	for cluster := range f.Clusters {
		for _, o := range f.hosts[cluster].all(configMaps) {
			if !isAnchor(o) {
				continue
			}
			lost[string(o.GetUID())] = true
			f.must("deleting an anchor", f.userOf(cluster).Delete(f.Ctx, &corev1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: o.GetName()},
			}))
		}
	}
	f.Eventually("the anchors", "", func() string {
		found := 0
		var wrong []string
		for cluster := range f.Clusters {
			for _, kind := range []string{configMaps, deployments, services, statefulSets, jobs} {
				for _, o := range f.hosts[cluster].all(kind) {
					if o.GetNamespace() != namespace || o.GetLabels()[shipper.AppLabel] != appName || kind == configMaps && !isAnchor(o) {
						continue
					}
					owners := o.GetOwnerReferences()
					former := func(ref metav1.OwnerReference) bool { return lost[string(ref.UID)] }
					switch {
					case kind == configMaps && !lost[string(o.GetUID())]:
						found++
					case kind == configMaps, len(owners) == 0, slices.ContainsFunc(owners, former):
						wrong = append(wrong, cluster+" "+kind+" "+o.GetName())
					}
				}
			}
		}
		if found != len(lost) {
			wrong = append(wrong, fmt.Sprintf("%d anchors of %d", found, len(lost)))
		}
		slices.Sort(wrong)
		return strings.Join(wrong, ", ")
	})
}

// isAnchor reports whether a ConfigMap is an anchor of the Application, and none of its chart.
func isAnchor(o client.Object) bool {
	return o.GetNamespace() == namespace && o.GetLabels()[shipper.AppLabel] == appName && strings.HasSuffix(o.GetName(), "-anchor")
}

// running are the UIDs of what the Application has in the clusters, by kind and name.
func (f *Fixture) running() map[string]string {
	out := map[string]string{}
	for cluster := range f.Clusters {
		for _, kind := range []string{pods, deployments, services, statefulSets, jobs} {
			for _, o := range f.hosts[cluster].all(kind) {
				if o.GetNamespace() == namespace && o.GetLabels()[shipper.AppLabel] == appName {
					out[cluster+" "+kind+" "+o.GetName()] = string(o.GetUID())
				}
			}
		}
	}
	return out
}

// same requires that objects neither came nor went.
func (f *Fixture) same(before, after map[string]string) {
	if !maps.Equal(before, after) {
		f.laws.broken(7, "objects came or went with an anchor: before %v, after %v", before, after)
	}
}
