// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// Types of container states.
const (
	stateRunning    = "Running"
	stateWaiting    = "Waiting"
	stateTerminated = "Terminated"
	stateUnknown    = "Unknown"
)

// stateKey is what container states are counted by.
type stateKey struct{ kind, reason string }

// bucket is all Pods that share one condition.
type bucket struct {
	condition corev1.PodCondition
	count     int32
	// containers by name, their states by key.
	containers map[string]map[stateKey]*shipper.ClusterCapacityReportContainerStateBreakdown
}

// podReport sums Pods up by condition, container and state. Pods come in the order of their names, so that the examples
// are the same each time.
func podReport(owner string, pods []corev1.Pod) shipper.ClusterCapacityReport {
	type conditionKey struct{ kind, status, reason string }
	buckets := map[conditionKey]*bucket{}
	for _, pod := range pods {
		for _, c := range pod.Status.Conditions {
			key := conditionKey{string(c.Type), string(c.Status), c.Reason}
			if buckets[key] == nil {
				buckets[key] = &bucket{
					condition:  c,
					containers: map[string]map[stateKey]*shipper.ClusterCapacityReportContainerStateBreakdown{},
				}
			}
			buckets[key].add(pod)
		}
	}
	out := shipper.ClusterCapacityReport{Owner: shipper.ClusterCapacityReportOwner{Name: owner}}
	for _, b := range buckets {
		out.Breakdown = append(out.Breakdown, b.breakdown())
	}
	slices.SortFunc(out.Breakdown, func(a, b shipper.ClusterCapacityReportBreakdown) int {
		return cmp.Or(cmp.Compare(a.Type, b.Type), cmp.Compare(a.Status, b.Status), cmp.Compare(a.Reason, b.Reason))
	})
	return out
}

// add counts one Pod and its containers.
func (b *bucket) add(pod corev1.Pod) {
	b.count++
	for _, c := range pod.Status.ContainerStatuses {
		key := stateOf(c.State)
		states := b.containers[c.Name]
		if states == nil {
			states = map[stateKey]*shipper.ClusterCapacityReportContainerStateBreakdown{}
			b.containers[c.Name] = states
		}
		if states[key] == nil {
			states[key] = &shipper.ClusterCapacityReportContainerStateBreakdown{
				Type: key.kind, Reason: key.reason,
				Example: shipper.ClusterCapacityReportContainerBreakdownExample{Pod: pod.Name, Message: ending(c)},
			}
		}
		states[key].Count++
	}
}

func (b *bucket) breakdown() shipper.ClusterCapacityReportBreakdown {
	out := shipper.ClusterCapacityReportBreakdown{
		Type: string(b.condition.Type), Status: string(b.condition.Status), Reason: b.condition.Reason, Count: b.count,
	}
	for _, name := range slices.Sorted(maps.Keys(b.containers)) {
		container := shipper.ClusterCapacityReportContainerBreakdown{Name: name}
		for _, state := range b.containers[name] {
			container.States = append(container.States, *state)
		}
		slices.SortFunc(container.States, func(a, b shipper.ClusterCapacityReportContainerStateBreakdown) int {
			return cmp.Or(cmp.Compare(a.Type, b.Type), cmp.Compare(a.Reason, b.Reason))
		})
		out.Containers = append(out.Containers, container)
	}
	return out
}

// stateOf is the type and reason of a state. A kubelet may leave all three out.
func stateOf(s corev1.ContainerState) stateKey {
	switch {
	case s.Running != nil:
		return stateKey{kind: stateRunning}
	case s.Waiting != nil:
		return stateKey{stateWaiting, s.Waiting.Reason}
	case s.Terminated != nil:
		return stateKey{stateTerminated, s.Terminated.Reason}
	default:
		return stateKey{kind: stateUnknown}
	}
}

// ending reports how a container ended, now or before it was last started; empty when it never did.
func ending(c corev1.ContainerStatus) string {
	ended := c.State.Terminated
	if ended == nil && c.RestartCount > 0 {
		ended = c.LastTerminationState.Terminated
	}
	switch {
	case ended == nil:
		return ""
	case ended.Message != "":
		return ended.Message
	case ended.Signal > 0:
		return fmt.Sprintf("Terminated with signal %d", ended.Signal)
	default:
		return fmt.Sprintf("Terminated with exit code %d", ended.ExitCode)
	}
}
