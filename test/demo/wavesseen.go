// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"shipper.dev/shipper/apis/rules/position"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/fleet"
	"shipper.dev/shipper/test/pod"
)

// applyByAnn writes a file, and applies it with kubectl as ann.
func (w *waveStory) applyByAnn(ctx context.Context, name, manifest string) error {
	file := filepath.Join(w.dir, name)
	if err := os.WriteFile(file, []byte(manifest), 0o600); err != nil {
		return fmt.Errorf("writing %s: %w", name, err)
	}
	_, err := w.show(ctx, w.kubectl, "apply", "-f", file, "--as", "ann")
	return err
}

// countWrites counts what Shipper has written to the clusters so far.
func (w *waveStory) countWrites() error {
	w.writes = map[string]int{}
	for _, cluster := range w.fleet.Applications {
		written, err := pod.Written(cluster, shipper.ApplicationServiceAccount)
		if err != nil {
			return err
		}
		w.writes[cluster.Name] = len(written)
	}
	return nil
}

// untouched fails if Shipper has written to one of the clusters since the writes were counted.
func (w *waveStory) untouched(clusters ...string) error {
	for _, cluster := range w.fleet.Applications {
		if !slices.Contains(clusters, cluster.Name) {
			continue
		}
		written, err := pod.Written(cluster, shipper.ApplicationServiceAccount)
		if err != nil {
			return err
		}
		if more := written[w.writes[cluster.Name]:]; len(more) > 0 {
			return differs("what Shipper has written to "+cluster.Name, "nothing", strings.Join(more, ", "))
		}
	}
	w.fact("the audit log shows no write of Shipper in %s", strings.Join(clusters, ", "))
	return nil
}

// waveIs waits until the wave that the contender is in names these clusters as moving, or as blocked.
func (w *waveStory) waveIs(ctx context.Context, how, clusters string) error {
	err := w.await(ctx, patience, "the clusters that are "+how, clusters, func(ctx context.Context) (string, error) {
		rel := &shipper.Release{}
		if err := w.management.Get(ctx, client.ObjectKey{Namespace: namespace, Name: w.contender}, rel); err != nil {
			return "", err
		}
		at := int(position.Of(rel).Wave)
		if at >= len(rel.Status.Waves) {
			return "no waves yet", nil
		}
		named := rel.Status.Waves[at].BlockedClusters
		if how == "moving" {
			named = rel.Status.Waves[at].MovingClusters
		}
		return strings.Join(named, ", "), nil
	})
	if err == nil {
		w.fact("%s: %s is %s", w.contender, clusters, how)
	}
	return err
}

// turns is how many clusters of production got new Pods at the same time.
type turns struct {
	most, looks int
	err         error
}

// watchProduction looks at production until it is stopped.
func (w *waveStory) watchProduction(ctx context.Context) (stop func() turns) {
	ctx, cancel := context.WithCancel(ctx)
	seen := make(chan turns, 1)
	go func() {
		var t turns
		for ctx.Err() == nil && t.err == nil {
			t.look(ctx, w)
			select {
			case <-ctx.Done():
			case <-time.After(100 * time.Millisecond):
			}
		}
		seen <- t
	}()
	return func() turns {
		cancel()
		return <-seen
	}
}

// look counts the clusters that get new Pods. Clusters are read one after another: only those that are in two readings count, because these
// got Pods at the same time in between.
func (t *turns) look(ctx context.Context, w *waveStory) {
	first, err := w.filling(ctx)
	if err == nil && len(first) > 1 {
		var second []string
		second, err = w.filling(ctx)
		first = slices.DeleteFunc(first, func(cluster string) bool { return !slices.Contains(second, cluster) })
	}
	if ctx.Err() != nil {
		return
	}
	t.most, t.err = max(t.most, len(first)), err
	t.looks++
}

// filling are the clusters of production in which the contender has fewer ready Pods than its Deployment asks for.
func (w *waveStory) filling(ctx context.Context) (clusters []string, err error) {
	of := []client.ListOption{client.InNamespace(namespace), client.MatchingLabels{shipper.ReleaseLabel: w.contender}}
	for _, a := range w.applications[1:] {
		deployments, pods := &appsv1.DeploymentList{}, &corev1.PodList{}
		if err := a.client.List(ctx, deployments, of...); err != nil {
			return nil, fmt.Errorf("listing the Deployments of %s: %w", a.name, err)
		}
		if err := a.client.List(ctx, pods, of...); err != nil {
			return nil, fmt.Errorf("listing the Pods of %s: %w", a.name, err)
		}
		lacking := 0
		for i := range deployments.Items {
			lacking += int(*deployments.Items[i].Spec.Replicas)
		}
		for i := range pods.Items {
			if fleet.PodReady(&pods.Items[i]) {
				lacking--
			}
		}
		if lacking > 0 {
			clusters = append(clusters, a.name)
		}
	}
	return clusters, nil
}

// orders is a local server that has figures of some clusters.
type orders struct {
	*httptest.Server
	mu    sync.Mutex
	known []string
	// answered are the clusters of each Release of which it has given figures.
	answered map[string][]string
}

func newOrders() *orders {
	o := &orders{answered: map[string][]string{}}
	o.Server = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		o.mu.Lock()
		defer o.mu.Unlock()
		release, cluster := r.URL.Query().Get("release"), r.URL.Query().Get("cluster")
		if !slices.Contains(o.answered[release], cluster) {
			o.answered[release] = append(o.answered[release], cluster)
		}
		if !slices.Contains(o.known, cluster) {
			http.Error(rw, "no figures yet", http.StatusServiceUnavailable)
			return
		}
		fmt.Fprint(rw, `{"perMinute": 50}`)
	}))
	return o
}

// check is the Check that asks the server. A 503 has no verdict, and is asked for again.
func (o *orders) check() string {
	return fmt.Sprintf(`apiVersion: shipper.booking.com/v1alpha1
kind: Check
metadata: {name: orders}
spec:
  interval: 5s
  count: 1
  inconclusiveLimit: 1000
  http: {url: "%s/rate?release=$(release)&cluster=$(cluster)"}
  pass: response.status == 200 && response.json.perMinute >= 40.0
  fail: response.status == 200 && response.json.perMinute < 40.0
`, o.URL)
}

// know has the server answer with figures of these clusters, too.
func (o *orders) know(clusters ...string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.known = append(o.known, clusters...)
}

// asked are the clusters of which figures of a Release were requested, sorted.
func (o *orders) asked(release string) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return strings.Join(slices.Sorted(slices.Values(o.answered[release])), ", ")
}

func (o *orders) end() error {
	o.Close()
	return nil
}
