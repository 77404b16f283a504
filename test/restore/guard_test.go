// SPDX-License-Identifier: Apache-2.0

package restore

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/fleet"
)

// guard watches one namespace of one application cluster and checks the invariants after every event.
type guard struct {
	cluster string
	ctx     context.Context

	mu       sync.Mutex
	on       bool
	floor    int  // how many Pods must serve
	podsMove bool // Pods may be deleted, as long as enough serve
	pods     map[string]*corev1.Pod
	slices   map[string]*discoveryv1.EndpointSlice
	services map[string]*corev1.Service
	offences []string
}

// newGuard watches until ctx ends.
func newGuard(ctx context.Context, cluster, namespace string) (*guard, error) {
	g := &guard{
		cluster: cluster, ctx: ctx, pods: map[string]*corev1.Pod{}, slices: map[string]*discoveryv1.EndpointSlice{},
		services: map[string]*corev1.Service{},
	}
	for _, list := range []client.ObjectList{
		&corev1.PodList{}, &discoveryv1.EndpointSliceList{}, &corev1.ServiceList{}, &appsv1.DeploymentList{},
	} {
		// A watch from resourceVersion "" begins with the objects that exist.
		w, err := world.lost.Clusters[cluster].Watch(ctx, list, client.InNamespace(namespace))
		if err != nil {
			return nil, fmt.Errorf("watching %T in %s: %w", list, cluster, err)
		}
		go g.follow(w)
	}
	return g, nil
}

// follow checks every event.
func (g *guard) follow(w watch.Interface) {
	defer w.Stop()
	for event := range w.ResultChan() {
		g.mu.Lock()
		g.take(event)
		g.mu.Unlock()
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.ctx.Err() == nil {
		g.offend("a watch has ended: not every event was judged")
	}
}

// take stores the object of an event, and checks.
func (g *guard) take(event watch.Event) {
	o, ok := event.Object.(client.Object)
	if !ok {
		g.offend(fmt.Sprintf("a watch said %v", event.Object))
		return
	}
	gone := event.Type == watch.Deleted
	what := fmt.Sprintf("%s %T %s", event.Type, o, o.GetName())
	switch o := o.(type) {
	case *corev1.Pod:
		if (gone || o.DeletionTimestamp != nil) && !g.podsMove {
			g.offend(what + " goes")
		}
		put(g.pods, o, gone)
	case *discoveryv1.EndpointSlice:
		put(g.slices, o, gone)
	case *corev1.Service:
		if (gone || o.DeletionTimestamp != nil) && o.Labels[shipper.ProofLabel] == "" { // Shipper deletes shadow Services
			g.offend(what + " goes")
		}
		put(g.services, o, gone)
	case *appsv1.Deployment:
		if gone || o.DeletionTimestamp != nil {
			g.offend(what + " goes")
		}
	}
	g.judge(what)
}

func put[T client.Object](into map[string]T, o T, gone bool) {
	if gone {
		delete(into, o.GetName())
	} else {
		into[o.GetName()] = o
	}
}

// judge counts the ready endpoints. The Pods that the Service selects would not do: the order of events of different kinds is
// undefined.
func (g *guard) judge(after string) {
	if _, ok := g.services[serviceName]; !g.on || !ok {
		return
	}
	endpoints := 0
	for _, slice := range g.slices {
		for _, e := range slice.Endpoints {
			if slice.Labels[discoveryv1.LabelServiceName] == serviceName && (e.Conditions.Ready == nil || *e.Conditions.Ready) {
				endpoints++
			}
		}
	}
	if endpoints < g.floor {
		g.offend(fmt.Sprintf("after %s: %d endpoints are ready, and %d must be: %s", after, endpoints, g.floor, g.sight()))
	}
}

// sight describes the Application's Pods.
func (g *guard) sight() string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(g.pods)) {
		pod := g.pods[name]
		all = append(all, fmt.Sprintf("%s ready=%t going=%t traffic=%s",
			name, fleet.PodReady(pod), pod.DeletionTimestamp != nil, pod.Labels[shipper.TrafficStatusLabel]))
	}
	return strings.Join(all, "; ")
}

// offend records a violation, the first few times.
func (g *guard) offend(what string) {
	if g.on && len(g.offences) < 5 {
		g.offences = append(g.offences, g.cluster+": "+what)
	}
}

// hold begins to check: from now on floor Pods must serve, and no object may be deleted, or only Pods if podsMove is set.
func (g *guard) hold(floor int, podsMove bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.on, g.floor, g.podsMove = true, floor, podsMove
	g.judge("the beginning")
}

// report returns the violations since hold, and ends the checks.
func (g *guard) report() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.on = false
	return g.offences
}
