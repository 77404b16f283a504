// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// wavesFailingStory has an image that cannot be pulled: in one cluster, which maxFailures allows; in two, which it does not; and in one in
// which it can be for the first Pod, and later for all.
func wavesFailingStory() Story {
	left := func(f *Fixture, release string) {
		for n := 1; n < 4; n++ {
			if pods := f.laws.readyPods(clusterName(n), release); pods > 0 {
				f.laws.broken(7, "%d Pods of %s are left in %s", pods, release, clusterName(n))
			}
		}
	}
	within, beyond := "", ""
	return Story{
		Name: "waves-failing", Clusters: 4, Fails: true,
		Begin: func(f *Fixture) {
			f.Bystand()
			f.Creates(f.Application(appName, "0.0.1", replicaCount, allIn()))
			f.Completes(f.Release(0))
		},
		Parts: []Part{
			{Name: "one fails", Floor: replicaCount, Act: func(f *Fixture) {
				f.rollsFailing("a", clusterName(1))
				within = f.Release(1)
				f.Eventually("what "+within+" waits for", fmt.Sprintf("AwaitingFailedClusters [%s], 2 of 3 achieved", clusterName(1)),
					func() string { return f.awaitsFailed(within) })
			}},
			{Name: "one too many", Floor: replicaCount, Loose: true, Act: func(f *Fixture) {
				f.rollsFailing("b", clusterName(1), clusterName(2))
				beyond = f.Generation(2)
				f.Eventually("what becomes of "+beyond, "HeldAfterGoingBack, failed True", func() string {
					rel := f.Get(beyond)
					c := shipper.FindCondition(rel.Status.Conditions, shipper.ReleaseAdvancing)
					failed := shipper.FindCondition(rel.Status.Conditions, shipper.ReleaseFailed)
					if c == nil || failed == nil {
						return "unknown"
					}
					return fmt.Sprintf("%s, failed %s", c.Reason, failed.Status)
				})
			}, Check: func(f *Fixture) { left(f, beyond) }},
			{Name: "fails twice", Floor: replicaCount, Act: func(f *Fixture) { f.failsTwice() }},
		},
	}
}

// rollsFailing begins a rollout by waves that lets one cluster fail, with an image that cannot be pulled in some.
func (f *Fixture) rollsFailing(more string, bad ...string) {
	f.Edits(func(app *shipper.Application) {
		s := byWaves(shipper.AdvanceAutomatic)
		s.ProgressDeadline, s.OnFailure, s.MaxFailures = "2m", shipper.OnFailureRetreat, new(intstr.FromInt32(1))
		template := &app.Spec.Template
		template.Chart.Version, template.Strategy, template.ValuesPerCluster = "0.0.2", s, nil
		(*template.Values)["more"] = more
		for _, cluster := range bad {
			template.ValuesPerCluster = append(template.ValuesPerCluster, shipper.ValuesFor{
				Name: cluster, Values: &shipper.ChartValues{"image": map[string]any{"tag": "broken"}},
			})
		}
	})
}

// failsTwice has a cluster in which the image can be pulled for the Pod that is there, and for those that follow only after it failed
// again.
func (f *Fixture) failsTwice() {
	f.T.Helper()
	f.rollsFailing("c", clusterName(1))
	release := f.Generation(3)
	failed := fmt.Sprintf("AwaitingFailedClusters [%s], 2 of 3 achieved", clusterName(1))
	f.Eventually("what "+release+" waits for", failed, func() string { return f.awaitsFailed(release) })
	f.pushesImage(clusterName(1), release)
	f.Eventually("what recovers", "Moving ["+clusterName(1)+"]", func() string { return f.recovers(release) })
	f.Eventually("what "+release+" waits for again", failed, func() string { return f.awaitsFailed(release) })
	f.pushesImage(clusterName(1), release)
	f.Completes(release)
}

// awaitsFailed is what a Release awaits that has failed in clusters of its second wave.
func (f *Fixture) awaitsFailed(release string) string {
	rel := f.Get(release)
	c := shipper.FindCondition(rel.Status.Conditions, shipper.ReleaseAdvancing)
	if c == nil || len(rel.Status.Waves) < 2 || rel.Status.ObservedGeneration != rel.Generation {
		return "unknown"
	}
	w := rel.Status.Waves[1]
	return fmt.Sprintf("%s %v, %d of %d achieved", c.Reason, rel.Status.FailedClusters, w.Achieved, w.Clusters)
}

// recovers is how a Release advances, and which clusters had failed and were ready again.
func (f *Fixture) recovers(release string) string {
	rel := f.Get(release)
	c := shipper.FindCondition(rel.Status.Conditions, shipper.ReleaseAdvancing)
	if c == nil {
		return "unknown"
	}
	var names []string
	for _, one := range rel.Status.RecoveringClusters {
		names = append(names, one.Name)
	}
	return fmt.Sprintf("%s %v", c.Reason, names)
}

// pushesImage has the Pods of a Release in a cluster find their image.
func (f *Fixture) pushesImage(cluster, release string) {
	f.T.Helper()
	for _, pod := range f.hosts[cluster].all(pods) {
		if pod.GetLabels()[shipper.ReleaseLabel] != release {
			continue
		}
		err := f.Clusters[cluster].Edit("", "pods", namespace, pod.GetName(), func(u *unstructured.Unstructured) error {
			return unstructured.SetNestedField(u.Object, "pushed", "metadata", "annotations", "fleet/image")
		})
		f.must("pushing an image", client.IgnoreNotFound(err))
	}
}
