// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/charts"
	"shipper.dev/shipper/test/promserver"
)

// smokeJob succeeds.
const smokeJob = `{"template": {"metadata": {"labels": {"app": "job"}},
	"spec": {"containers": [{"name": "it", "image": "nginx:stable", "args": ["$(release)", "$(cluster)"]}]}}}`

// TestTestsAndJobsDecideBeforeAnyTraffic has a first step without traffic whose checks are the chart's tests and a Job.
func TestTestsAndJobsDecideBeforeAnyTraffic(t *testing.T) {
	onTwoClusters(t, func(s *fixture) {
		files := map[string]string{}
		for name, text := range hookedFiles {
			files[name] = strings.ReplaceAll(text, "name: hooked\nversion", "name: hooked-checks\nversion")
		}
		archive, err := charts.PackFiles("hooked-checks", "0.0.1", files)
		s.Must("packing the chart", err)
		world.Charts.Publish(archive)
		s.checks("smoke", shipper.CheckSpec{Tests: &shipper.TestsCheck{Names: []string{"test"}}})
		s.checks("probe", shipper.CheckSpec{Job: &runtime.RawExtension{Raw: []byte(smokeJob)}})
		hooked := func(fails string, steps strategy) shipper.ReleaseEnvironment {
			out := s.application("0.0.1", 1, steps).Spec.Template
			out.Chart.Name = "hooked-checks"
			out.Values = &shipper.ChartValues{"fails": fails}
			return out
		}
		app := s.application("0.0.1", 1, allIn)
		app.Spec.Template = hooked("nothing", allIn)
		s.applies(app)
		incumbent := s.Release(0)
		s.Completes(incumbent)

		s.Edits(func(app *shipper.Application) {
			app.Spec.Template = hooked("test", vanguard)
			app.Spec.Template.Strategy.Steps[0].Checks = []shipper.StepCheck{{Check: "smoke"}, {Check: "probe"}}
		})
		bad := s.Release(1)
		s.advancing(bad, 0, "False Failed")
		s.Eventually("what came of the checks",
			"probe eu-west-1 Passed, probe us-east-1 Passed, smoke eu-west-1 Failed, smoke us-east-1 Failed",
			func() (string, error) { return s.results(bad) })
		s.readyPods(incumbent, 1)
		s.forbidden("passing the step", s.TryStepAs(bad, 1), "step 0 (staging) is a gate and is not achieved", "check smoke failed")

		s.Edits(func(app *shipper.Application) {
			app.Spec.Template = hooked("nothing", vanguard)
			app.Spec.Template.Strategy.Steps[0].Checks = []shipper.StepCheck{{Check: "smoke"}, {Check: "probe"}}
		})
		good := s.releaseAfter(bad)
		s.WaitsForCommand(good, 0)
		for _, cluster := range s.clusters {
			var jobs batchv1.JobList
			s.Must("listing Jobs", world.Clusters[cluster].List(s.Ctx, &jobs, client.InNamespace(s.Namespace)))
			n := 0
			for _, j := range jobs.Items {
				if strings.HasPrefix(j.Name, good+"-probe") {
					n++
				}
			}
			if n != 1 {
				t.Errorf("%d Jobs of the check were made in %s", n, cluster)
			}
			var pods corev1.PodList
			s.Must("listing Pods", world.Clusters[cluster].List(s.Ctx, &pods, client.InNamespace(s.Namespace), client.MatchingLabels{"app": "job"}))
			for _, p := range pods.Items {
				if p.Labels[shipper.AppLabel] != "" || p.Labels[shipper.ReleaseLabel] != "" {
					t.Errorf("a Pod of a check has labels %v", p.Labels)
				}
			}
		}
		s.Steps(good, 1)
		s.WaitsForCommand(good, 1)
		s.Must("aborting", s.User.Delete(s.Ctx, &shipper.Release{ObjectMeta: s.meta(good)}))
		for _, cluster := range s.clusters {
			s.Eventually("Jobs of the aborted Release in "+cluster, "none", func() (string, error) {
				var jobs batchv1.JobList
				err := world.Clusters[cluster].List(s.Ctx, &jobs, client.InNamespace(s.Namespace))
				for _, j := range jobs.Items {
					if strings.HasPrefix(j.Name, good+"-probe") {
						return j.Name, err
					}
				}
				return "none", err
			})
		}
	})
}

// TryStepAs is TryStep by a user without the verb skip.
func (s *fixture) TryStepAs(release string, step int32) error {
	dev, _ := s.as("dev")
	return dev.TryStep(release, step)
}

