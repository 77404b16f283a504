// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/charts"
	"shipper.dev/shipper/test/fleet"
)

// Steps of this demonstration. A third of three Pods in place is one.
const (
	third     = `{name: third, capacity: {incumbent: 66, contender: 33}, traffic: {incumbent: 66, contender: 33}}`
	halfFirst = `{firstRelease: Immediate, steps: [` + half + `, ` + fullOn + `]}`
)

// The charts, and the passwords that the values of PostgreSQL give.
var (
	popularCharts   = []string{"podinfo", "onlineboutique", "wordpress", "postgresql"}
	before, changed = "of-the-first-release", "of-the-second-release"
)

// popular shows charts of others, unedited.
func popular(s *fixture) []chapter {
	return []chapter{
		{"A management cluster is set up, two application clusters join", s.joinWithVolumes},
		{"Four charts that know nothing of Shipper", s.publishPopular},
		{"podinfo: a first Release, and a canary at 50/50 in both regions", s.podinfo},
		{"The online boutique: twelve services in one canary", s.boutique},
		{"WordPress: changed in place, at its step and not before", s.wordpress},
		{"PostgreSQL: a block holds three Pods at their partition", s.postgresql},
		{"A rollback brings Pods and password back", s.rollback},
	}
}

// joinWithVolumes joins the clusters, where claims get volumes.
func (s *fixture) joinWithVolumes(ctx context.Context) error {
	for _, a := range s.applications {
		end, err := fleet.BindClaims(ctx, a.client)
		if err != nil {
			return err
		}
		s.ends = append(s.ends, func() error { end(); return nil })
	}
	return s.join(ctx)
}

// publishPopular publishes the charts as their projects do, or charts of their shapes, and checks two without a cluster.
func (s *fixture) publishPopular(ctx context.Context) error {
	archives, whose, err := popularArchives(".")
	if err != nil {
		return err
	}
	names := make([]string, 0, len(archives))
	for _, archive := range archives {
		s.charts.Publish(archive)
		s.versions[archive.Name] = archive.Version
		names = append(names, archive.Name+" "+archive.Version)
	}
	s.fact("a repository serves %s: %s", strings.Join(names, ", "), whose)
	for _, check := range []struct {
		name string
		says []string
	}{
		{"podinfo", []string{"Deployment podinfo", "side by side", "It rolls out unedited."}},
		{"wordpress", []string{"Deployment wordpress", "in place", "claim wordpress can be mounted by one node", "It rolls out unedited."}},
	} {
		out, err := s.show(ctx, s.shipperctl, "chart", "check", check.name, "--repo", s.charts.URL, "--chart-repositories", charts.URLs)
		if err != nil {
			return err
		}
		for _, part := range check.says {
			if !strings.Contains(out, part) {
				return differs("shipperctl chart check "+check.name, part, out)
			}
		}
	}
	return nil
}

// popularArchives are the charts, and whose they are.
func popularArchives(up string) ([]charts.Archive, string, error) {
	all, err := charts.Popular(up)
	if errors.Is(err, charts.ErrNoPopular) {
		made, err := shapes()
		return made, "generated, of the shapes of their projects' charts", err
	}
	var out []charts.Archive
	for _, one := range all {
		if slices.Contains(popularCharts, one.Name) {
			out = append(out, one.Archive)
		}
	}
	return out, "as their projects publish them", err
}

// applyChart applies an Application of a chart, of the same name, and waits for its newest Release.
func (s *fixture) applyChart(ctx context.Context, name, strategy, values string) (string, error) {
	before, err := s.history(ctx, name)
	if err != nil {
		return "", err
	}
	manifest := fmt.Sprintf(`apiVersion: shipper.booking.com/v1alpha1
kind: Application
metadata: {name: %[1]s}
spec:
  template:
    chart: {name: %[1]s, version: %[2]s, repoUrl: "%[3]s"}
    clusterRequirements: {regions: [{name: eu-west}, {name: us-east}]}
    strategy: %[4]s
    values: {%[5]s}
`, name, s.versions[name], s.charts.URL, strategy, values)
	file := filepath.Join(s.dir, name+".yaml")
	if err := os.WriteFile(file, []byte(manifest), 0o600); err != nil {
		return "", fmt.Errorf("writing the application: %w", err)
	}
	if values != "" {
		s.fact("%s with {%s}", name, values)
	}
	if _, err := s.show(ctx, s.kubectl, "apply", "-f", file); err != nil {
		return "", err
	}
	return s.newReleaseOf(ctx, name, len(before)+1)
}

