// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// checksStory rolls forward through a step with checks, by a request and by a Job.
func checksStory() Story {
	contender := ""
	return Story{
		Name: "checks",
		Begin: func(f *Fixture) {
			f.Bystand()
			f.Creates(f.Application(appName, "0.0.1", replicaCount, allIn()))
			f.Completes(f.Release(0))
			job := `{"template": {"spec": {"containers": [{"name": "it", "image": "nginx:stable"}]}}}`
			for name, spec := range map[string]shipper.CheckSpec{
				"answers": {Interval: "5s", Timeout: "5s", Count: 2, HTTP: &shipper.HTTPCheck{URL: checksURL}},
				"probe":   {Job: &runtime.RawExtension{Raw: []byte(job)}},
			} {
				f.Creates(&shipper.Check{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: spec})
			}
		},
		Parts: []Part{{
			Name: "checked", Floor: replicaCount,
			Act: func(f *Fixture) {
				s := vanguard()
				s[1].Checks = []shipper.StepCheck{{Check: "answers"}, {Check: "probe"}}
				f.Upgrades("0.0.2", s)
				contender = f.Release(1)
				f.WaitsForCommand(contender, 0)
				f.Steps(contender, 1)
				f.WaitsForCommand(contender, 1)
			},
			Check: func(f *Fixture) { f.checkedOnce(contender) },
		}, {
			Name: "completed", Floor: replicaCount,
			Act: func(f *Fixture) {
				f.Steps(contender, 2)
				f.Completes(contender)
			},
		}},
	}
}

// checkedOnce requires that the checks of a Release passed in one run, with as many results as they need and no others, and that each
// cluster had one Job.
func (f *Fixture) checkedOnce(release string) {
	f.T.Helper()
	target := &shipper.CheckTarget{}
	f.hosts[management].read(kindOf("checktargets"), namespace, release, target)
	var said []string
	for _, r := range target.Status.Results {
		said = append(said, fmt.Sprintf("%s %s %d/%d/%d/%d", r.Name, r.Phase, r.Passed, r.Failed, r.Inconclusive, r.Errors))
	}
	want := []string{"answers Passed 2/0/0/0", "answers Passed 2/0/0/0", "probe Passed 1/0/0/0", "probe Passed 1/0/0/0"}
	if target.Spec.Run != 1 || !slices.Equal(said, want) {
		f.laws.broken(4, "run %d has %q, not %q", target.Spec.Run, said, want)
	}
	for name := range f.Clusters {
		n := 0
		for _, job := range f.hosts[name].all(jobs) {
			if strings.HasPrefix(job.GetName(), release) {
				n++
			}
		}
		if n != 1 {
			f.laws.broken(4, "%d Jobs of the check were made in %s", n, name)
		}
	}
}
