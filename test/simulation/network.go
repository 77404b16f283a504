// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"net/http"
	"strings"
	"sync"
	"time"
)

var (
	errKilled  = errors.New("the process was killed")
	errRefused = errors.New("connect: connection refused")
	errReset   = errors.New("read: connection reset by peer")
)

const (
	// mostDelay bounds the delay of a request, mostWatchDelay that of a watch event, without faults.
	mostDelay, mostWatchDelay = 3 * time.Millisecond, 2 * time.Millisecond
	// renewedLast is how much later than everything else of a process that stood still its Lease is renewed.
	renewedLast = 200 * time.Millisecond
)

// Network carries requests of processes to the handlers of hosts, and has the faults.
type Network struct {
	history *History
	// delivered is called with the events that a watch is about to deliver.
	delivered func(process, path string, events []byte)
	// answered is called with each answer that a process has read.
	answered func(c *Client, s *sent, r *http.Request, body []byte, response *http.Response)
	// seed decides the delays. They depend on who asks what how often, so that a fault changes no delay of other requests.
	seed uint64

	mu      sync.Mutex
	hosts   map[string]http.Handler
	windows []window
	streams map[*stream]bool
	asked   map[string]uint64
	leader  string // holder of the Lease
	kills   kills
	kinds   map[string]bool // of writes that have ended a life
	writes  int             // by reconcilers
	lives   int             // that ended by a kill
}

func newNetwork(seed uint64, history *History) *Network {
	return &Network{
		history: history, seed: seed, hosts: map[string]http.Handler{}, streams: map[*stream]bool{}, asked: map[string]uint64{},
		kinds: map[string]bool{},
	}
}

// serve lets a host answer.
func (n *Network) serve(host string, handler http.Handler) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.hosts[host] = handler
}

// Add begins faults. Those of kind Kill are the caller's.
func (n *Network) Add(faults ...Fault) {
	now := time.Now()
	for _, f := range faults {
		w := window{Fault: f, from: now.Add(f.After), to: now.Add(f.After + f.For)}
		n.mu.Lock()
		n.windows = append(n.windows, w)
		n.mu.Unlock()
		switch f.Kind {
		case Refuse, CutWatches, ExpireWatches:
			time.AfterFunc(f.After, func() { n.cut(w) })
		}
	}
}

// cut ends the watches that have a fault.
func (n *Network) cut(w window) {
	n.mu.Lock()
	var ends []func()
	for s := range n.streams {
		if w.concerns(s.host, s.process) {
			ends = append(ends, s.end)
		}
	}
	n.mu.Unlock()
	for _, end := range ends {
		end()
	}
}

// over is when the last fault ends.
func (n *Network) over() (at time.Time) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, w := range n.windows {
		if w.to.After(at) {
			at = w.to
		}
	}
	return at
}

// calm reports whether no fault delayed, lost or refused anything of a process, or of any if it is empty, from some time ago until now.
func (n *Network) calm(process string, since time.Duration) bool {
	now := time.Now()
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, w := range n.windows {
		concerned := w.Kind != Kill && (w.Process == "" || process == "" || w.Process == process)
		if concerned && !w.from.After(now) && w.to.Add(w.Delay).After(now.Add(-since)) {
			return false
		}
	}
	return true
}

// cutOff reports whether a process had a fault with a host, from some time ago until now, that ends watches.
func (n *Network) cutOff(host, process string, since time.Duration) bool {
	now := time.Now()
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, w := range n.windows {
		ends := contains([]FaultKind{Hang, Refuse, Status, LoseAnswers, CutWatches, ExpireWatches}, w.Kind)
		if ends && w.concerns(host, process) && !w.from.After(now) && w.to.After(now.Add(-since)) {
			return true
		}
	}
	return false
}

// fault is what a request of a process to a path of a host meets now.
func (n *Network) fault(host, path, process string, of ...FaultKind) (window, bool) {
	now := time.Now()
	n.mu.Lock()
	defer n.mu.Unlock()
	for i, w := range n.windows {
		if !contains(of, w.Kind) || !w.active(now, host, process) || !strings.Contains(path, w.Path) {
			continue
		}
		if w.Percent > 0 {
			key := fmt.Sprint("fault ", i, " ", process)
			n.asked[key]++
			if int(n.hash(key, n.asked[key])%100) >= w.Percent {
				continue
			}
		}
		return w, true
	}
	return window{}, false
}

func contains[T comparable](list []T, one T) bool {
	for _, other := range list {
		if other == one {
			return true
		}
	}
	return false
}

// hash mixes the seed, the request, and how often it was sent before.
func (n *Network) hash(what string, times uint64) uint64 {
	h := fnv.New64a()
	fmt.Fprint(h, n.seed, what, times)
	x := h.Sum64() // its low bits alone are alike for alike texts
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	return x ^ x>>33
}

// delay waits for a time that depends on what is asked and how often it was asked before.
func (n *Network) delay(ctx context.Context, what string, most time.Duration) {
	n.mu.Lock()
	n.asked[what]++
	times := n.asked[what]
	n.mu.Unlock()
	pause(ctx, time.Duration(n.hash(what, times)%uint64(most)))
}

// pause waits, unless ctx is done before.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
