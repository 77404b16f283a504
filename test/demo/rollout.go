// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Steps of the strategies the story uses.
const (
	staging = `{name: staging, capacity: {incumbent: 100, contender: 1}, traffic: {incumbent: 100, contender: 0}}`
	half    = `{name: 50/50, capacity: {incumbent: 50, contender: 50}, traffic: {incumbent: 50, contender: 50}}`
	fullOn  = `{name: full on, capacity: {incumbent: 0, contender: 100}, traffic: {incumbent: 0, contender: 100}}`
)

// clustersYAML is the file shipperctl reads, for some application clusters of the management cluster mgmt.
func clustersYAML(mgmt string, which []region) string {
	var b strings.Builder
	fmt.Fprintf(&b, "managementClusters:\n- name: %s\napplicationClusters:\n", mgmt)
	for _, r := range which {
		fmt.Fprintf(&b, "- name: %s\n  region: %s\n", r.cluster, r.region)
	}
	return b.String()
}

// writeApplication writes the manifest of the quick start, for a chart version and a strategy.
func (s *fixture) writeApplication(version, strategy string) (string, error) {
	manifest := fmt.Sprintf(`apiVersion: shipper.booking.com/v1alpha1
kind: Application
metadata:
  name: %s
spec:
  revisionHistoryLimit: 3
  template:
    chart:
      name: %s
      repoUrl: %s
      version: "%s"
    clusterRequirements:
      regions:
      - name: eu-west
      - name: us-east
    strategy: %s
    values:
      replicaCount: 3
`, application, service, s.charts.URL, version, strategy)
	file := filepath.Join(s.dir, "app.yaml")
	if err := os.WriteFile(file, []byte(manifest), 0o600); err != nil {
		return "", fmt.Errorf("writing the application: %w", err)
	}
	return file, nil
}

// applyApplication applies it with kubectl and returns what kubectl printed.
func (s *fixture) applyApplication(ctx context.Context, version, strategy string) (string, error) {
	file, err := s.writeApplication(version, strategy)
	if err != nil {
		return "", err
	}
	return s.show(ctx, s.kubectl, "apply", "-f", file)
}

// newRelease waits until the Application has that many releases and names the newest.
func (s *fixture) newRelease(ctx context.Context, count int) (string, error) {
	return s.newReleaseOf(ctx, application, count)
}

// newReleaseOf is newRelease for another Application.
func (s *fixture) newReleaseOf(ctx context.Context, name string, count int) (string, error) {
	newest := ""
	err := s.await(ctx, patience, "releases of the Application", fmt.Sprint(count), func(ctx context.Context) (string, error) {
		history, err := s.history(ctx, name)
		if len(history) > 0 {
			newest = history[len(history)-1]
		}
		return fmt.Sprint(len(history)), err
	})
	if err == nil {
		s.fact("release %s was made", newest)
	}
	return newest, err
}

// step asks for a step the way the documentation does.
func (s *fixture) step(ctx context.Context, release string, step int) error {
	_, err := s.show(ctx, s.kubectl, "patch", "rel", release, "--type=merge", "-p", fmt.Sprintf(`{"spec":{"targetStep":%d}}`, step))
	return err
}

// reached waits until a release says it has achieved a step.
func (s *fixture) reached(ctx context.Context, release, state string) error {
	if err := s.await(ctx, patience, "achieved step of "+release, state, s.achieved(release)); err != nil {
		return err
	}
	s.fact("%s: %s", release, state)
	return nil
}

// counted waits for the number of ready Pods of a release and for the Service's endpoints, in each cluster.
func (s *fixture) counted(
	ctx context.Context, release, pods string, endpoints func(context.Context) (string, error), want string,
) error {
	if err := s.await(ctx, patience, "ready pods of "+release, s.each(pods), s.readyPods(release)); err != nil {
		return err
	}
	if err := s.await(ctx, patience, "endpoints of service "+service, s.each(want), endpoints); err != nil {
		return err
	}
	if strings.Contains(want, "+") {
		want += " (incumbent+contender)"
	}
	s.fact("ready pods of %s: %s; endpoints of service %s: %s each", release, s.each(pods), service, want)
	return nil
}
