// SPDX-License-Identifier: Apache-2.0

package kill

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/fleet"
)

// guard watches one namespace of one application cluster and checks the invariants after every event. It sorts all events by
// resourceVersion first: watches of different kinds are not ordered, so caches could see a Pod deleted before its replacement
// exists.
type guard struct {
	cluster string
	weights *weights

	mu        sync.Mutex
	told      []told
	floor     int // how many Pods must serve; 0 while nothing is checked
	pods      map[string]*corev1.Pod
	slices    map[string]*discoveryv1.EndpointSlice
	services  map[string]*corev1.Service
	events    int
	least     int // lowest number that served since the floor was set, by Pods or by endpoints
	offences  []string
	forgotten int               // number of violations beyond the first few
	releases  map[string]string // by Pod, including deleted ones
}

// told is an event, and the time of its arrival.
type told struct {
	version int64
	at      time.Time
	event   watch.Event
}

// newGuard watches until ctx ends.
func newGuard(ctx context.Context, cluster, namespace string, weights *weights) (*guard, error) {
	g := &guard{
		cluster: cluster, weights: weights, releases: map[string]string{},
		pods: map[string]*corev1.Pod{}, slices: map[string]*discoveryv1.EndpointSlice{},
		services: map[string]*corev1.Service{},
	}
	for _, list := range []client.ObjectList{&corev1.PodList{}, &discoveryv1.EndpointSliceList{}, &corev1.ServiceList{}} {
		// A watch from resourceVersion "" begins with the objects that exist.
		w, err := world.Clusters[cluster].Watch(ctx, list, client.InNamespace(namespace))
		if err != nil {
			return nil, fmt.Errorf("watching %T in %s: %w", list, cluster, err)
		}
		go g.follow(ctx, w)
	}
	return g, nil
}

// follow records every event.
func (g *guard) follow(ctx context.Context, w watch.Interface) {
	defer w.Stop()
	for event := range w.ResultChan() {
		one := told{at: time.Now(), event: event}
		if o, ok := event.Object.(client.Object); ok {
			one.version, _ = strconv.ParseInt(o.GetResourceVersion(), 10, 64) // 0 for errors, which sort first
		}
		g.mu.Lock()
		g.told = append(g.told, one)
		g.mu.Unlock()
	}
	if ctx.Err() == nil {
		g.mu.Lock()
		g.offend("a watch has ended: not every event was judged")
		g.mu.Unlock()
	}
}

// catchUp checks every recorded event.
func (g *guard) catchUp() {
	slices.SortStableFunc(g.told, func(a, b told) int { return cmp.Compare(a.version, b.version) })
	for _, one := range g.told {
		what := g.take(one.event)
		g.events++
		g.judge(what, one.at)
	}
	g.told = nil
}

// take stores the object of an event.
func (g *guard) take(event watch.Event) string {
	gone := event.Type == watch.Deleted
	switch o := event.Object.(type) {
	case *corev1.Pod:
		put(g.pods, o, gone)
		g.releases[o.Name] = o.Labels[shipper.ReleaseLabel]
	case *discoveryv1.EndpointSlice:
		put(g.slices, o, gone)
	case *corev1.Service:
		put(g.services, o, gone)
	default:
		g.offend(fmt.Sprintf("a watch said %v", event.Object))
		return string(event.Type)
	}
	o, _ := event.Object.(client.Object)
	return fmt.Sprintf("%s %T %s", event.Type, o, o.GetName())
}

func put[T client.Object](into map[string]T, o T, gone bool) {
	if gone {
		delete(into, o.GetName())
	} else {
		into[o.GetName()] = o
	}
}

