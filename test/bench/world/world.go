// SPDX-License-Identifier: Apache-2.0

// Package world is what benchmarks measure in: a management cluster with Shipper as its administrator would run it, application
// clusters, each a region of its own, and the counts of its requests and resources.
package world

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"shipper.dev/shipper/test/charts"
	"shipper.dev/shipper/test/fleet"
	"shipper.dev/shipper/test/pod"
)

// World is the clusters and Shipper.
type World struct {
	// Fleet is the control planes.
	Fleet *fleet.Fleet
	// Charts is a repository.
	Charts *charts.Repository
	// Pod is Shipper.
	Pod *pod.Pod
	// Management is an administrator's client of the management cluster, which drops warnings.
	Management client.WithWatch
	// Clusters are an administrator's clients of the application clusters.
	Clusters []kubernetes.Interface

	dir, profiles string
	logs          map[string]*tally // by the cluster's name
}

// Options say what a World is made of.
type Options struct {
	// Clusters is how many application clusters there are.
	Clusters int
	// Joined is how many of them Shipper knows at first; the others join with World.Join. 0: all.
	Joined int
	// Podless has no Pods run in application clusters: it is for many clusters.
	Podless bool
	// Profiles is a folder for profiles of Shipper. Empty: none are taken.
	Profiles string
}

// Begin starts it all. Started processes are returned also with an error, and must be ended.
func Begin(ctx context.Context, o Options) (*World, error) {
	w := &World{profiles: o.Profiles, logs: map[string]*tally{}}
	var err error
	if w.profiles != "" {
		if err = os.MkdirAll(w.profiles, 0o700); err != nil {
			return w, fmt.Errorf("making a folder for profiles: %w", err)
		}
	}
	if w.dir, err = os.MkdirTemp("", "shipper-bench-"); err != nil {
		return w, err
	}
	options := fleet.Options{Dir: filepath.Join(w.dir, "fleet"), Progress: os.Stdout}
	for i := range o.Clusters {
		options.Applications = append(options.Applications, fmt.Sprintf("cluster-%d", i))
	}
	if o.Podless {
		options.Podless = options.Applications
	}
	if w.Fleet, err = fleet.Start(ctx, options); err != nil {
		return w, err
	}
	for _, c := range w.Fleet.Applications {
		config := rest.CopyConfig(c.Config)
		config.QPS = -1
		typed, err := kubernetes.NewForConfig(config)
		if err != nil {
			return w, fmt.Errorf("making a client: %w", err)
		}
		w.Clusters = append(w.Clusters, typed)
	}
	if w.Charts, err = charts.Start(); err != nil {
		return w, err
	}
	quiet := rest.CopyConfig(w.Fleet.Management.Config)
	quiet.WarningHandler = rest.NoWarnings{}
	if w.Management, err = pod.NewClient(quiet); err != nil {
		return w, err
	}
	if err := w.install(ctx); err != nil {
		return w, err
	}
	return w, w.Join(ctx, 0, cmp.Or(o.Joined, o.Clusters))
}

// install runs Shipper as its administrator would.
func (w *World) install(ctx context.Context) error {
	if err := pod.Build(ctx, w.dir); err != nil {
		return err
	}
	port, err := pod.FreePort()
	if err != nil {
		return err
	}
	if err := pod.SetUpManagement(ctx, w.Fleet, w.dir, port); err != nil {
		return err
	}
	w.Pod, err = pod.Start(ctx, pod.Options{
		Management: w.Fleet.Management, Bin: w.dir, Dir: w.dir, WebhookPort: port, Profiled: w.profiles != "",
	})
	return err
}

// Join has Shipper know the application clusters from one up to another, and returns when it works with them.
func (w *World) Join(ctx context.Context, from, to int) error {
	if from == to {
		return nil
	}
	var list strings.Builder
	list.WriteString("applicationClusters:\n")
	for i := from; i < to; i++ {
		fmt.Fprintf(&list, "- {name: cluster-%d, region: %s}\n", i, Region(i))
	}
	file := filepath.Join(w.dir, "clusters.yaml")
	if err := os.WriteFile(file, []byte(list.String()), 0o600); err != nil {
		return fmt.Errorf("writing clusters.yaml: %w", err)
	}
	return pod.Shipperctl(ctx, w.Fleet, w.dir, "clusters", "join", "-f", file)
}

// End stops what has started.
func (w *World) End() error {
	var errs []error
	if w.Pod != nil {
		errs = append(errs, w.Pod.Stop())
	}
	if w.Charts != nil {
		w.Charts.Close()
	}
	if w.Fleet != nil {
		errs = append(errs, w.Fleet.Stop())
	}
	if w.profiles != "" {
		errs = append(errs, w.keepLogs())
	}
	return errors.Join(append(errs, os.RemoveAll(w.dir))...)
}

// MakeNamespace makes a namespace in the management cluster and the first application clusters, each of which would otherwise be
// made by Shipper or by hand while time is taken.
func (w *World) MakeNamespace(ctx context.Context, name string, clusters int) error {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if err := w.Management.Create(ctx, ns); err != nil {
		return fmt.Errorf("creating namespace %s: %w", name, err)
	}
	for i, c := range w.Clusters[:clusters] {
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if _, err := c.CoreV1().Namespaces().Create(ctx, ns, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("creating namespace %s in %s: %w", name, w.Fleet.Applications[i].Name, err)
		}
	}
	return nil
}

// Region is that of the i-th cluster.
func Region(i int) string { return fmt.Sprintf("region-%d", i) }

// InParallel does n jobs side by side, waits for all, and returns the first error.
func InParallel(n int, job func(i int) error) error { return AtMost(n, n, job) }

// AtMost does n jobs, at most some of them at a time, waits for all, and returns the first error.
func AtMost(most, n int, job func(i int) error) error {
	var all errgroup.Group
	all.SetLimit(max(most, 1))
	for i := range n {
		all.Go(func() error { return job(i) })
	}
	return all.Wait()
}
