// SPDX-License-Identifier: Apache-2.0

package report

import (
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// How long a status that only says how far something is may lag behind: the first time for a moment, then, as long as nothing else
// turns, for as long as who looks at it is ready to wait, as is what others tell too from the beginning. That one of several clusters is
// there is told soon.
const (
	soon    = time.Second
	pause   = 2 * time.Second
	longest = 4 * time.Second
)

// When many statuses of a kind are held back at the same time, ten of them are written in a second, and each lags longer, but not for ever:
// a burst would be busy with telling how far it is. What a cluster may wait for that waits for no other does not lag longer.
const (
	each = time.Second / 10
	ever = 15 * time.Second
)

// forgetful is after how long it is forgotten that an object's status was held back, unless it was looked at since; its end was not
// told. It is longer than anybody who holds back waits for a worker to look again: what is forgotten before would be held back again,
// time and again.
const forgetful = time.Hour

// Status is what a target's status says that others wait for.
type Status struct {
	// Generation is the one observed.
	Generation int64
	// Conditions of the target, and those of its clusters.
	Conditions []shipper.Condition
	Clusters   []Cluster
	// Found is true while a cluster is to be left as it was found, and something is there: that decides then what is asked for.
	Found bool
	// Ample is true where all that is to be there is, and only what is too much has to go yet: that turns nothing, nobody lacks anything.
	Ample bool
}

// Throttle holds back statuses that say nothing new but how far something is. With each Pod that starts, such a status is another
// one; all of them would have to be written, told to everyone who watches, and said once more by the Release. It is safe for
// concurrent use.
//
// What is held back lags by two seconds, and then by four, or longer where many are, and what is at rest is exact, because whoever holds
// back looks again when that time is over.
type Throttle struct {
	mu sync.Mutex
	// held is what is under way, until something turns.
	held map[types.NamespacedName]held
	// lags is how many of these were held back when they were counted.
	lags    int
	counted time.Time
}

// held is a status that says how far something is.
type held struct {
	// since is when it first was another one than that written; zero when that is as it should be.
	since time.Time
	// pause is how long it may lag.
	pause time.Duration
	// at is when it was looked at last.
	at time.Time
}

// NewThrottle returns a Pace for objects of one kind.
func NewThrottle() *Throttle {
	return &Throttle{held: map[types.NamespacedName]held{}}
}

// Urgency is how soon what is new in a status has to be told.
type Urgency int

const (
	// Now is what somebody may wait for.
	Now Urgency = iota
	// Soon is what few wait for, and not often: it is told within a second.
	Soon
	// Partly is that some of what was asked for last is there, as long as it has not been told that it begins. Few wait for that too: it is
	// told as Later is, however many are under way.
	Partly
	// Later is how far something is.
	Later
	// Last is what others tell too, and sooner: how far the objects are that somebody scales.
	Last
)

// DelayFor is how long is, whose news are so urgent, is not to be written yet in place of was, which is as the cache shows it. It is 0 when
// it is to be written now, or nothing is to be written.
func (p *Throttle) DelayFor(haste Urgency, was, is client.Object, at time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	key := client.ObjectKeyFromObject(is)
	h, known := p.held[key]
	if equality.Semantic.DeepEqual(was, is) {
		if known {
			p.held[key] = held{pause: h.pause, at: at}
		}
		return 0
	}
	if haste == Now {
		delete(p.held, key)
		return 0
	}
	if !known {
		h.pause = pause
		// Of what is gone nobody asks again.
		maps.DeleteFunc(p.held, func(_ types.NamespacedName, h held) bool { return at.Sub(h.at) > forgetful })
	}
	switch haste {
	case Soon:
		h.pause = soon
	case Last:
		h.pause = longest
	}
	if h.at = at; h.since.IsZero() {
		h.since = at
	}
	p.held[key] = h
	lag := h.pause
	if haste >= Later {
		lag = max(lag, p.crowd(at))
	}
	if left := lag - at.Sub(h.since); left > 0 {
		return left
	}
	p.held[key] = held{pause: min(2*h.pause, longest), at: at}
	return 0
}

// crowd is how long a status lags because of others. Whoever was not looked at for long is gone, or waits for a worker.
func (p *Throttle) crowd(at time.Time) time.Duration {
	if at.Sub(p.counted) >= time.Second {
		p.lags, p.counted = 0, at
		for _, h := range p.held {
			if !h.since.IsZero() && at.Sub(h.at) <= 2*ever {
				p.lags++
			}
		}
	}
	return min(time.Duration(p.lags)*each, ever)
}

// Forget an object that is gone.
func (p *Throttle) Forget(key types.NamespacedName) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.held, key)
}

