// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"shipper.dev/shipper/apis/rules/shipyard"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// runStory delivers a version by a SequenceRun, with a run that follows. There is one Release and one run that follows, and each task
// passes. Runs write as the ServiceAccount shipper-runner.
func runStory() Story {
	const want = "delivery: Passed deployment pass, evaluation pass, release pass\nverify: Passed evaluation pass"
	task := func(names ...string) (out []shipper.Task) {
		for _, name := range names {
			out = append(out, shipper.Task{Name: name})
		}
		return out
	}
	return Story{
		Name: "run",
		Begin: func(f *Fixture) {
			f.Bystand()
			f.must("creating the runner", f.Management.Create("", "serviceaccounts", &corev1.ServiceAccount{
				ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: shipper.DefaultRunner},
			}))
			f.Creates(f.Application(appName, "0.0.1", replicaCount, allIn()))
			f.Completes(f.Release(0))
			f.Creates(&shipper.Shipyard{
				ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "shop"},
				Spec: shipper.ShipyardSpec{Stages: []shipper.Stage{{Name: "qa", Application: "{service}", Sequences: []shipper.Sequence{
					{Name: "delivery", Tasks: task("deployment", "evaluation", "release")},
					{Name: "verify", Tasks: task("evaluation"), TriggeredOn: []shipper.Trigger{{Event: "qa.delivery.finished"}}},
				}}}},
			})
		},
		Parts: []Part{{
			Name: "delivered", Floor: replicaCount,
			Act: func(f *Fixture) {
				f.Creates(&shipper.SequenceRun{
					ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "one"},
					Spec: shipper.SequenceRunSpec{
						Shipyard: "shop", Sequence: "delivery", Service: appName,
						Data: shipper.FreeForm{"deployment": map[string]any{"version": "0.0.2"}},
					},
				})
				f.Eventually("the runs", want, f.runs)
				f.Completes(f.Release(1))
			},
			Check: func(f *Fixture) {
				if got := f.runs(); got != want || len(f.ReleasesOf(appName)) != 2 {
					f.laws.broken(7, "the runs are %s; the Releases %s", got, f.ReleasesOf(appName))
				}
			},
		}},
	}
}

// runs are all runs, the ones that others triggered last.
func (f *Fixture) runs() string {
	var lines []string
	for _, o := range f.hosts[management].all(kindOf("sequenceruns")) {
		run := &shipper.SequenceRun{}
		convert(o, run)
		line := run.Spec.Sequence + ":"
		if c := shipper.FindCondition(run.Status.Conditions, shipper.RunFinished); c != nil {
			line += " " + c.Reason
		}
		var tasks []string
		for i := range run.Status.Tasks {
			tasks = append(tasks, fmt.Sprintf("%s %s", shipyard.NameOf(&run.Status.Tasks[i]), run.Status.Tasks[i].Result))
		}
		lines = append(lines, line+" "+strings.Join(tasks, ", "))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}
