// SPDX-License-Identifier: Apache-2.0

package kill

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/env"
)

// TestChecksGoOnWhenKilledAfterEveryWrite rolls forward through a step with checks. The reconciler is killed after every write.
func TestChecksGoOnWhenKilledAfterEveryWrite(t *testing.T) {
	env.Nightly(t, "test/simulation kills a rollout with checks, and test/e2e runs checks on control planes")
	s := begin(t)
	s.Must("creating the application", world.Management.Create(s.Ctx, s.application(appName, "0.0.1", replicas, allIn)))
	incumbent, checks := s.Release(0), s.checks()
	s.Completes(incumbent)
	s.rests()
	s.bystanders = s.othersVersions()
	s.chapter("checked", unanswered, replicas, map[string]string{}, func() {
		next := s.application(appName, "0.0.2", replicas, vanguard)
		next.Spec.Template.Strategy.Steps[1].Checks = checks
		s.Edits(func(app *shipper.Application) { app.Spec.Template = next.Spec.Template })
		contender := s.Release(1)
		s.WaitsForCommand(contender, 0)
		s.Steps(contender, 1)
		s.WaitsForCommand(contender, 1)
		s.checkedOnce(contender)
		s.Steps(contender, 2)
		s.Completes(contender)
	})
}

// checks makes two Checks, by a request and by a Job, and returns what a step says to use them.
func (s *fixture) checks() []shipper.StepCheck {
	s.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	s.Cleanup(server.Close)
	job := `{"template": {"spec": {"containers": [{"name": "it", "image": "nginx:stable"}]}}}`
	for name, spec := range map[string]shipper.CheckSpec{
		"answers": {Interval: "5s", Timeout: "5s", Count: 2, HTTP: &shipper.HTTPCheck{URL: server.URL}},
		"probe":   {Job: &runtime.RawExtension{Raw: []byte(job)}},
	} {
		s.Must("creating a Check", world.Management.Create(s.Ctx, &shipper.Check{
			ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: name}, Spec: spec,
		}))
	}
	return []shipper.StepCheck{{Check: "answers"}, {Check: "probe"}}
}

// checkedOnce requires that the checks of a Release passed in one run, with as many results as they need and no others, and that each
// cluster had one Job.
func (s *fixture) checkedOnce(release string) {
	s.Helper()
	target := &shipper.CheckTarget{}
	s.Must("reading the CheckTarget", world.Management.Get(s.Ctx, s.Key(release), target))
	var said []string
	for _, r := range target.Status.Results {
		said = append(said, fmt.Sprintf("%s %s %d/%d/%d/%d", r.Name, r.Phase, r.Passed, r.Failed, r.Inconclusive, r.Errors))
	}
	want := []string{"answers Passed 2/0/0/0", "answers Passed 2/0/0/0", "probe Passed 1/0/0/0", "probe Passed 1/0/0/0"}
	if target.Spec.Run != 1 || !slices.Equal(said, want) {
		s.Errorf("run %d has %q, not %q", target.Spec.Run, said, want)
	}
	for name, cluster := range world.Clusters {
		var jobs batchv1.JobList
		s.Must("listing Jobs", cluster.List(s.Ctx, &jobs, client.InNamespace(s.Namespace)))
		n := 0
		for i := range jobs.Items {
			if strings.HasPrefix(jobs.Items[i].Name, release) {
				n++
			}
		}
		if n != 1 {
			s.Errorf("%d Jobs of the check were made in %s", n, name)
		}
	}
}
