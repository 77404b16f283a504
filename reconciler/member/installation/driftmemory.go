// SPDX-License-Identifier: Apache-2.0

package installation

import (
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/fleet"
)

// An object that is edited and corrected again and again is corrected at growing intervals.
const (
	firstPause = 5 * time.Second
	lastPause  = 5 * time.Minute
)

// comparison is what is known of one object.
type comparison struct {
	session uint64
	uid     types.UID
	edit    string
	digest  string
	// fields that are not as released; problem says why that is not known.
	fields  []shipper.DriftedField
	problem string
	// corrected is how often it was corrected lately, at is when it was for the last time.
	corrected int
	at        time.Time
}

// speaksOf reports whether an object was not edited since it was compared.
func (c comparison) speaksOf(live *metav1.PartialObjectMetadata, entry item, session uint64) bool {
	return c.session == session && c.uid == live.UID && c.digest == entry.Digest && c.edit == fleet.EditOf(live)
}

func (c comparison) drifted() bool { return len(c.fields) > 0 }

// pause is how long to wait after the last correction.
func (c comparison) pause() time.Duration {
	if c.corrected == 0 {
		return 0
	}
	return min(firstPause<<min(c.corrected-1, 10), lastPause)
}

// due is how long it is until the object may be corrected again; 0 when it may be.
func (c comparison) due(now time.Time) time.Duration { return max(c.at.Add(c.pause()).Sub(now), 0) }

// corrections are those that count still: none of an object that was left alone for long.
func (c comparison) corrections(now time.Time) int {
	if now.Sub(c.at) > 2*lastPause {
		return 0
	}
	return c.corrected
}

// driftMemory is what is known of the objects of one target in one cluster. One pass at a time uses it.
type driftMemory struct{ known map[item]comparison }

// nameless is an item by what it is, and not by what was written.
func nameless(i item) item {
	i.Digest = ""
	return i
}

func (m *driftMemory) recall(i item) comparison { return m.known[nameless(i)] }

func (m *driftMemory) note(i item, c comparison) { m.known[nameless(i)] = c }

// driftMemories are those of all targets. They are forgotten with the process: then all is compared once more.
type driftMemories struct {
	mu  sync.Mutex
	all map[types.NamespacedName]map[string]*driftMemory
}

// of is the memory of a target in a cluster.
func (m *driftMemories) of(target types.NamespacedName, cluster string) *driftMemory {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.all == nil {
		m.all = map[types.NamespacedName]map[string]*driftMemory{}
	}
	if m.all[target] == nil {
		m.all[target] = map[string]*driftMemory{}
	}
	if m.all[target][cluster] == nil {
		m.all[target][cluster] = &driftMemory{known: map[item]comparison{}}
	}
	return m.all[target][cluster]
}

// forget drops all of a target.
func (m *driftMemories) forget(target types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.all, target)
}