// podinfo rolls a chart out and shows a canary of it.
func (s *fixture) podinfo(ctx context.Context) error {
	const first, second = "replicaCount: 4, ui: {message: hello}", "replicaCount: 4, ui: {message: good morning}"
	incumbent, err := s.applyChart(ctx, "podinfo", halfFirst, first)
	if err != nil {
		return err
	}
	if err := s.reached(ctx, incumbent, "full on, complete"); err != nil {
		return err
	}
	if err := s.await(ctx, patience, "endpoints of podinfo", s.each("4"), s.endpointsOf("podinfo", incumbent)); err != nil {
		return err
	}
	s.fact("endpoints of Service podinfo, which keeps the name that the chart gave it: %s", s.each("4"))
	contender, err := s.applyChart(ctx, "podinfo", halfFirst, second)
	if err != nil {
		return err
	}
	if err := s.reached(ctx, contender, "50/50, waiting for command"); err != nil {
		return err
	}
	if err := s.await(ctx, patience, "endpoints of podinfo", s.each("2+2"), s.endpointsOf("podinfo", incumbent, contender)); err != nil {
		return err
	}
	s.fact("endpoints of Service podinfo (incumbent+contender): %s", s.each("2+2"))
	if _, err := s.show(ctx, s.shipperctl, "rollout", "status", "podinfo"); err != nil {
		return err
	}
	if err := s.step(ctx, contender, 1); err != nil {
		return err
	}
	return s.reached(ctx, contender, "full on, complete")
}

// boutique takes twelve Deployments and twelve Services through a canary.
func (s *fixture) boutique(ctx context.Context) error {
	incumbent, err := s.applyChart(ctx, "onlineboutique", halfFirst, "images: {tag: v1}")
	if err != nil {
		return err
	}
	if err := s.reached(ctx, incumbent, "full on, complete"); err != nil {
		return err
	}
	if err := s.readies(ctx, incumbent, len(boutique)); err != nil {
		return err
	}
	contender, err := s.applyChart(ctx, "onlineboutique", halfFirst, "images: {tag: v2}")
	if err != nil {
		return err
	}
	if err := s.reached(ctx, contender, "50/50, waiting for command"); err != nil {
		return err
	}
	for _, service := range boutiqueServices {
		if err := s.await(ctx, patience, "endpoints of "+service, s.each("1+1"), s.endpointsOf(service, incumbent, contender)); err != nil {
			return err
		}
	}
	s.fact("endpoints of each of the %d Services (incumbent+contender): %s", len(boutiqueServices), s.each("1+1"))
	if err := s.step(ctx, contender, 1); err != nil {
		return err
	}
	if err := s.reached(ctx, contender, "full on, complete"); err != nil {
		return err
	}
	for _, service := range boutiqueServices {
		if err := s.await(ctx, patience, "endpoints of "+service, s.each("1"), s.endpointsOf(service, contender)); err != nil {
			return err
		}
	}
	s.fact("endpoints of each are those of %s", contender)
	return nil
}

// readies waits for ready Pods of a Release.
func (s *fixture) readies(ctx context.Context, release string, pods int) error {
	want := s.each(fmt.Sprint(pods))
	if err := s.await(ctx, patience, "ready pods of "+release, want, s.readyPods(release)); err != nil {
		return err
	}
	s.fact("ready pods of %s: %s", release, want)
	return nil
}

// wordpress changes a Deployment whose claim one node may mount.
func (s *fixture) wordpress(ctx context.Context) error {
	incumbent, err := s.applyChart(ctx, "wordpress", halfFirst, "podAnnotations: {example.com/try: one}")
	if err != nil {
		return err
	}
	if err := s.reached(ctx, incumbent, "full on, complete"); err != nil {
		return err
	}
	generated, err := s.secret("wordpress", "wordpress-password")(ctx)
	if err != nil {
		return err
	}
	pods := s.tries("wordpress-")
	if err := s.await(ctx, patience, "the Pods of wordpress", s.each("1 of one"), pods); err != nil {
		return err
	}
	contender, err := s.applyChart(ctx, "wordpress", halfFirst, "podAnnotations: {example.com/try: two}")
	if err != nil {
		return err
	}
	if err := s.reached(ctx, contender, "50/50, waiting for command"); err != nil {
		return err
	}
	if err := s.await(ctx, patience, "the Pods of wordpress", s.each("1 of one"), pods); err != nil {
		return err
	}
	s.fact("Deployment wordpress is unchanged at 50/50: one node can mount its claim")
	if err := s.step(ctx, contender, 1); err != nil {
		return err
	}
	if err := s.reached(ctx, contender, "full on, complete"); err != nil {
		return err
	}
	if err := s.await(ctx, patience, "the Pods of wordpress", s.each("1 of two"), pods); err != nil {
		return err
	}
	s.fact("Deployment wordpress was changed in place: its Pods are those of %s", contender)
	if err := s.await(ctx, patience, "the password of wordpress", generated, s.secret("wordpress", "wordpress-password")); err != nil {
		return err
	}
	s.fact("the password that the chart generated in each cluster is the same as before: the chart looks it up")
	return nil
}

