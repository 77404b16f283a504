// SPDX-License-Identifier: Apache-2.0

package report

import (
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// pause is how long a status may lag in which only numbers changed.
const pause = 2 * time.Second

// Throttle delays the writing of statuses in which only numbers changed: each Pod that starts makes another one. It is safe for
// concurrent use.
type Throttle struct {
	mu    sync.Mutex
	since map[types.NamespacedName]time.Time // when the status first differed from the written one
}

// NewThrottle returns a Throttle for objects of one kind.
func NewThrottle() *Throttle { return &Throttle{since: map[types.NamespacedName]time.Time{}} }

// DelayFor returns how long is must not be written yet in place of was, which is as the cache shows it and differs in the status alone. It
// is 0 when it is to be written now, as when something turned, or nothing is to be written. The caller looks again when the time is over.
func (t *Throttle) DelayFor(turned bool, was, is client.Object, at time.Time) time.Duration {
	key, same := client.ObjectKeyFromObject(is), turned || sameStatus(was, is)
	t.mu.Lock()
	defer t.mu.Unlock()
	since, waits := t.since[key]
	switch {
	case same || waits && at.Sub(since) >= pause:
		delete(t.since, key)
		return 0
	case waits:
		return pause - at.Sub(since)
	}
	maps.DeleteFunc(t.since, func(_ types.NamespacedName, since time.Time) bool { return at.Sub(since) > time.Hour }) // objects that are gone
	t.since[key] = at
	return pause
}

// Sooner is the shorter of two times, of which 0 is never.
func Sooner(a, b time.Duration) time.Duration {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

// Status is what the status of a target says that others wait for.
type Status struct {
	// Generation is the observed one.
	Generation int64
	// Conditions of the target, and those of its clusters.
	Conditions []shipper.Condition
	Clusters   []Cluster
}

// Turned reports whether others may wait for what is new: clusters came or went, or a condition has another status or reason. The
// reasons of Pods that start count as one. Two changes may lag: that what a new generation wants begins, which its number
// says, and that one cluster is ready while others are on their way.
func Turned(before, after Status) bool {
	first, asked := len(before.Clusters) == 0, before.Generation != after.Generation
	starts := func(c *shipper.Condition) bool {
		return c == nil || c.Status == corev1.ConditionFalse && (starting(c.Reason) || first && c.Reason == shipper.MissingDeployment)
	}
	waits := slices.ContainsFunc(after.Clusters, func(c Cluster) bool {
		return starts(shipper.FindCondition(c.Conditions, shipper.TargetReady))
	})
	turned := func(before, after []shipper.Condition) bool {
		return len(before) > len(after) || slices.ContainsFunc(after, func(is shipper.Condition) bool {
			was := shipper.FindCondition(before, is.Type)
			begins, arrives := starts(&is) && (asked || starts(was)), is.Status == corev1.ConditionTrue && waits && starts(was)
			return turned(was, is) && !begins && !arrives
		})
	}
	if asked && !waits || !first && len(before.Clusters) != len(after.Clusters) || turned(before.Conditions, after.Conditions) {
		return true
	}
	return slices.ContainsFunc(after.Clusters, func(is Cluster) bool {
		i := slices.IndexFunc(before.Clusters, func(was Cluster) bool { return was.Name == is.Name })
		return i < 0 && (!first || turned(nil, is.Conditions)) || i >= 0 && turned(before.Clusters[i].Conditions, is.Conditions)
	})
}

// starting reports whether a reason is one of Pods that start or get traffic, or of a target whose clusters have such reasons.
func starting(reason string) bool {
	return slices.Contains([]string{shipper.InProgress, shipper.PodsNotReady, shipper.PodsNotInEndpoints, shipper.ClustersNotReady}, reason)
}
