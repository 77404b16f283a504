// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/promserver"
)

// interval is that of the check, and perSecond how many requests each Release serves.
const (
	interval  = 5 * time.Second
	perSecond = 50
)

// checks shows rollouts that a metric decides.
func checks(s *fixture) []chapter {
	return []chapter{
		{"A management cluster is set up, two application clusters join", s.join},
		{"Each cluster has a Prometheus, and Slack gets messages", s.measureClusters},
		{"A Check of the share of errors, and a first Release", s.firstChecked},
		{"A canary whose errors stay low goes on by itself", s.goodCanary},
		{"A canary with errors in one cluster goes back by itself", s.badCanary},
		{"Slack has received messages", s.slackOfChecks},
	}
}

// measured is a Prometheus and the program that it scrapes.
type measured struct {
	app    *promserver.App
	server *promserver.Server
}

// measureClusters starts a Prometheus for each cluster, and has Slack get messages.
func (s *fixture) measureClusters(ctx context.Context) error {
	if err := s.startPrometheus(ctx); err != nil {
		return err
	}
	return s.notify(ctx)
}

// startPrometheus starts a Prometheus for each cluster, and names it in the Cluster.
func (s *fixture) startPrometheus(ctx context.Context) error {
	s.metrics = map[string]measured{}
	for _, cluster := range s.fleet.Applications {
		app, err := promserver.StartApp()
		if err != nil {
			return fmt.Errorf("starting the program with metrics: %w", err)
		}
		s.ends = append(s.ends, app.Close)
		folder := filepath.Join(s.dir, "prometheus-"+cluster.Name)
		if err := os.Mkdir(folder, 0o700); err != nil {
			return fmt.Errorf("making a folder for Prometheus: %w", err)
		}
		server, err := promserver.Start(ctx, folder, promserver.Target{Address: app.Address()})
		if err != nil {
			return fmt.Errorf("starting Prometheus: %w", err)
		}
		s.ends = append(s.ends, server.Close)
		s.metrics[cluster.Name] = measured{app, server}
		patch := fmt.Sprintf(`{"spec":{"metrics":{"address":%q,"tenantLabel":"namespace"}}}`, server.URL())
		if _, err := s.show(ctx, s.kubectl, "patch", "cluster", cluster.Name, "--type=merge", "-p", patch); err != nil {
			return err
		}
	}
	return nil
}

// serveRequests has a Release serve requests in all clusters.
func (s *fixture) serveRequests(release string, errorShare float64) {
	for _, cluster := range s.fleet.Applications {
		s.metrics[cluster.Name].app.Set(namespace, release, perSecond, errorShare, 20*time.Millisecond)
	}
}

// applyChecked applies the Application with a note that differs by version. Its canary is measured for so long.
func (s *fixture) applyChecked(ctx context.Context, note, after string) error {
	return s.applyManifest(ctx, "app.yaml", fmt.Sprintf(`apiVersion: shipper.booking.com/v1alpha1
kind: Application
metadata:
  name: %s
spec:
  template:
    chart: {name: blue-green, repoUrl: %s, version: 0.0.1}
    clusterRequirements: {regions: [{name: eu-west}, {name: us-east}]}
    values: {replicaCount: 3, note: %s}
    strategy:
      firstRelease: Immediate
      onFailure: Retreat
      steps:
      - {name: staging, capacity: {contender: 1,   incumbent: 100}, traffic: {contender: 0,   incumbent: 100}, after: 0s}
      - name: canary
        capacity: {contender: 50, incumbent: 100}
        traffic: {contender: 20, incumbent: 80}
        after: %s
        checks: [{check: errors}]
      - {name: full on, capacity: {contender: 100, incumbent: 0},   traffic: {contender: 100, incumbent: 0}}
`, application, s.charts.URL, note, after))
}

func (s *fixture) firstChecked(ctx context.Context) error {
	const manifest = `apiVersion: shipper.booking.com/v1alpha1
kind: Check
metadata:
  name: errors
spec:
  interval: 5s
  timeout: 5s
  failureLimit: 1
  noData: Inconclusive
  inconclusiveLimit: 3
  prometheus:
    queries:
      new: >-
        sum(rate(http_requests_total{shipper_release="$(release)",code=~"5.."}[5s]))
        / sum(rate(http_requests_total{shipper_release="$(release)"}[5s]))
      old: >-
        sum(rate(http_requests_total{shipper_release="$(incumbent)",code=~"5.."}[5s]))
        / sum(rate(http_requests_total{shipper_release="$(incumbent)"}[5s]))
  pass: new <= old + 0.02
`
	fmt.Fprintln(s.out, indented(manifest))
	if err := s.applyManifest(ctx, "check.yaml", manifest); err != nil {
		return err
	}
	if err := s.applyChecked(ctx, "one", "15s"); err != nil {
		return err
	}
	var err error
	if s.incumbent, err = s.newRelease(ctx, 1); err != nil {
		return err
	}
	s.serveRequests(s.incumbent, 0.01)
	return s.reached(ctx, s.incumbent, "full on, complete")
}

