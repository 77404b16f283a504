// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"shipper.dev/shipper/apis/rules/position"
	"shipper.dev/shipper/reconciler/process"
	"shipper.dev/shipper/test/memory"
)

// The laws. Each is judged at every change that an API server stores, while its mutex is held: no event is lost, and no order is guessed.
//
//  1. A production Service that had endpoints has endpoints.
//  2. Serving capacity is never below what the step allows, and no Pod serves whose Release weighs nothing.
//  3. Nothing of a change that a block forbids is requested, from the moment a reconciler has seen the block.
//  4. No step is passed before it was achieved, checked, waited for and approved; nothing goes up after a move back without a person;
//     and no target asks for more than the step.
//  5. No write is sent by a process that does not lead any more.
//  6. No object of another owner is written or removed.
//  7. Each part ends as the undisturbed one, and at rest nothing is written.
//  8. A lost or late cluster causes no move back, no failure and no abort.
//  9. Statuses never say that something was achieved that was not.
//  10. Every condition that waits says why, with a reason and a message.
//  11. No process plans by an object that is older than its own last write of it.
//  12. An object without a namespace is listed in shipper-system of its cluster before it is there, and until it is gone.
//  13. What a Release has written in a cluster is never rendered again.
//  14. A workload in place has the template of a Release only while that asks for capacity, and on no more Pods than that. What its Pods
//     use does not change while they run.
//  15. Of a StatefulSet with several Pods, one at a time is not ready.
//  16. Nothing of an Application is removed before its pre-delete hooks have succeeded, and a post-delete hook begins when nothing is left.
//  17. Once a Release is said to be complete, or to wait for a command, neither it nor its Application is written again until something
//     else happens, but for the status of the Application that follows at once: a client that reads then may update without a conflict.
//  18. Nothing of a Release is written in a cluster whose wave has not begun, and no more clusters of a wave begin to change at the same
//     time than its maxConcurrency says, or are not ready beside them than its maxFailures says.
//  19. A stale status opens no wave: the reconciler goes on to a wave only when each cluster of the one before truly had all of this
//     Release, by what its API server holds, and begins in a cluster only while no more of earlier waves lack something than may.
//
// A law that depends on the knowledge of a reconciler is judged only while no fault delays that: a reader with late watches may
// see old states, never false ones.
const (
	// mostStale is how long a reconciler may act on what it read before, without faults.
	mostStale = 2 * time.Second
	// most bounds how often one law is reported.
	most = 5
)

// laws judge changes.
type laws struct {
	world *World

	mu       sync.Mutex
	fails    bool     // of the story
	services []string // of the story
	floor    int
	offences map[int][]string
	order    []string
	restored time.Time // when the management cluster was last put back

	served     map[string]bool                 // Services that had endpoints, by host and name
	podRelease map[string]string               // by host and Pod, of Pods that are gone too
	weightless map[string]bool                 // Releases whose TrafficTarget has no weight and is ready
	seen       map[string]map[string]time.Time // blocks, by process
	targets    map[string][]moved              // positions of each Release since it was created
	raised     map[string]bool                 // steps that the reconciler requested since the last move by a person
	installed  map[string]bool                 // charts that were, by the UID of the InstallationTarget and cluster
	rendered   map[string]string               // digests of what Releases have written, by host, object and target
	own        map[*Client]map[string]ownWrite // by path
	capacity   map[string][]asked              // what CapacityTargets have asked for, by Release and cluster
	effects    map[*sent]bool                  // requests under way that have changed something
	reported   map[string]*reported            // by Application
	touched    time.Time                       // when a user last wrote to an application cluster
	truths     map[string]truth                // by the UID of a Release and cluster
}

// moved is a position of a Release, from a time on.
type moved struct {
	at time.Time
	to position.Position
}

func newLaws(w *World) *laws {
	return &laws{
		world: w, offences: map[int][]string{}, served: map[string]bool{}, podRelease: map[string]string{}, weightless: map[string]bool{},
		seen: map[string]map[string]time.Time{}, targets: map[string][]moved{}, raised: map[string]bool{},
		installed: map[string]bool{}, rendered: map[string]string{}, own: map[*Client]map[string]ownWrite{}, effects: map[*sent]bool{},
		capacity: map[string][]asked{}, reported: map[string]*reported{}, truths: map[string]truth{},
	}
}

// story begins to judge a story.
func (l *laws) story(s Story) { l.fails, l.services = s.Fails, s.services() }