// judge checks the invariants.
func (g *guard) judge(after string, at time.Time) {
	if g.floor == 0 {
		return
	}
	service, ok := g.services[serviceName]
	if !ok {
		g.offend(fmt.Sprintf("after %s: the Service is gone", after))
		return
	}
	chosen := labels.SelectorFromSet(service.Spec.Selector)
	ready, traffic := map[string]int{}, map[string]int{} // Pods by Release
	serving := 0
	for _, pod := range g.pods {
		if pod.DeletionTimestamp != nil || pod.Labels[shipper.AppLabel] != appName {
			continue
		}
		release := pod.Labels[shipper.ReleaseLabel]
		if fleet.PodReady(pod) {
			ready[release]++
		}
		if chosen.Matches(labels.Set(pod.Labels)) {
			traffic[release]++
			if fleet.PodReady(pod) {
				serving++
			}
		}
	}
	g.least = min(g.least, serving, g.endpoints())
	if serving < g.floor {
		g.offend(fmt.Sprintf("after %s: %d ready Pods are in traffic, %d must be: %s", after, serving, g.floor, g.sight()))
	}
	if n := g.endpoints(); n < g.floor {
		g.offend(fmt.Sprintf("after %s: %d endpoints are ready, %d must be: %s", after, n, g.floor, g.sight()))
	}
	for name := range g.ready() {
		if release := g.releases[name]; g.weights.none(release, at) {
			g.offend(fmt.Sprintf("after %s: Pod %s of %s serves, which weighs nothing: %s", after, name, release, g.sight()))
		}
	}
	for release := range traffic {
		if ready[release] == 0 && len(ready) > 0 {
			g.offend(fmt.Sprintf("after %s: traffic points at %s, none of whose Pods is ready: %s", after, release, g.sight()))
		}
	}
}

// endpoints counts the ready endpoints of the Service.
func (g *guard) endpoints() int { return len(g.ready()) }

// ready returns the Pods that are ready endpoints of the Service.
func (g *guard) ready() map[string]bool {
	ready := map[string]bool{}
	for _, slice := range g.slices {
		if slice.Labels[discoveryv1.LabelServiceName] != serviceName {
			continue
		}
		for _, e := range slice.Endpoints {
			if e.TargetRef != nil && (e.Conditions.Ready == nil || *e.Conditions.Ready) {
				ready[e.TargetRef.Name] = true
			}
		}
	}
	return ready
}

// sight describes the Application's Pods.
func (g *guard) sight() string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(g.pods)) {
		pod := g.pods[name]
		if pod.Labels[shipper.AppLabel] == appName {
			all = append(all, fmt.Sprintf("%s ready=%t going=%t traffic=%s",
				name, fleet.PodReady(pod), pod.DeletionTimestamp != nil, pod.Labels[shipper.TrafficStatusLabel]))
		}
	}
	return strings.Join(all, "; ")
}

func (g *guard) offend(what string) {
	if len(g.offences) == 5 {
		g.forgotten++
		return
	}
	g.offences = append(g.offences, g.cluster+": "+what)
}

// hold begins to check: from now on floor Pods must serve.
func (g *guard) hold(floor int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.catchUp()
	g.floor, g.least = floor, floor+100
	g.judge("the beginning", time.Now())
}

// report returns the violations since hold, the number of checked events and the lowest number that served. It ends the
// checks.
func (g *guard) report() (offences []string, events, least int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.catchUp()
	offences, events, least = g.offences, g.events, g.least
	if g.forgotten > 0 {
		offences = append(offences, fmt.Sprintf("%s: and %d more", g.cluster, g.forgotten))
	}
	g.floor, g.offences, g.forgotten, g.events = 0, nil, 0, 0
	return offences, events, least
}

// versions returns the resourceVersions of the picked objects of lists, by kind and name.
func versions(ctx context.Context, c client.Client, namespace string, picked func(client.Object) bool,
	lists ...client.ObjectList,
) (map[string]string, error) {
	out := map[string]string{}
	for _, list := range lists {
		objects, err := objectsOf(ctx, c, namespace, list)
		if err != nil {
			return nil, err
		}
		for _, o := range objects {
			if picked(o) {
				out[fmt.Sprintf("%T %s", o, o.GetName())] = o.GetResourceVersion()
			}
		}
	}
	return out, nil
}

// objectsOf lists the objects of one kind.
func objectsOf(ctx context.Context, c client.Client, namespace string, list client.ObjectList) ([]client.Object, error) {
	if err := c.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("listing %T: %w", list, err)
	}
	var out []client.Object
	err := eachItem(list, func(o client.Object) { out = append(out, o) })
	slices.SortFunc(out, func(a, b client.Object) int { return strings.Compare(a.GetName(), b.GetName()) })
	return out, err
}
