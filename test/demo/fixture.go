// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"shipper.dev/shipper/test/charts"
	"shipper.dev/shipper/test/fleet"
	"shipper.dev/shipper/test/pod"
)

const (
	namespace   = "default"
	application = "super-server"
	service     = "nginx" // the Service of the chart the story installs
)

// region is the region of an application cluster.
type region struct{ cluster, region string }

// twoRegions are the clusters of most demonstrations.
var twoRegions = []region{{"eu-west-1", "eu-west"}, {"us-east-1", "us-east"}}

// applicationCluster is one place the application runs in.
type applicationCluster struct {
	name   string
	client client.WithWatch
}

// fixture is the fleet it happens on and what has happened so far.
type fixture struct {
	printer

	dir          string
	regions      []region
	fleet        *fleet.Fleet
	charts       *charts.Repository
	management   client.Client
	applications []applicationCluster
	kubectl      exe
	shipperctl   exe
	pod          *pod.Pod
	slack        *slack              // nil when there is none
	metrics      map[string]measured // by cluster
	versions     map[string]string   // of the popular charts
	ends         []func() error

	incumbent string // the first release
	contender string // the second
}

// begin starts the control planes and the chart repository.
func begin(ctx context.Context, out io.Writer, regions []region) (*fixture, error) {
	s := &fixture{printer: printer{out: out, start: time.Now()}, regions: regions, versions: map[string]string{}}
	fmt.Fprintf(out, "Shipper on one management cluster and %d application clusters. All API servers are real.\n", len(regions))

	var err error
	if s.dir, err = os.MkdirTemp("", "shipper-demo-"); err != nil {
		return nil, fmt.Errorf("making a folder for the demo: %w", err)
	}
	names := make([]string, 0, len(regions))
	for _, r := range regions {
		names = append(names, r.cluster)
	}
	o := fleet.Options{Applications: names, Dir: filepath.Join(s.dir, "fleet"), Progress: os.Stderr}
	if s.fleet, err = fleet.Start(ctx, o); err != nil {
		return nil, errors.Join(fmt.Errorf("starting the control planes: %w", err), os.RemoveAll(s.dir))
	}
	if err := s.connect(); err != nil {
		return nil, errors.Join(err, s.end())
	}
	s.fact("%d control planes are up: %s, %s", len(names)+1, s.fleet.Management.Name, strings.Join(names, ", "))
	return s, nil
}

// connect makes clients and the two programs a user has at hand.
func (s *fixture) connect() error {
	var err error
	if s.management, err = pod.NewClient(s.fleet.Management.Config); err != nil {
		return err
	}
	for _, a := range s.fleet.Applications {
		c, err := pod.NewClient(a.Config)
		if err != nil {
			return err
		}
		s.applications = append(s.applications, applicationCluster{name: a.Name, client: c})
	}
	if s.charts, err = charts.Start(); err != nil {
		return fmt.Errorf("starting the chart repository: %w", err)
	}
	s.charts.Withdraw(service, "0.0.2") // it is published in chapter 4
	kubectl, err := fleet.Kubectl()
	if err != nil {
		return err
	}
	env := append(os.Environ(), "KUBECONFIG="+s.fleet.Kubeconfig)
	s.kubectl = exe{name: "kubectl", path: kubectl, env: env}
	s.shipperctl = exe{name: "shipperctl", path: filepath.Join("bin", "shipperctl"), env: env}
	return nil
}

// sumUp is the last line.
func (s *fixture) sumUp(shown string) {
	fmt.Fprintf(s.out, "\nShown: %s: %d facts read from %d API servers in %.1f s.\n", shown, s.facts, len(s.regions)+1,
		time.Since(s.start).Seconds())
}

// keep prints, when KEEP=1, how to use what is still up, and waits to be interrupted.
func (s *fixture) keep(ctx context.Context) {
	if os.Getenv("KEEP") != "1" {
		return
	}
	fmt.Fprintf(s.out, "\nThe fleet stays up until you press Ctrl-C. In another terminal:\n\n"+
		"  export KUBECONFIG=%s\n  kubectl() { %s \"$@\"; }\n  kubectl get app,rel\n", s.fleet.Kubeconfig, s.kubectl.path)
	for _, a := range s.fleet.Applications {
		fmt.Fprintf(s.out, "  kubectl --kubeconfig %s get deploy,pods\n", a.Kubeconfig)
	}
	<-ctx.Done()
}

// end stops everything the story started and removes its folder.
func (s *fixture) end() error {
	var errs []error
	if s.pod != nil {
		errs = append(errs, s.pod.Stop())
	}
	for _, end := range slices.Backward(s.ends) {
		errs = append(errs, end())
	}
	if s.charts != nil {
		s.charts.Close()
	}
	if s.slack != nil {
		s.slack.Close()
	}
	if s.fleet != nil {
		errs = append(errs, s.fleet.Stop())
	}
	return errors.Join(append(errs, os.RemoveAll(s.dir))...)
}

// showLogs prints the last lines of the binaries' logs, for a reader who must find out what went wrong.
func (s *fixture) showLogs() {
	if s.pod == nil {
		return
	}
	for _, p := range []*pod.Process{s.pod.Webhook, s.pod.Reconciler} {
		if p != nil {
			fmt.Fprintf(s.out, "\n--- the end of the log of %s\n%s\n", p.Name, p.Tail())
		}
	}
}
