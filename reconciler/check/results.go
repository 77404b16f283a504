// SPDX-License-Identifier: Apache-2.0

package check

import (
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"shipper.dev/shipper/apis/rules/check"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// results are those of all runs under way. They are safe for concurrent use.
type results struct {
	mu  sync.Mutex
	all map[types.NamespacedName]*state
}

func newResults() *results { return &results{all: map[types.NamespacedName]*state{}} }

// unsettled reports whether the status of a target has to change although nothing is measured: it names clusters that cannot be worked
// with, or lacks something.
func (r *results) unsettled(target *shipper.CheckTarget) bool {
	r.mu.Lock()
	s := r.all[client.ObjectKeyFromObject(target)]
	r.mu.Unlock()
	if s == nil || s.uid != target.UID || s.run != target.Spec.Run {
		return saysLost(target)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changed || len(s.lost) > 0
}

// of is the state of a target's run. That of a run which this process has not seen begins with what the status says of it.
func (r *results) of(target *shipper.CheckTarget) *state {
	r.mu.Lock()
	defer r.mu.Unlock()
	key := client.ObjectKeyFromObject(target)
	s := r.all[key]
	if s != nil && s.uid == target.UID && s.run >= target.Spec.Run {
		return s
	}
	s = &state{
		uid: target.UID, run: target.Spec.Run, known: map[Key]shipper.CheckResult{}, lost: map[string]string{}, jobs: map[Key]string{},
		writing: make(chan struct{}, 1), inherited: saysLost(target),
	}
	keyOf := func(r shipper.CheckResult) Key { return Key{target.Namespace, target.Name, r.Name, r.Cluster} }
	for _, one := range check.Start(&target.Spec) {
		s.known[keyOf(one)] = one
	}
	if target.Status.Run == target.Spec.Run {
		for _, one := range target.Status.Results {
			if _, is := s.known[keyOf(one)]; is {
				s.known[keyOf(one)] = *one.DeepCopy()
			}
		}
	} else {
		s.changed = true
	}
	r.all[key] = s
	return s
}

// saysLost reports whether the status says that clusters cannot be worked with.
func saysLost(target *shipper.CheckTarget) bool {
	operational := shipper.FindCondition(target.Status.Conditions, shipper.TargetOperational)
	return target.Status.Run == target.Spec.Run && operational != nil && operational.Status == corev1.ConditionFalse
}

func (r *results) forget(key types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.all, key)
}

// state is what came of one run so far.
type state struct {
	uid types.UID
	run int64

	mu    sync.Mutex
	known map[Key]shipper.CheckResult
	// lost says why clusters cannot be worked with.
	lost map[string]string
	// jobs are the names of Jobs that were there.
	jobs map[Key]string
	// changed is true while the status lacks something, and urgent while it lacks a decision.
	changed, urgent bool
	// inherited is true until a pass looks whether clusters are lost that an earlier process wrote of.
	inherited bool
	// since is when the status was last written, or the first pass.
	since time.Time

	// writing holds one value while the status is written. A caller waits for it until its context is done.
	writing chan struct{}
}

func (s *state) get(key Key) shipper.CheckResult {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.known[key]
}

// add keeps a measurement.
func (s *state) add(key Key, run *shipper.CheckRun, m check.Measurement) shipper.CheckResult {
	s.mu.Lock()
	defer s.mu.Unlock()
	is := check.Add(run, s.known[key], m)
	s.known[key] = is
	s.changed, s.urgent = true, s.urgent || is.Phase.Decided()
	return is
}

// start notes that a check which is made once runs.
func (s *state) start(key Key, message string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	is := s.known[key]
	if is.Phase.Decided() || is.Phase == shipper.CheckRunning && is.Message == message {
		return
	}
	is.Phase, is.Message = shipper.CheckRunning, message
	s.known[key], s.changed = is, true
}

// inherits is true once, if an earlier process wrote that clusters cannot be worked with. The status is written again then.
func (s *state) inherits() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	is := s.inherited
	s.inherited, s.changed = false, s.changed || is
	return is
}

// misses reports whether a cluster was lost.
func (s *state) misses(cluster string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lost[cluster] != ""
}

// lose notes that a cluster cannot be worked with.
func (s *state) lose(cluster, why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lost[cluster] != why {
		s.lost[cluster], s.changed = why, true
	}
}

// regain notes that a cluster can be worked with.
func (s *state) regain(cluster string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lost[cluster] != "" {
		delete(s.lost, cluster)
		s.changed = true
	}
}

// due returns how long a status waits to be written; false when it has nothing new. Decisions do not wait.
func (s *state) due(now time.Time) (time.Duration, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case !s.changed:
		return 0, false
	case s.urgent:
		return 0, true
	case s.since.IsZero():
		s.since = now.Add(gather - statusInterval)
		return gather, true
	}
	return max(0, s.since.Add(statusInterval).Sub(now)), true
}

// take returns all results in their order, and what is lost, for a status that is written now.
func (s *state) take(now time.Time) ([]shipper.CheckResult, map[string]string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]shipper.CheckResult, 0, len(s.known))
	for _, one := range s.known {
		out = append(out, *one.DeepCopy())
	}
	slices.SortFunc(out, check.ByNameAndCluster)
	s.changed, s.urgent, s.since = false, false, now
	return out, maps.Clone(s.lost)
}

// writeAgain has the status written again.
func (s *state) writeAgain() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.changed, s.urgent = true, true
}

// noteJob notes that the Job of a check was there, and jobSeen returns its name.
func (s *state) noteJob(key Key, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.jobs[key] = name
}

func (s *state) jobSeen(key Key) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.jobs[key]
}

// waitingFor are the keys of checks that a cluster was lost for, decided ones too: the status says that it is lost until a pass of one.
func (r *results) waitingFor(cluster string) []Key {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []Key
	for _, s := range r.all {
		s.mu.Lock()
		if s.lost[cluster] != "" {
			for key := range s.known {
				if key.Cluster == cluster || key.Cluster == "" {
					out = append(out, key)
				}
			}
		}
		s.mu.Unlock()
	}
	return out
}
