// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/cmd/shipperctl/cli"
	"shipper.dev/shipper/test/promserver"
)

// scraped is a Prometheus, and the program that it scrapes, of each application cluster.
type scraped struct {
	app    *promserver.App
	server *promserver.Server
}

var (
	metricsOnce sync.Once
	metricsErr  error
	metricsOf   = map[string]scraped{}
)

// metrics starts a Prometheus for each cluster, once for all tests, and names it in its Cluster.
func (s *fixture) metrics() map[string]scraped {
	s.Helper()
	metricsOnce.Do(func() { metricsErr = startMetrics() })
	s.Must("starting Prometheus", metricsErr)
	return metricsOf
}

func startMetrics() error {
	ctx := context.Background()
	for _, name := range []string{west, east} {
		app, err := promserver.StartApp()
		if err != nil {
			return err
		}
		folder := filepath.Join(world.Dir, "prometheus-"+name)
		if err := os.Mkdir(folder, 0o700); err != nil {
			return err
		}
		server, err := promserver.Start(ctx, folder, promserver.Target{Address: app.Address()})
		if err != nil {
			return err
		}
		world.AtEnd(func() error { return server.Close() })
		world.AtEnd(app.Close)
		metricsOf[name] = scraped{app, server}
		patch := fmt.Appendf(nil, `{"spec":{"metrics":{"address":%q,"tenantLabel":"namespace"}}}`, server.URL())
		cluster := &shipper.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if err := world.Management.Patch(ctx, cluster, client.RawPatch(types.MergePatchType, patch)); err != nil {
			return err
		}
	}
	return nil
}

// serves sets the traffic of a Release in a cluster.
func (s *fixture) serves(cluster, release string, errorShare float64) {
	s.metrics()[cluster].app.Set(s.Namespace, release, 50, errorShare, 10*time.Millisecond)
}

// share is the share of errors of a Release.
func share(release string) shipper.CheckQuery {
	const requests = `sum(rate(http_requests_total{shipper_release="%s"%s}[5s]))`
	return shipper.CheckQuery(fmt.Sprintf(requests, release, `,code=~"5.."`) + " / " + fmt.Sprintf(requests, release, ""))
}

// checks creates a Check.
func (s *fixture) checks(name string, spec shipper.CheckSpec) {
	s.Helper()
	s.Must("creating the Check "+name, s.User.Create(s.Ctx, &shipper.Check{ObjectMeta: s.meta(name), Spec: spec}))
}

// errorsCheck is the check of the share of errors, every five seconds.
func errorsCheck(count int32) shipper.CheckSpec {
	return shipper.CheckSpec{
		Interval: "5s", Timeout: "5s", Count: count, FailureLimit: 1, InconclusiveLimit: 100, NoData: shipper.NoDataInconclusive,
		Pass:       "new <= 0.05 + double(args.slack)",
		Args:       []shipper.CheckArgument{{Name: "slack", Default: new("0")}},
		Prometheus: &shipper.PrometheusCheck{Queries: map[string]shipper.CheckQuery{"new": share("$(release)")}},
	}
}

// checked edits a strategy so that its second step has checks; the first has no traffic and goes on at once.
func checked(onFailure shipper.FailurePolicy, checks ...shipper.StepCheck) func(*shipper.RolloutStrategy) {
	return func(s *shipper.RolloutStrategy) {
		s.Steps[0].Capacity.Contender, s.Steps[0].After = 0, "0s"
		s.Steps[1].Checks, s.Steps[1].After = checks, "0s"
		s.OnFailure = onFailure
	}
}

// results describes what came of the checks of a Release.
func (s *fixture) results(release string) (string, error) {
	target := &shipper.CheckTarget{}
	if err := world.Management.Get(s.Ctx, s.Key(release), target); err != nil {
		return "", client.IgnoreNotFound(err)
	}
	var out []string
	for _, r := range target.Status.Results {
		out = append(out, fmt.Sprintf("%s %s %s", r.Name, r.Cluster, r.Phase))
	}
	return strings.Join(out, ", "), nil
}

// TestACanaryGoesOnByItsChecks has a check of the share of errors in each cluster, and the steps go on by themselves.
func TestACanaryGoesOnByItsChecks(t *testing.T) {
	onTwoClusters(t, func(s *fixture) {
		s.metrics()
		s.checks("errors", errorsCheck(2))
		_, contender := s.contends(checked(shipper.OnFailureRetreat, shipper.StepCheck{Check: "errors"}))
		for _, cluster := range s.clusters {
			s.serves(cluster, contender, 0.01)
		}
		s.Completes(contender)
		s.Eventually("what came of the checks", "errors eu-west-1 Passed, errors us-east-1 Passed", func() (string, error) {
			return s.results(contender)
		})
		s.says(s.Namespace+"/"+s.App, "check", "list")
		s.says("eu-west-1   Passed    new = 0.0", "check", "try", "errors", "--app", s.App)
		s.serves(east, contender, 0.4)
		s.Eventually("the verdict of a measurement with errors in one cluster", "5", func() (string, error) {
			_, err := s.shipperctl("check", "try", "errors", "--app", s.App)
			return fmt.Sprint(cli.ExitCode(err)), nil
		})
	})
}

// TestACanaryWithErrorsInOneClusterGoesBack has errors in one cluster alone. Both clusters go back.
func TestACanaryWithErrorsInOneClusterGoesBack(t *testing.T) {
	onTwoClusters(t, func(s *fixture) {
		s.metrics()
		s.checks("errors", errorsCheck(100))
		incumbent, contender := s.contends(checked(shipper.OnFailureRetreat, shipper.StepCheck{Check: "errors"}))
		s.serves(west, contender, 0)
		s.serves(east, contender, 0.4)
		s.advancing(contender, 0, "False HeldAfterGoingBack")
		s.readyPods(incumbent, 4)
		s.endpoints(4)
		rel, err := s.Get(contender)
		s.Must("reading the release", err)
		c := shipper.FindCondition(rel.Status.Conditions, shipper.ReleaseFailed)
		if c == nil || c.Status != "True" || c.Reason != shipper.CheckFailed ||
			!strings.Contains(c.Message, "step 1 (50/50) failed check errors in us-east-1: new = 0.4") ||
			!strings.Contains(c.Message, "and pass is new <= 0.05 + double(args.slack) (2 of ") {
			t.Errorf("the condition Failed is %+v", c)
		}
		if f := rel.Status.Progress.Failure; f == nil || f.Cluster != east || f.Check != "errors" {
			t.Errorf("the failure is %+v", f)
		}
		s.says("failed: step 1 (50/50), us-east-1: check errors: new = 0.4", "rollout", "status", s.App)
	})
}