// postgresql takes a StatefulSet to its partition, and has a block hold it there.
func (s *fixture) postgresql(ctx context.Context) error {
	const strategy = `{firstRelease: Immediate, steps: [` + third + `, ` + fullOn + `]}`
	values := func(password, try string) string {
		return "architecture: replication, auth: {postgresPassword: " + password + "}, " +
			"readReplicas: {replicaCount: 3, podAnnotations: {example.com/try: " + try + "}}"
	}
	var err error
	if s.incumbent, err = s.applyChart(ctx, "postgresql", strategy, values(before, "one")); err != nil {
		return err
	}
	if err := s.reached(ctx, s.incumbent, "full on, complete"); err != nil {
		return err
	}
	if err := s.replicas(ctx, "3 of one", before); err != nil {
		return err
	}
	if s.contender, err = s.applyChart(ctx, "postgresql", strategy, values(changed, "two")); err != nil {
		return err
	}
	if err := s.reached(ctx, s.contender, "third, waiting for command"); err != nil {
		return err
	}
	if err := s.replicas(ctx, "2 of one, 1 of two", changed); err != nil {
		return err
	}
	partition := s.partition("postgresql-read")
	if err := s.await(ctx, patience, "the partition of postgresql-read", s.each("2"), partition); err != nil {
		return err
	}
	if err := s.createBlock(ctx, 1); err != nil {
		return err
	}
	words := []string{"rollout-blocks-global/dns-outage", "kubectl annotate"}
	if err := s.refused(ctx, s.kubectl, words, "patch", "rel", s.contender, "--type=merge", "-p", `{"spec":{"targetStep":1}}`); err != nil {
		return err
	}
	if err := s.await(ctx, patience, "the partition of postgresql-read", s.each("2"), partition); err != nil {
		return err
	}
	s.fact("the block holds StatefulSet postgresql-read at its partition: %s", s.each("2"))
	if err := s.replicas(ctx, "2 of one, 1 of two", changed); err != nil {
		return err
	}
	_, err = s.show(ctx, s.kubectl, "-n", shipper.GlobalBlocksNamespace, "delete", "rb", "dns-outage")
	return err
}

// rollback rolls PostgreSQL back at once.
func (s *fixture) rollback(ctx context.Context) error {
	if err := s.await(ctx, patience, "Blocked of the Application", "False",
		s.condition(&shipper.Application{}, "postgresql", shipper.ApplicationBlocked)); err != nil {
		return err
	}
	if _, err := s.show(ctx, s.shipperctl, "rollout", "rollback", "postgresql", "--to", s.incumbent, "--immediate"); err != nil {
		return err
	}
	release, err := s.newReleaseOf(ctx, "postgresql", 3)
	if err != nil {
		return err
	}
	if err := s.reached(ctx, release, "full on, complete"); err != nil {
		return err
	}
	if err := s.replicas(ctx, "3 of one", before); err != nil {
		return err
	}
	_, err = s.show(ctx, s.kubectl, "get", "app,rel")
	return err
}

// replicas waits for the Pods of the StatefulSet of read replicas, by the Release whose annotation they have, and for the password.
func (s *fixture) replicas(ctx context.Context, pods, password string) error {
	if err := s.await(ctx, patience, "the Pods of postgresql-read", s.each(pods), s.tries("postgresql-read-")); err != nil {
		return err
	}
	if err := s.await(ctx, patience, "the password of postgresql", s.each(password), s.secret("postgresql", "postgres-password")); err != nil {
		return err
	}
	s.fact("ready Pods of StatefulSet postgresql-read: %s; password in Secret postgresql: %s", s.each(pods), password)
	return nil
}
