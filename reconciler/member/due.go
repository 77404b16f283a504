// SPDX-License-Identifier: Apache-2.0

package member

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"
)

// work is one part of what a pass may be about.
type work struct {
	Key
	// target is an InstallationTarget of a chart. Empty for all with resources, which are worked on together, and for Pods.
	target string
}

// due is the work that the next passes of each Key are about, and from when on. So a target that fails is worked on when its delay has
// passed, and not at each event of a sibling. It is safe for concurrent use; the zero value is usable.
type due struct {
	mu  sync.Mutex
	all map[Key]map[string]time.Time
}

// mark has work on a target done at a time, unless it is due sooner.
func (d *due) mark(w work, at time.Time) {
	if w.Pods {
		return // all of that is in each pass
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.all == nil {
		d.all = map[Key]map[string]time.Time{}
	}
	if d.all[w.Key] == nil {
		d.all[w.Key] = map[string]time.Time{}
	}
	if known, marked := d.all[w.Key][w.target]; !marked || at.Before(known) {
		d.all[w.Key][w.target] = at
	}
}

// take returns the targets whose time has come, the earliest first, and removes them.
func (d *due) take(key Key, now time.Time) []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	left, out := d.all[key], []string(nil)
	known := maps.Clone(left)
	for target, at := range known {
		if !at.After(now) {
			out = append(out, target)
			delete(left, target)
		}
	}
	if len(left) == 0 {
		delete(d.all, key)
	}
	slices.SortFunc(out, func(a, b string) int { return cmp.Or(known[a].Compare(known[b]), cmp.Compare(a, b)) })
	return out
}

// next is in how long a pass is to be made; 0 if there is no need.
func (d *due) next(key Key, now time.Time) time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	var out time.Duration
	for _, at := range d.all[key] {
		if in := max(at.Sub(now), time.Millisecond); out == 0 || in < out {
			out = in
		}
	}
	return out
}
