// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"shipper.dev/shipper/apis/rules/shipyard"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/charts"
)

// The namespaces of the two stages, and the service.
const (
	shop, shopProd = "shop", "shop-prod"
	web            = "web"
)

// stages is the file of a shipyard, as the specification has it, with another apiVersion and Shipper's fields namespace, requires, job and
// checks. Production asks for two people and for a check.
const stages = `apiVersion: shipper.booking.com/v1alpha1    # was: spec.keptn.sh/0.2.0
kind: Shipyard
metadata: {name: shop, namespace: shop}
spec:
  stages:
  - name: staging
    sequences:
    - name: delivery
      tasks:
      - {name: deployment}
      - name: test
        properties:
          teststrategy: functional
          job: {template: {spec: {restartPolicy: Never, containers: [{name: smoke, image: "busybox:1"}]}}}
      - {name: evaluation}
      - {name: release}
  - name: production
    namespace: shop-prod
    requires: [{stage: staging}]
    sequences:
    - name: delivery
      triggeredOn: [{event: staging.delivery.finished}]
      tasks:
      - {name: approval, properties: {pass: manual, approvals: 2}}
      - {name: deployment}
      - {name: evaluation, properties: {checks: [{check: errors, key: true}]}}
      - {name: release}
    - name: rollback
      triggeredOn: [{event: production.delivery.finished, selector: {match: {result: fail}}}]
      tasks: [{name: rollback}]
`

// pipeline shows versions that go through two stages.
func pipeline(s *fixture) []chapter {
	return []chapter{
		{"A management cluster is set up, two application clusters join", s.join},
		{"Each cluster has a Prometheus", s.startPrometheus},
		{"A team has an Application in staging and one in production", s.twoStages},
		{"They paste their shipyard, and bind an account to Shipper", s.pasteShipyard},
		{"A new version goes through staging", s.deliverToStaging},
		{"Production waits for two people", s.approveTwice},
		{"An SRE blocks production, and lifts the block", s.blockRun},
		{"The next version has errors: the evaluation fails, and it is taken back", s.failEvaluation},
	}
}

// twoStages makes the namespaces, the check and both Applications. Everybody may start runs; ann and bob approve.
func (s *fixture) twoStages(ctx context.Context) error {
	for _, name := range []string{shop, shopProd} {
		clients := []client.Client{s.management}
		for _, a := range s.applications {
			clients = append(clients, a.client)
		}
		for _, c := range clients {
			if err := c.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
				return fmt.Errorf("creating namespace %s: %w", name, err)
			}
		}
	}
	if _, err := s.show(ctx, s.kubectl, "create", "rolebinding", "approvers", "-n", shop, "--clusterrole=shipper:approver", "--user=ann",
		"--user=bob"); err != nil {
		return err
	}
	const check = `apiVersion: shipper.booking.com/v1alpha1
kind: Check
metadata: {name: errors, namespace: shop-prod}
spec:
  interval: 5s
  timeout: 2s
  count: 3
  noData: Inconclusive
  inconclusiveLimit: 5
  prometheus:
    queries:
      errors: >-
        sum(rate(http_requests_total{shipper_release="$(release)",code=~"5.."}[5s]))
        / sum(rate(http_requests_total{shipper_release="$(release)"}[5s]))
  pass: errors < 0.05
`
	if err := s.applyManifest(ctx, "check.yaml", check); err != nil {
		return err
	}
	for _, one := range []struct{ namespace, name, regions string }{
		{shop, web + "-staging", "{name: eu-west}"}, {shopProd, web, "{name: eu-west}, {name: us-east}"},
	} {
		err := s.applyManifest(ctx, one.name+".yaml", fmt.Sprintf(`apiVersion: shipper.booking.com/v1alpha1
kind: Application
metadata: {name: %s, namespace: %s}
spec:
  template:
    chart: {name: nginx, repoUrl: %s}
    clusterRequirements: {regions: [%s]}
    values: {replicaCount: 3}
    strategy: {firstRelease: Immediate, steps: [%s, %s]}
`, one.name, one.namespace, s.charts.URL, one.regions, half, fullOn))
		if err != nil {
			return err
		}
	}
	for _, of := range []struct{ namespace, name string }{{shop, web + "-staging"}, {shopProd, web}} {
		if _, err := s.completes(ctx, of.namespace, of.name, 1); err != nil {
			return err
		}
	}
	return nil
}

// completes waits until an Application has so many Releases and the newest is complete, and names it.
func (s *fixture) completes(ctx context.Context, in, name string, count int) (string, error) {
	newest := ""
	want := fmt.Sprintf("%d, complete", count)
	err := s.await(ctx, patience, "the newest Release of "+name, want, func(ctx context.Context) (string, error) {
		app, rel := &shipper.Application{}, &shipper.Release{}
		if err := s.management.Get(ctx, client.ObjectKey{Namespace: in, Name: name}, app); err != nil {
			return "", err
		}
		if len(app.Status.History) == 0 {
			return "none", nil
		}
		newest = app.Status.History[len(app.Status.History)-1]
		if err := s.management.Get(ctx, client.ObjectKey{Namespace: in, Name: newest}, rel); err != nil {
			return "", err
		}
		state := "not complete"
		if shipper.ConditionTrue(rel.Status.Conditions, shipper.ReleaseComplete) {
			state = "complete"
		}
		return fmt.Sprintf("%d, %s", len(app.Status.History), state), nil
	})
	if err == nil {
		s.fact("Release %s of %s/%s is complete", newest, in, name)
	}
	return newest, err
}