// hold begins to require that so many Pods serve in each cluster; 0 ends it.
func (l *laws) hold(floor int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.floor = floor
	for name := range l.world.Clusters {
		l.serving(l.world.hosts[name], "the beginning")
	}
}

// judge judges a change.
func (l *laws) judge(c change) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.leads(c)
	l.owns(c)
	l.effects[c.by] = c.by != nil
	l.reports(c)
	l.observes(c)
	if c.host != management {
		l.clusterChange(c)
		return
	}
	l.ordered(c)
	l.asks(c)
	l.begins(c)
	l.follows(c)
	switch c.kind {
	case kindOf("releases"):
		l.releaseChange(c)
	case kindOf("capacitytargets"), kindOf("traffictargets"):
		l.targetChange(c)
	}
	l.explains(c)
}

// broken records that a law was broken, from outside of a change.
func (l *laws) broken(law int, format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.offend(law, format, args...)
}

// restoredFor is how long statuses of the copy may be taken for the state after a restore, since a cluster may be away: laws about what
// management says rest meanwhile.
const restoredFor = 4 * time.Minute

// restores notes that the management cluster is put back.
func (l *laws) restores() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.restored, l.weightless = time.Now(), map[string]bool{}
}

// isRestored reports whether that was a moment ago.
func (l *laws) isRestored() bool { return !l.restored.IsZero() && time.Since(l.restored) < restoredFor }

// offend is broken with the mutex held.
func (l *laws) offend(law int, format string, args ...any) {
	if l.isRestored() && (law == 4 || law == 9) {
		return
	}
	what := fmt.Sprintf(format, args...)
	l.world.history.Note(lawLine, "%d: %s", law, what)
	if l.offences[law] = append(l.offences[law], what); len(l.offences[law]) <= most {
		l.order = append(l.order, fmt.Sprintf("%s law %d: %s", time.Since(l.world.history.began).Round(time.Millisecond), law, what))
	}
}

// all are the offences, in order.
func (l *laws) all() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := append([]string(nil), l.order...)
	for law, list := range l.offences {
		if len(list) > most {
			out = append(out, fmt.Sprintf("law %d: and %d times more", law, len(list)-most))
		}
	}
	return out
}

// refused is a write that a webhook has refused. One of the reconciler that is invalid, and not merely blocked, loses what was admitted.
func (l *laws) refused(r *memory.Review, response *admissionv1.AdmissionResponse) {
	l.persists(r, response)
	s := sentBy(r.Request.Context())
	if s == nil || !isReconciler(s.process()) || response.Result == nil || response.Result.Code != http.StatusUnprocessableEntity {
		return
	}
	l.broken(7, "the webhook refuses a write of the reconciler: %s %s %s: %s", r.Operation, r.Kind.Resource, r.Name, response.Result.Message)
}

// leads is law 5.
func (l *laws) leads(c change) {
	if c.host == management && c.kind == "coordination.k8s.io/leases" && c.any().GetName() == process.LeaseName {
		holder, _, _ := unstructured.NestedString(c.any().Object, "spec", "holderIdentity") // a string, or absent
		n := l.world.Network
		n.mu.Lock()
		n.leader = holder
		n.mu.Unlock()
		return
	}
	if l.world.plan.Replicas < 2 || !isReconciler(c.by.process()) || strings.HasPrefix(c.kind, "coordination.k8s.io/") ||
		strings.HasPrefix(c.kind, "events.k8s.io/") {
		return
	}
	if c.by.held != c.by.process() {
		l.offend(5, "%s writes %s %s in %s while %q holds the Lease", c.by.process(), c.kind, c.any().GetName(), c.host, c.by.held)
	}
}

// owns is law 6.
func (l *laws) owns(c change) {
	o := c.any()
	switch {
	case strings.HasPrefix(o.GetName(), foreignName) && isReconciler(c.by.process()):
		l.offend(6, "the reconciler writes %s %s in %s", c.kind, o.GetName(), c.host)
	case strings.HasPrefix(o.GetName(), foreignName) && c.kind != endpoints && c.object == nil && c.by.process() != userName:
		l.offend(6, "%s %s is gone from %s", c.kind, o.GetName(), c.host)
	case c.host != management && isReconciler(c.by.process()) && c.old != nil && !ours(c) && !evicts(c):
		l.offend(6, "the reconciler writes %s %s in %s, which is not Shipper's", c.kind, o.GetName(), c.host)
	}
}
