// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/bench/world"
	"shipper.dev/shipper/test/memory"
)

// seed of where Applications are: each run is like the one before.
const seed = 1

// fullOn is the only step.
var fullOn = world.Step("full on", 0, 100, 0, 100)

// join makes the application clusters, each a region of its own, known to the reconciler.
func (s *simulation) join() error {
	for i, server := range s.servers {
		c := &shipper.Cluster{ObjectMeta: metav1.ObjectMeta{Name: clusterName(i), Labels: map[string]string{waveLabel: s.waves.of(i)}}}
		c.Spec.Region, c.Spec.APIMaster = world.Region(i), server.URL
		secret := &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: shipper.SystemNamespace, Name: c.Name},
			Data:       map[string][]byte{"token": fmt.Appendf(nil, "token-%d", i), "ca.crt": server.CA},
		}
		if err := s.management.Create("", "secrets", secret); err != nil {
			return err
		}
		if err := s.management.Create(shipper.GroupVersion.Group, "clusters", c); err != nil {
			return err
		}
	}
	return nil
}

// application makes an Application as the gate would have it stored, and its namespace.
func (s *simulation) application(i int) error {
	random := rand.New(rand.NewPCG(seed, uint64(i)))
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace(i)}}
	if err := s.management.Create("", "namespaces", ns); err != nil {
		return err
	}
	template := s.ofChart()
	if s.resources {
		template = ofResources(ns.Name)
		content := &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: ns.Name, Name: contentName}, Data: map[string]string{"upgrade": "0"},
		}
		if err := s.management.Create("", "configmaps", content); err != nil {
			return err
		}
	}
	app := &shipper.Application{ObjectMeta: metav1.ObjectMeta{Namespace: ns.Name, Name: "app"}, Spec: shipper.ApplicationSpec{
		RevisionHistoryLimit: ptr.To[int32](1), Template: template,
	}}
	to := random.Perm(s.clusters)[:min(1+random.IntN(3), s.clusters)]
	s.places += len(to)
	app.Spec.Template.ClusterRequirements = requirements(to, s.placements)
	if s.resources { // the namespace is among them
		app.Annotations = map[string]string{shipper.AppSelectedByAnnotation: `{"username":"user"}`} // the webhook records it
		return s.management.Create(shipper.GroupVersion.Group, "applications", app)
	}
	for _, n := range to {
		if err := s.servers[n].Create("", "namespaces", ns); err != nil {
			return err
		}
	}
	return s.management.Create(shipper.GroupVersion.Group, "applications", app)
}

// ofChart is a template that installs a chart.
func (s *simulation) ofChart() shipper.ReleaseEnvironment {
	values := shipper.ChartValues{"replicaCount": int64(s.replicas), "upgrade": int64(0)}
	return shipper.ReleaseEnvironment{
		Chart: shipper.Chart{Name: "test-nginx", Version: "0.0.1", RepoURL: s.charts.URL}, Values: &values,
		Strategy: &shipper.RolloutStrategy{Steps: []shipper.RolloutStrategyStep{fullOn}},
	}
}

// contentName is the name of the ConfigMap that an Application with resources places.
const contentName = "content"

// ofResources is a template that places a namespace and a ConfigMap in it.
func ofResources(namespace string) shipper.ReleaseEnvironment {
	return shipper.ReleaseEnvironment{
		Resources: &shipper.Resources{Select: []shipper.ResourceSelector{
			{Version: "v1", Kind: "Namespace", Name: namespace, Content: shipper.ContentNone},
			{Version: "v1", Kind: "ConfigMap", Name: contentName},
		}},
		Strategy: &shipper.RolloutStrategy{},
	}
}

func clusterName(i int) string { return fmt.Sprintf("cluster-%d", i) }

// requirements are those of an Application on some clusters: by their regions, or by a placement that all clusters are judged for.
func requirements(clusters []int, placed bool) (out shipper.ClusterRequirements) {
	var names []string
	for _, n := range clusters {
		out.Regions = append(out.Regions, shipper.RegionRequirement{Name: world.Region(n)})
		names = append(names, clusterName(n))
	}
	if !placed {
		return out
	}
	return shipper.ClusterRequirements{Placement: &shipper.Placement{
		Type: shipper.PickN, Count: ptr.To(int32(len(names))),
		Affinity: &shipper.ClusterAffinity{Required: []shipper.ClusterTerm{{Names: names}}},
	}}
}