// pasteShipyard applies the shipyard, and binds the account with whose rights runs write.
func (s *fixture) pasteShipyard(ctx context.Context) error {
	fmt.Fprintln(s.out, indented(stages))
	if err := s.applyManifest(ctx, "shipyard.yaml", stages); err != nil {
		return err
	}
	_, err := s.show(ctx, s.shipperctl, "shipyard", "bind", shop, "-n", shop, "--apply")
	return err
}

// starts a run, and returns its name.
func (s *fixture) starts(ctx context.Context, version string, more ...string) (string, error) {
	out, err := s.show(ctx, s.shipperctl, append([]string{
		"shipyard", "run", shop, "-n", shop, "--stage", "staging", "--sequence", "delivery", "--service", web, "--version", version,
	}, more...)...)
	if err != nil {
		return "", err
	}
	var runs shipper.SequenceRunList
	if err := s.management.List(ctx, &runs, client.InNamespace(shop)); err != nil {
		return "", fmt.Errorf("listing the runs: %w", err)
	}
	for i := range runs.Items {
		if run := &runs.Items[i]; run.Labels[shipper.TriggeredByLabel] == "" && strings.Contains(out, run.Name) {
			return run.Name, nil
		}
	}
	return "", differs("shipperctl shipyard run", "the name of a run", out)
}

// becomes waits until a run has a state and its tasks results.
func (s *fixture) becomes(ctx context.Context, name, want string) error {
	err := s.await(ctx, patience, "run "+name, want, func(ctx context.Context) (string, error) {
		run := &shipper.SequenceRun{}
		if err := s.management.Get(ctx, client.ObjectKey{Namespace: shop, Name: name}, run); err != nil {
			return "", err
		}
		return toldRun(run), nil
	})
	if err == nil {
		s.fact("run %s: %s", name, want)
	}
	return err
}

// toldRun is a run and its tasks in one line.
func toldRun(run *shipper.SequenceRun) string {
	state := ""
	if c := shipper.FindCondition(run.Status.Conditions, shipper.RunFinished); c != nil {
		state = c.Reason
	}
	for i := range run.Status.Tasks {
		task := &run.Status.Tasks[i]
		state += ", " + shipyard.NameOf(task) + " " + strings.TrimSpace(string(task.Result))
		if task.Result == "" {
			state += strings.ToLower(string(task.State))
		}
	}
	return state
}

// follows waits for the run of a sequence of production that follows from another one.
func (s *fixture) follows(ctx context.Context, name, sequence string) (string, error) {
	next := ""
	err := s.await(ctx, patience, "what follows from "+name, sequence, func(ctx context.Context) (string, error) {
		run := &shipper.SequenceRun{}
		if err := s.management.Get(ctx, client.ObjectKey{Namespace: shop, Name: name}, run); err != nil {
			return "", err
		}
		for _, t := range run.Status.Triggered {
			if t.Sequence == sequence && t.CreateTime != nil {
				next = t.Name
				return sequence, nil
			}
		}
		return fmt.Sprint(run.Status.Triggered), nil
	})
	return next, err
}

func (s *fixture) deliverToStaging(ctx context.Context) error {
	next, err := charts.Get(service, "0.0.2")
	if err != nil {
		return fmt.Errorf("reading version 0.0.2: %w", err)
	}
	s.charts.Publish(next)
	run, err := s.starts(ctx, "0.0.2")
	if err != nil {
		return err
	}
	if err := s.becomes(ctx, run, "Passed, deployment pass, test pass, evaluation pass, release pass"); err != nil {
		return err
	}
	if _, err := s.completes(ctx, shop, web+"-staging", 2); err != nil {
		return err
	}
	s.contender, err = s.follows(ctx, run, "delivery")
	return err
}

// approve gives an Approval of the run in production, as a user.
func (s *fixture) approve(ctx context.Context, user string) error {
	return s.applyAs(ctx, user, fmt.Sprintf(`{apiVersion: shipper.booking.com/v1alpha1, kind: Approval,
  metadata: {name: %s-%s, namespace: shop}, spec: {run: %s}}
`, s.contender[max(0, len(s.contender)-5):], user, s.contender))
}

// applyAs creates an object as a user.
func (s *fixture) applyAs(ctx context.Context, user, manifest string) error {
	file := filepath.Join(s.dir, "of-"+user+".yaml")
	if err := os.WriteFile(file, []byte(manifest), 0o600); err != nil {
		return fmt.Errorf("writing the object of %s: %w", user, err)
	}
	_, err := s.show(ctx, s.kubectl, "create", "-f", file, "--as", user)
	return err
}

func (s *fixture) approveTwice(ctx context.Context) error {
	if err := s.becomes(ctx, s.contender, "Running, approval waiting"); err != nil {
		return err
	}
	if err := s.refused(ctx, s.shipperctl, []string{"another user has to approve it"}, "shipyard", "approve", s.contender, "-n",
		shop); err != nil {
		return err
	}
	if err := s.approve(ctx, "ann"); err != nil {
		return err
	}
	_, err := s.show(ctx, s.kubectl, "get", "sr,appr", "-n", shop)
	return err
}