// Sooner is the shorter of two times, of which 0 is never.
func Sooner(a, b time.Duration) time.Duration {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

// UrgencyOf is how soon it has to be told what is said after. That one cluster is there while others are on their way turns nothing, since
// most wait for all, but is told soon, or at least not later because of others.
func UrgencyOf(before, after Status) Urgency {
	switch {
	case turns(before, after):
		return Now
	case oneArrives(before, after):
		return Soon
	case oneHasIt(before, after):
		return Partly
	}
	return Later
}

// turns reports whether somebody may wait for what is said after: a condition got another status or, but for those that every
// Pod that starts goes through, another reason; clusters came or went; what was asked for last is there.
//
// That something is under way since something else was asked for turns nothing: as long as the status speaks of an earlier
// generation, it is known not to be there.
func turns(before, after Status) bool {
	if !after.Found && begins(before, after) {
		return false
	}
	asked := after.Ample || before.Generation != after.Generation
	if after.Found || len(before.Clusters) != len(after.Clusters) ||
		before.Generation != after.Generation && shipper.ConditionTrue(after.Conditions, shipper.TargetReady) {
		return true
	}
	// Where nobody else serves, a cluster waits for no other (apis/rules/strategy), and never for one that does not come.
	all := !slices.ContainsFunc(after.Clusters, func(c Cluster) bool {
		ready := shipper.FindCondition(c.Conditions, shipper.TargetReady)
		return ready != nil && ready.Status == corev1.ConditionFalse && onTheWay(ready.Reason)
	})
	if anyTurns(before.Conditions, after.Conditions, asked, all) {
		return true
	}
	for i, cluster := range after.Clusters {
		if was := before.Clusters[i]; was.Name != cluster.Name || anyTurns(was.Conditions, cluster.Conditions, asked, all) {
			return true
		}
	}
	return false
}

// begins reports whether nothing was said before, and what is said now is that nothing is there yet, or not in all clusters: that is so of
// every target when it is made, for as long as it takes to install the Release.
func begins(before, after Status) bool {
	return len(before.Clusters) == 0 && len(after.Clusters) > 0 && !shipper.ConditionTrue(after.Conditions, shipper.TargetReady) &&
		!slices.ContainsFunc(after.Clusters, func(c Cluster) bool {
			ready := shipper.FindCondition(c.Conditions, shipper.TargetReady)
			return ready == nil || ready.Status == corev1.ConditionUnknown ||
				ready.Status == corev1.ConditionFalse && !onTheWay(ready.Reason) && ready.Reason != shipper.MissingDeployment
		})
}

func anyTurns(before, after []shipper.Condition, asked, all bool) bool {
	if len(before) != len(after) {
		return true
	}
	for _, c := range after {
		was := shipper.FindCondition(before, c.Type)
		if turned(was, c) && (was == nil || !proceeds(*was, c, asked) && (all || !arrives(*was, c))) {
			return true
		}
	}
	return false
}

// oneArrives reports whether what was asked for is there in one cluster, where it was on its way before.
func oneArrives(before, after Status) bool {
	return len(before.Clusters) == len(after.Clusters) && slices.ContainsFunc(after.Clusters, func(c Cluster) bool {
		i := slices.IndexFunc(before.Clusters, func(b Cluster) bool { return b.Name == c.Name })
		if i < 0 {
			return false
		}
		was := shipper.FindCondition(before.Clusters[i].Conditions, shipper.TargetReady)
		is := shipper.FindCondition(c.Conditions, shipper.TargetReady)
		return was != nil && is != nil && arrives(*was, *is)
	})
}

// oneHasIt reports whether what was asked for last is there in one cluster, and nothing was said of it before.
func oneHasIt(before, after Status) bool {
	return before.Generation != after.Generation && slices.ContainsFunc(after.Clusters, func(c Cluster) bool {
		return shipper.ConditionTrue(c.Conditions, shipper.TargetReady)
	})
}

// arrives reports whether a condition that turned is at the end of its way.
func arrives(was, is shipper.Condition) bool {
	return is.Status == corev1.ConditionTrue && was.Status == corev1.ConditionFalse && onTheWay(was.Reason)
}

// proceeds reports whether a condition that turned is only on the way to what it was to be all the time, or to what was asked for
// since, if something was, or to be rid of what is too much.
func proceeds(was, is shipper.Condition, asked bool) bool {
	under := is.Status == corev1.ConditionFalse && onTheWay(is.Reason)
	switch was.Status {
	case corev1.ConditionTrue:
		return under && asked
	case corev1.ConditionFalse:
		return under && onTheWay(was.Reason)
	}
	return false
}

// onTheWay reports whether a reason is one that Pods go through while they start or get traffic, or says of a target that its
// clusters have such reasons.
func onTheWay(reason string) bool {
	switch reason {
	case shipper.InProgress, shipper.PodsNotReady, shipper.PodsNotInEndpoints, shipper.ClustersNotReady:
		return true
	}
	return false
}