// upgrade makes the n-th Release of an Application after its first.
func (s *simulation) upgrade(i, n int) error {
	if s.resources {
		return s.management.Edit("", "configmaps", namespace(i), contentName, func(u *unstructured.Unstructured) error {
			return unstructured.SetNestedField(u.Object, strconv.Itoa(n), "data", "upgrade")
		})
	}
	return s.management.Edit(shipper.GroupVersion.Group, "applications", namespace(i), "app", func(u *unstructured.Unstructured) error {
		return unstructured.SetNestedField(u.Object, int64(n), "spec", "template", "values", "upgrade")
	})
}

func namespace(i int) string { return fmt.Sprintf("app-%d", i) }

// sight is how far the Application of each namespace is.
type sight struct {
	mu        sync.Mutex
	changed   chan struct{}  // closed with the next change
	achieved  map[string]int // the newest generation whose step is achieved
	there     map[int]int    // how many Applications have achieved the step of a generation, or of a later one
	connected map[string]bool
}

// look watches Releases and Clusters until ctx is done.
func (s *simulation) look(ctx context.Context) {
	s.sight = &sight{changed: make(chan struct{}), achieved: map[string]int{}, there: map[int]int{}, connected: map[string]bool{}}
	go s.management.Follow(ctx, shipper.GroupVersion.Group, "releases", s.sight.release)
	go s.management.Follow(ctx, shipper.GroupVersion.Group, "clusters", s.sight.cluster)
}

func (s *sight) release(raw []byte, gone bool) {
	var rel struct {
		Metadata metav1.ObjectMeta     `json:"metadata"`
		Status   shipper.ReleaseStatus `json:"status"`
	}
	if gone || json.Unmarshal(raw, &rel) != nil || rel.Status.AchievedStep == nil {
		return
	}
	generation, err := strconv.Atoi(rel.Metadata.Annotations[shipper.ReleaseGenerationAnnotation])
	if err != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now, known := s.achieved[rel.Metadata.Namespace]
	if !known {
		now = -1
	}
	if now < generation {
		s.achieved[rel.Metadata.Namespace] = generation
		for ; now < generation; now++ {
			s.there[now+1]++
		}
		close(s.changed)
		s.changed = make(chan struct{})
	}
}

func (s *sight) cluster(raw []byte, _ bool) {
	var c shipper.Cluster
	if json.Unmarshal(raw, &c) != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.connected[c.Name] = shipper.ConditionTrue(c.Status.Conditions, shipper.ClusterReady)
	close(s.changed)
	s.changed = make(chan struct{})
}

// until waits until count is so many.
func (s *sight) until(ctx context.Context, what string, want int, count func() int) error {
	for {
		s.mu.Lock()
		n, changed := count(), s.changed
		s.mu.Unlock()
		if n >= want {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("%d of %d %s: %w", n, want, what, context.Cause(ctx))
		}
	}
}

// count is how many Applications have achieved the step of a generation, or of a later one.
func (s *sight) count(generation int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.there[generation]
}

// upgraded waits until so many have.
func (s *sight) upgraded(ctx context.Context, generation, applications int) error {
	return s.until(ctx, "Applications are there", applications, func() int { return s.there[generation] })
}

// joined waits until all clusters are connected.
func (s *sight) joined(ctx context.Context, clusters int) error {
	return s.until(ctx, "clusters are connected", clusters, func() int {
		n := 0
		for _, yes := range s.connected {
			if yes {
				n++
			}
		}
		return n
	})
}

// begun starts the API servers.
func (s *simulation) begin() error {
	kinds, err := memory.Management()
	if err != nil {
		return err
	}
	if s.management, err = memory.Start(memory.Options{Kinds: kinds, Latency: s.latency, Event: s.told}); err != nil {
		return err
	}
	for range s.clusters {
		server, err := memory.Start(memory.Options{
			Kinds: memory.Application(), Latency: s.latency, DeploymentLatency: s.pods, PodLatency: -1, EndpointLatency: -1,
		})
		if err != nil {
			return err
		}
		s.servers = append(s.servers, server)
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: shipper.SystemNamespace}} // shipperctl creates it in a cluster that joins
		if err := server.Create("", "namespaces", ns); err != nil {
			return err
		}
	}
	return nil
}