// TestWithoutPrometheusNothingGoesOnOrBack stops Prometheus while a step is checked. Meanwhile the Check is changed: the run has a copy.
func TestWithoutPrometheusNothingGoesOnOrBack(t *testing.T) {
	t.Parallel()
	s := begin(t, []string{west}, []string{westRegion})
	app, err := promserver.StartApp()
	s.Must("starting a program with metrics", err)
	t.Cleanup(func() { s.Must("stopping it", app.Close()) })
	folder := filepath.Join(world.Dir, s.Namespace)
	s.Must("making a folder", os.Mkdir(folder, 0o700))
	prometheus, err := promserver.Start(s.Ctx, folder, promserver.Target{Address: app.Address()})
	s.Must("starting Prometheus", err)
	t.Cleanup(func() { s.Must("stopping it", prometheus.Close()) })

	spec := errorsCheck(2)
	spec.Prometheus.Address, spec.ConsecutiveErrorLimit = prometheus.URL(), new(int32(1))
	s.checks("errors", spec)
	_, contender := s.contends(checked(shipper.OnFailureAbort, shipper.StepCheck{Check: "errors"}))
	s.Must("stopping Prometheus", prometheus.Stop())
	s.advancing(contender, 1, "False CheckUndecided")
	changed := &shipper.Check{ObjectMeta: s.meta("errors")}
	s.Must("reading the Check", s.User.Get(s.Ctx, client.ObjectKeyFromObject(changed), changed))
	s.Must("starting Prometheus", prometheus.Start(s.Ctx))
	app.Set(s.Namespace, contender, 50, 0, time.Millisecond)
	s.says("check errors: Undecided, 0 of 2 measurements, in cluster eu-west-1", "rollout", "status", s.App)
	s.says("`shipperctl rollout retry-checks` makes the checks again", "rollout", "status", s.App)
	s.says("release "+contender+" makes the checks of step 1 (50/50) again", "rollout", "retry-checks", s.App)
	s.Eventually("the run", "2", func() (string, error) {
		target := &shipper.CheckTarget{}
		err := world.Management.Get(s.Ctx, s.Key(contender), target)
		return fmt.Sprint(target.Spec.Run), err
	})
	changed.Spec.Pass = "new > 1.0"
	s.Must("changing the Check", s.User.Update(s.Ctx, changed))
	s.Completes(contender)
	s.forbidden("deleting a Check in use", s.User.Delete(s.Ctx, changed), s.Namespace+"/"+appName+" names it")
}

// answering is a server whose answer a test sets.
func answering(t *testing.T) (*httptest.Server, *atomic.Int32) {
	status := &atomic.Int32{}
	status.Store(http.StatusOK)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(int(status.Load()))
		fmt.Fprintf(w, `{"release": %q}`, r.URL.Query().Get("release"))
	}))
	t.Cleanup(server.Close)
	return server, status
}

// TestABlockHoldsWhatAFailedCheckCauses has a check that fails while a block stops going back.
func TestABlockHoldsWhatAFailedCheckCauses(t *testing.T) {
	onTwoClusters(t, func(s *fixture) {
		server, status := answering(t)
		s.checks("answers", shipper.CheckSpec{
			Interval: "5s", Timeout: "5s", Count: 100, HTTP: &shipper.HTTPCheck{URL: server.URL + "/?release=$(release)"},
			Pass: `response.status == 200 && response.json.release.startsWith("my-test-app")`,
		})
		_, contender := s.contends(checked(shipper.OnFailureRetreat, shipper.StepCheck{Check: "answers"}))
		s.advancing(contender, 1, "True Checking")
		rb := &shipper.RolloutBlock{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "freeze"}}
		rb.Spec.Message = "freeze"
		s.Must("creating a block", s.User.Create(s.Ctx, rb))
		status.Store(http.StatusServiceUnavailable)
		s.advancing(contender, 1, "False Failed")
		s.Eventually("what is said of it", "held", func() (string, error) {
			rel, err := s.Get(contender)
			c := shipper.FindCondition(rel.Status.Conditions, shipper.ReleaseAdvancing)
			if err != nil || c == nil || !strings.Contains(c.Message, "onFailure is Retreat, and that is held: ") {
				return fmt.Sprint(c), err
			}
			return "held", nil
		})
		s.Must("deleting the block", s.User.Delete(s.Ctx, rb))
		s.advancing(contender, 0, "False HeldAfterGoingBack")
		status.Store(http.StatusOK)
		s.Steps(contender, 1)
		s.advancing(contender, 1, "True Checking")
		s.Must("aborting", s.User.Delete(s.Ctx, &shipper.Release{ObjectMeta: s.meta(contender)}))
		s.Eventually("the history", "1", func() (string, error) {
			history, err := s.History(s.App)
			return fmt.Sprint(len(history)), err
		})
	})
}

// TestAFleetIsJudgedOnce has a check over both clusters, and one that compares with an incumbent that the first Release lacks.
func TestAFleetIsJudgedOnce(t *testing.T) {
	onTwoClusters(t, func(s *fixture) {
		s.metrics()
		spec := errorsCheck(2)
		spec.Over, spec.Pass = shipper.OverFleet, "new.max() < 0.3"
		s.checks("fleet", spec)
		compared := errorsCheck(1)
		compared.Prometheus.Queries["old"], compared.Pass = share("$(incumbent)"), "new <= old * 2.0 + 0.02"
		s.checks("compared", compared)
		app := s.application("0.0.1", 2, vanguard)
		checked(shipper.OnFailureRetreat, shipper.StepCheck{Check: "fleet"}, shipper.StepCheck{Check: "compared"})(app.Spec.Template.Strategy)
		s.applies(app)
		first := s.Release(0)
		s.serves(west, first, 0.2)
		s.serves(east, first, 0.1)
		s.Completes(first)
		target := &shipper.CheckTarget{}
		s.Must("reading the results", world.Management.Get(s.Ctx, s.Key(first), target))
		var said []string
		for _, r := range target.Status.Results {
			said = append(said, fmt.Sprintf("%s %q %s %s", r.Name, r.Cluster, r.Phase, r.Message))
		}
		nothing := "Passed there is nothing to compare with: no Release served before"
		if want := []string{`compared "eu-west-1" ` + nothing, `compared "us-east-1" ` + nothing, `fleet "" Passed `}; !slices.Equal(said, want) {
			t.Errorf("%q, not %q", said, want)
		}

		s.Edits(func(app *shipper.Application) {
			app.Spec.Template.Values = &shipper.ChartValues{"replicaCount": int64(3)}
		})
		second := s.Release(1)
		s.serves(west, second, 0.2)
		s.serves(east, second, 0.29)
		s.advancing(second, 0, "False HeldAfterGoingBack")
		rel, err := s.Get(second)
		s.Must("reading the release", err)
		if f := rel.Status.Progress.Failure; f == nil || f.Check != "compared" || f.Cluster != east {
			t.Errorf("the failure is %+v", f)
		}
	})
}
