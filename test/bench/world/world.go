// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"shipper.dev/shipper/test/charts"
	"shipper.dev/shipper/test/fleet"
	"shipper.dev/shipper/test/pod"
)

// world is what is measured in: a management cluster with Shipper, and application clusters, each a region of its own.
type world struct {
	dir        string
	fleet      *fleet.Fleet
	charts     *charts.Repository
	pod        *pod.Pod
	management client.WithWatch
	clusters   []kubernetes.Interface
}

// begin starts it all. What has started is returned also with an error.
func begin(ctx context.Context, clusters int) (*world, error) {
	w := &world{}
	var err error
	if w.dir, err = os.MkdirTemp("", "shipper-bench-"); err != nil {
		return w, err
	}
	var names []string
	var list strings.Builder
	for i := range clusters {
		names = append(names, fmt.Sprintf("cluster-%d", i))
		fmt.Fprintf(&list, "- {name: cluster-%d, region: %s}\n", i, region(i))
	}
	w.fleet, err = fleet.Start(ctx, fleet.Options{Applications: names, Dir: filepath.Join(w.dir, "fleet"), Progress: os.Stdout})
	if err != nil {
		return w, err
	}
	for _, c := range w.fleet.Applications {
		typed, err := kubernetes.NewForConfig(c.Config)
		if err != nil {
			return w, fmt.Errorf("making a client: %w", err)
		}
		w.clusters = append(w.clusters, typed)
	}
	if w.charts, err = charts.Start(); err != nil {
		return w, err
	}
	quiet := rest.CopyConfig(w.fleet.Management.Config)
	quiet.WarningHandler = rest.NoWarnings{}
	if w.management, err = pod.NewClient(quiet); err != nil {
		return w, err
	}
	return w, w.install(ctx, "applicationClusters:\n"+list.String())
}

// install runs Shipper as its administrator would.
func (w *world) install(ctx context.Context, clusters string) error {
	if err := pod.Build(ctx, w.dir); err != nil {
		return err
	}
	port, err := pod.FreePort()
	if err != nil {
		return err
	}
	if err := pod.SetUpManagement(ctx, w.fleet, w.dir, port); err != nil {
		return err
	}
	file := filepath.Join(w.dir, "clusters.yaml")
	if err := os.WriteFile(file, []byte(clusters), 0o600); err != nil {
		return fmt.Errorf("writing clusters.yaml: %w", err)
	}
	w.pod, err = pod.Start(ctx, pod.Options{Management: w.fleet.Management, Bin: w.dir, Dir: w.dir, WebhookPort: port})
	if err != nil {
		return err
	}
	return pod.Shipperctl(ctx, w.fleet, w.dir, "clusters", "join", "-f", file)
}

// end stops what has started.
func (w *world) end() error {
	var errs []error
	if w.pod != nil {
		errs = append(errs, w.pod.Stop())
	}
	if w.charts != nil {
		w.charts.Close()
	}
	if w.fleet != nil {
		errs = append(errs, w.fleet.Stop())
	}
	return errors.Join(append(errs, os.RemoveAll(w.dir))...)
}

// makeNamespace makes a namespace in the management cluster.
func (w *world) makeNamespace(ctx context.Context, name string) error {
	return w.management.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
}

// region is that of the i-th cluster.
func region(i int) string { return fmt.Sprintf("region-%d", i) }
