// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"

	"shipper.dev/shipper/apis/rules/position"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// byTwoCanaries has two clusters as canaries, both at the same time, and all others after them.
func byTwoCanaries(advance shipper.AdvancePolicy) *shipper.RolloutStrategy {
	s := byWaves(advance)
	s.Waves[0].ClusterSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{
		Key: shipper.RegionLabel, Operator: metav1.LabelSelectorOpIn, Values: []string{region(0), region(1)},
	}}}
	s.Waves[0].MaxConcurrency = new(intstr.FromInt32(2))
	return s
}

// Falter makes one Pod of a Release in a cluster ready or not, as its kubelet does.
func (f *Fixture) Falter(cluster, release string, ready bool) {
	f.T.Helper()
	status := corev1.ConditionFalse
	if ready {
		status = corev1.ConditionTrue
	}
	for _, pod := range f.hosts[cluster].all(pods) {
		if pod.GetLabels()[shipper.ReleaseLabel] != release {
			continue
		}
		f.must("changing a Pod", f.Clusters[cluster].Edit("", "pods", namespace, pod.GetName(), func(u *unstructured.Unstructured) error {
			list, _, err := unstructured.NestedSlice(u.Object, "status", "conditions")
			for _, c := range list {
				if m, is := c.(map[string]any); is && m["type"] == string(corev1.PodReady) {
					m["status"] = string(status)
				}
			}
			if err != nil {
				return err
			}
			return unstructured.SetNestedSlice(u.Object, list, "status", "conditions")
		}))
		return
	}
}

// awaits is the step of a Release, and why it does not go on.
func (f *Fixture) awaits(release string) string {
	rel, reason := f.Get(release), ""
	if c := shipper.FindCondition(rel.Status.Conditions, shipper.ReleaseAdvancing); c != nil {
		reason = c.Reason
	}
	return fmt.Sprintf("step %d: %s", rel.Spec.TargetStep, reason)
}

// wavesStaleStory has clusters whose statuses report what was: a canary that freezes before it changes, and before its last step, one that
// falters unseen while an approval is awaited, and canaries that falter before the next wave is requested. See law 19.
func wavesStaleStory() Story {
	contender, canary := "", clusterName(0)
	stays := func(f *Fixture, d time.Duration) {
		time.Sleep(d)
		if wave := position.Wave(f.Get(contender)); wave > 0 {
			f.laws.broken(19, "%s is in wave %d", contender, wave)
		}
	}
	return Story{
		Name: "waves-stale", Clusters: 3, Shared: true,
		Begin: func(f *Fixture) {
			f.Creates(f.Application(appName, "0.0.1", replicaCount, allIn()))
			f.Completes(f.Release(0))
		},
		Parts: []Part{
			{Name: "yesterday's health", Floor: replicaCount, Act: func(f *Fixture) {
				f.fail(Fault{Kind: Hang, Host: canary, For: 2 * time.Minute})
				f.Edits(func(app *shipper.Application) {
					app.Spec.Template.Chart.Version, app.Spec.Template.Strategy = "0.0.2", byTwoCanaries(shipper.AdvanceAutomatic)
				})
				contender = f.Release(1)
				stays(f, 2*time.Minute)
				f.Eventually("the last step", "2", func() string { return fmt.Sprint(f.Get(contender).Spec.TargetStep) })
				f.fail(Fault{Kind: Hang, Host: canary, For: 2 * time.Minute})
				stays(f, 2*time.Minute)
				f.Completes(contender)
			}},
			{
				Name: "unseen", Floor: replicaCount - 1, Before: func(f *Fixture) {
					f.Edits(func(app *shipper.Application) {
						(*app.Spec.Template.Values)["more"] = true
						app.Spec.Template.Strategy.Waves[0].AfterTasks = &shipper.WaveTasks{Approvals: 1}
					})
					contender = f.Release(2)
					f.Eventually("the canaries", "step 2: "+shipper.AdvancingAwaitingApproval, func() string { return f.awaits(contender) })
				},
				Act: func(f *Fixture) {
					f.fail(Fault{Kind: Hang, Host: canary, For: 4 * time.Minute})
					f.Falter(canary, contender, false)
					stays(f, 2*time.Minute)
					f.approves(contender, 2)
					stays(f, 3*time.Minute)
					f.Falter(canary, contender, true)
					f.Completes(contender)
				},
			},
			{
				Name: "behind", Floor: replicaCount - 1, Before: func(f *Fixture) {
					f.Edits(func(app *shipper.Application) {
						(*app.Spec.Template.Values)["more"] = false
						app.Spec.Template.Strategy = byTwoCanaries("")
					})
					contender = f.Release(3)
					f.WaitsAt(contender, 0, 0)
					f.Moves(contender, 0, 2)
					f.WaitsAt(contender, 0, 2)
				},
				Act: func(f *Fixture) {
					f.Falter(clusterName(0), contender, false)
					f.Falter(clusterName(1), contender, false)
					time.Sleep(reportedWithin)
					f.Moves(contender, 1, 2)
					time.Sleep(time.Minute)
					f.Falter(clusterName(0), contender, true)
					f.Falter(clusterName(1), contender, true)
					f.Completes(contender)
				},
			},
		},
	}
}
