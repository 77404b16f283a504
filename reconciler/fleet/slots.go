// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"slices"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// Slots bounds how many passes of one reconciler are at work in one cluster at the same time, so that a cluster that answers
// slowly, or not at all, keeps only some of the workers, and the others go on elsewhere. A pass that finds one of its clusters
// full does nothing: its request waits, without a worker, and is made again when there is a place. Nil bounds nothing. It is safe
// for concurrent use.
//
// Who waited for a cluster and finds another full gives the place away, and has it owed: it need not wait there again, and gets in
// though there are half as many more than there are places, and always one more. Else who needs two clusters that are always full
// would be called by each in turn, and never get in.
type Slots struct {
	name     string
	most     int
	newQueue func() workqueue.Queue[reconcile.Request]

	mu       sync.Mutex
	queue    queue
	sites    map[string]*clusterSlots
	reserved map[reconcile.Request][]string     // the clusters that have a place kept for it
	credits  map[reconcile.Request][]string     // the clusters whose place it gave away while it waits for another
	passes   map[reconcile.Request]*SlotRequest // those that are at work
}

// clusterSlots is one cluster.
type clusterSlots struct {
	inside  int // passes that are at work there, and requests that were called
	waits   map[reconcile.Request]bool
	waiting workqueue.Queue[reconcile.Request]
}

// Slots makes those of a reconciler, as NewPlaces does, and has them published with the fleet.
func (f *Fleet) Slots(name string, most int, line func() workqueue.Queue[reconcile.Request]) *Slots {
	p := NewSlots(name, most, line)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.slots = append(f.slots, p)
	return p
}

// NewSlots makes most places in each cluster for the reconciler called name, whose requests wait in lines made by line; nil: first
// come, first served.
func NewSlots(name string, most int, line func() workqueue.Queue[reconcile.Request]) *Slots {
	if line == nil {
		line = workqueue.DefaultQueue[reconcile.Request]
	}
	return &Slots{
		name: name, most: most, newQueue: line, sites: map[string]*clusterSlots{},
		reserved: map[reconcile.Request][]string{}, credits: map[reconcile.Request][]string{},
		passes: map[reconcile.Request]*SlotRequest{},
	}
}

// Source makes the requests that waited for a place.
func (p *Slots) Source() source.Source {
	return source.Func(func(_ context.Context, q workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		if p == nil {
			return nil
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		p.queue = q
		return nil
	})
}

// SlotRequest is one pass of a reconciler.
type SlotRequest struct {
	slots   *Slots
	request reconcile.Request
	// places.mu guards these.
	held    []string // clusters it has a place in
	entered bool     // whether it asked for places
}

// Begin begins a pass, which has to be ended.
func (p *Slots) Begin(request reconcile.Request) *SlotRequest {
	return &SlotRequest{slots: p, request: request}
}

// Acquire takes a place in each of some clusters, or reports that there is none in one of them: then the pass is to end, and there will
// be another. It keeps no place elsewhere meanwhile: who waits for one cluster stands in nobody's way in another.
func (a *SlotRequest) Acquire(clusters []string) bool {
	p := a.slots
	if p == nil {
		return true
	}
	clusters = slices.Compact(slices.Sorted(slices.Values(clusters)))
	p.mu.Lock()
	defer p.mu.Unlock()
	a.entered = true
	kept, owed := p.claims(a.request)
	full := slices.IndexFunc(clusters, func(name string) bool {
		s, most := p.sites[name], p.most
		if slices.Contains(owed, name) {
			most += max(1, p.most/2)
		}
		return s != nil && s.inside >= most && !slices.Contains(kept, name)
	})
	if full >= 0 {
		p.sites[clusters[full]].park(a.request)
		p.credit(a.request, append(owed, kept...))
		p.free(kept...)
		return false
	}
	for _, name := range clusters {
		if i := slices.Index(kept, name); i >= 0 {
			kept = slices.Delete(kept, i, i+1)
		} else {
			p.site(name).inside++
		}
	}
	a.held = clusters
	p.passes[a.request] = a
	p.free(kept...)
	return true
}

// Release gives the place in a cluster to the next.
func (a *SlotRequest) Release(cluster string) {
	if a.slots == nil {
		return
	}
	a.slots.mu.Lock()
	defer a.slots.mu.Unlock()
	if i := slices.Index(a.held, cluster); i >= 0 {
		a.held = slices.Delete(a.held, i, i+1)
		a.slots.free(cluster)
	}
}

// End gives back what is left, also places that were kept for a pass that had no use for them.
func (a *SlotRequest) End() {
	p := a.slots
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.free(a.held...)
	a.held = nil
	delete(p.passes, a.request)
	if !a.entered {
		kept, _ := p.claims(a.request)
		p.free(kept...)
	}
}

// working reports whether the pass of a request is at work in a cluster.
func (p *Slots) working(request reconcile.Request) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	pass := p.passes[request]
	return pass != nil && len(pass.held) > 0
}

// claims are the clusters in which a place is kept for a request, and those in which one is owed to it: it has them no more. p.mu is
// held.
func (p *Slots) claims(request reconcile.Request) (kept, owed []string) {
	kept, owed = p.reserved[request], p.credits[request]
	delete(p.reserved, request)
	delete(p.credits, request)
	return kept, owed
}

// credit remembers where a request that goes on waiting had a place. p.mu is held.
func (p *Slots) credit(request reconcile.Request, clusters []string) {
	slices.Sort(clusters)
	if clusters = slices.Compact(clusters); len(clusters) > 0 {
		p.credits[request] = clusters
	}
}

// site of a cluster. p.mu is held.
func (p *Slots) site(name string) *clusterSlots {
	s := p.sites[name]
	if s == nil {
		s = &clusterSlots{waits: map[reconcile.Request]bool{}, waiting: p.newQueue()}
		p.sites[name] = s
	}
	return s
}

// park lets a request wait. p.mu is held.
func (s *clusterSlots) park(request reconcile.Request) {
	if s.waits[request] {
		s.waiting.Touch(request)
		return
	}
	s.waits[request] = true
	s.waiting.Push(request)
}

// free gives a place in each cluster back, and calls who waits for it. p.mu is held.
func (p *Slots) free(clusters ...string) {
	for _, name := range clusters {
		s := p.site(name)
		s.inside--
		for s.inside < p.most && s.waiting.Len() > 0 {
			next := s.waiting.Pop()
			delete(s.waits, next)
			s.inside++
			p.reserved[next] = append(p.reserved[next], name)
			p.queue.Add(next)
		}
		if s.inside == 0 {
			delete(p.sites, name)
		}
	}
}

// collect publishes how many are at work and wait in each cluster.
func (p *Slots) collect(c chan<- prometheus.Metric) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for name, s := range p.sites {
		c <- prometheus.MustNewConstMetric(clusterTargets, prometheus.GaugeValue, float64(s.inside), name, p.name, "working")
		c <- prometheus.MustNewConstMetric(clusterTargets, prometheus.GaugeValue, float64(s.waiting.Len()), name, p.name, "waiting")
	}
}