// indented is a text as the story shows it.
func indented(text string) string {
	return "    " + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n    ")
}

// goodCanary measures, and completes.
func (s *fixture) goodCanary(ctx context.Context) error {
	if err := s.applyChecked(ctx, "two", "15s"); err != nil {
		return err
	}
	var err error
	if s.contender, err = s.newRelease(ctx, 2); err != nil {
		return err
	}
	s.serveRequests(s.contender, 0.012)
	if err := s.advancing(ctx, s.contender, 1, shipper.AdvancingChecking); err != nil {
		return err
	}
	if err := s.passedOnce(ctx); err != nil {
		return err
	}
	if _, err := s.show(ctx, s.shipperctl, "rollout", "status", application, "-n", namespace); err != nil {
		return err
	}
	if err := s.reached(ctx, s.contender, "full on, complete"); err != nil {
		return err
	}
	s.fact("no user moved it: its checks passed in both clusters")
	s.incumbent = s.contender
	return nil
}

// passedOnce waits until the contender has a good measurement in each cluster.
func (s *fixture) passedOnce(ctx context.Context) error {
	return s.await(ctx, patience, "clusters with a good measurement", "2", func(ctx context.Context) (string, error) {
		target := &shipper.CheckTarget{}
		err := s.management.Get(ctx, client.ObjectKey{Namespace: namespace, Name: s.contender}, target)
		n := 0
		for _, r := range target.Status.Results {
			if r.Passed > 0 {
				n++
			}
		}
		return fmt.Sprint(n), client.IgnoreNotFound(err)
	})
}

// badCanary has more errors in one cluster than before, from some time on.
func (s *fixture) badCanary(ctx context.Context) error {
	if err := s.applyChecked(ctx, "three", "2m"); err != nil {
		return err
	}
	var err error
	if s.contender, err = s.newRelease(ctx, 3); err != nil {
		return err
	}
	s.serveRequests(s.contender, 0.01)
	if err := s.advancing(ctx, s.contender, 1, shipper.AdvancingChecking); err != nil {
		return err
	}
	if err := s.passedOnce(ctx); err != nil {
		return err
	}
	worse := s.fleet.Applications[1].Name
	s.metrics[worse].app.Set(namespace, s.contender, perSecond, 0.3, 20*time.Millisecond)
	s.fact("from now on 30 %% of its requests in %s fail, and 1 %% elsewhere", worse)
	if err := s.advancing(ctx, s.contender, 0, shipper.AdvancingHeldAfterGoingBack); err != nil {
		return err
	}
	if err := s.wentBackInTime(ctx); err != nil {
		return err
	}
	if _, err := s.show(ctx, s.shipperctl, "rollout", "status", application, "-n", namespace); err != nil {
		return err
	}
	if _, err := s.show(ctx, s.kubectl, "get", "checktarget", s.contender, "-o", "yaml"); err != nil {
		return err
	}
	return s.await(ctx, patience, "ready pods of the incumbent", s.each("3"), s.readyPods(s.incumbent))
}

// wentBackInTime compares when the first bad value was measured with when the rollout failed.
func (s *fixture) wentBackInTime(ctx context.Context) error {
	target, rel := &shipper.CheckTarget{}, &shipper.Release{}
	key := client.ObjectKey{Namespace: namespace, Name: s.contender}
	if err := s.management.Get(ctx, key, target); err != nil {
		return err
	}
	if err := s.management.Get(ctx, key, rel); err != nil {
		return err
	}
	var first time.Time
	for _, r := range target.Status.Results {
		for _, m := range r.Measurements {
			if m.Result == shipper.VerdictFailed && (first.IsZero() || m.Time.Time.Before(first)) {
				first = m.Time.Time
			}
		}
	}
	took := rel.Status.Progress.RequestedTime.Sub(first)
	if first.IsZero() || took > 2*interval {
		return differs("the time from the first bad value to step 0", "at most two intervals", took.String())
	}
	s.fact("it went back %s after the first bad value: within two intervals of %s", took, interval)
	return nil
}

func (s *fixture) slackOfChecks(ctx context.Context) error {
	failed := "of Application " + application + " has failed at step 1 (canary)"
	if err := s.slackHas(ctx, failed, "check errors in "+s.fleet.Applications[1].Name); err != nil {
		return err
	}
	_, err := s.show(ctx, s.kubectl, "get", "events", "--field-selector", "reason="+shipper.CheckFailed)
	return err
}
