// SPDX-License-Identifier: Apache-2.0

package drift

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

// Comparison is what is known of one object.
type Comparison struct {
	// Session, UID, Edit and Digest identify what was compared, and with what.
	Session uint64
	UID     types.UID
	Edit    string
	Digest  string
	// Fields are not as released; Problem says why that is not known.
	Fields  []shipper.DriftedField
	Problem string
	// Corrected is how often it was corrected lately, At is when it was for the last time.
	Corrected int
	At        time.Time
}

// SpeaksOf reports whether an object was not edited since it was compared with the manifest of a digest.
func (c Comparison) SpeaksOf(live *metav1.PartialObjectMetadata, digest string, session uint64) bool {
	return c.Session == session && c.UID == live.UID && c.Digest == digest && c.Edit == fleet.EditOf(live)
}

// Drifted reports whether fields are not as released.
func (c Comparison) Drifted() bool { return len(c.Fields) > 0 }

// pause is how long to wait after the last correction.
func (c Comparison) pause() time.Duration {
	if c.Corrected == 0 {
		return 0
	}
	return min(firstPause<<min(c.Corrected-1, 10), lastPause)
}

// Due is how long it is until the object may be corrected again; 0 when it may be.
func (c Comparison) Due(now time.Time) time.Duration { return max(c.At.Add(c.pause()).Sub(now), 0) }

// Corrections are those that count still: none of an object that was left alone for long.
func (c Comparison) Corrections(now time.Time) int {
	if now.Sub(c.At) > 2*lastPause {
		return 0
	}
	return c.Corrected
}

// Memory is what is known of the objects of one target in one cluster. It is safe for concurrent use: a pass compares objects in parallel.
type Memory[K comparable] struct {
	mu    sync.Mutex
	known map[K]Comparison
}

// Recall returns what is known of an object.
func (m *Memory[K]) Recall(object K) Comparison {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.known[object]
}

// Note keeps what is known of an object.
func (m *Memory[K]) Note(object K, c Comparison) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.known[object] = c
}

// Memories are those of all targets. They are forgotten with the process: then all is compared once more. The zero value is usable; it is
// safe for concurrent use.
type Memories[K comparable] struct {
	mu  sync.Mutex
	all map[types.NamespacedName]map[string]*Memory[K]
}

// Of is the memory of a target in a cluster.
func (m *Memories[K]) Of(target types.NamespacedName, cluster string) *Memory[K] {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.all == nil {
		m.all = map[types.NamespacedName]map[string]*Memory[K]{}
	}
	if m.all[target] == nil {
		m.all[target] = map[string]*Memory[K]{}
	}
	if m.all[target][cluster] == nil {
		m.all[target][cluster] = &Memory[K]{known: map[K]Comparison{}}
	}
	return m.all[target][cluster]
}

// Forget drops all of a target.
func (m *Memories[K]) Forget(target types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.all, target)
}
