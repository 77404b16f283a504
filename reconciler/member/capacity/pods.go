// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// unhealthy are the Pods with any condition that is False.
func unhealthy(pods []corev1.Pod) []corev1.Pod {
	var out []corev1.Pod
	for _, pod := range pods {
		if _, is := failedCondition(pod); is {
			out = append(out, pod)
		}
	}
	return out
}

// failedCondition is the condition that keeps a Pod from being ready. Not being scheduled is the cause of all else,
// not being ready says most of what is left.
func failedCondition(pod corev1.Pod) (corev1.PodCondition, bool) {
	var found []corev1.PodCondition
	for _, c := range pod.Status.Conditions {
		if c.Status == corev1.ConditionFalse {
			found = append(found, c)
		}
	}
	for _, preferred := range []corev1.PodConditionType{corev1.PodScheduled, corev1.PodReady} {
		for _, c := range found {
			if c.Type == preferred {
				return c, true
			}
		}
	}
	if len(found) > 0 {
		return found[0], true
	}
	return corev1.PodCondition{}, false
}

// unhealthyPods describes the first sad Pods.
func unhealthyPods(pods []corev1.Pod) []shipper.PodStatus {
	var out []shipper.PodStatus
	for _, pod := range unhealthy(pods) {
		if len(out) == shipper.MaxSadPods {
			break
		}
		condition, _ := failedCondition(pod)
		out = append(out, shipper.PodStatus{
			Name: pod.Name, Phase: pod.Status.Phase, Condition: condition,
			InitContainers: pod.Status.InitContainerStatuses, Containers: pod.Status.ContainerStatuses,
		})
	}
	return out
}

// summarize counts the containers of sad Pods by name and lists why they wait or ended: `2x"app" containers with
// [ErrImagePull ImagePullBackOff]; …`. Where no container says anything, the Pods' conditions do.
func summarize(pods []corev1.Pod) string {
	containers, conditions := map[string][]string{}, map[string][]string{}
	for _, pod := range pods {
		for _, list := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
			for _, c := range list {
				if reason := unhappiness(c); reason != "" {
					containers[c.Name] = append(containers[c.Name], reason)
				}
			}
		}
		if c, _ := failedCondition(pod); c.Type != "" {
			conditions[string(c.Type)] = append(conditions[string(c.Type)], cmp.Or(c.Reason, "no reason given"))
		}
	}
	if len(containers) > 0 {
		return tally(containers, `%dx%q containers with %v`)
	}
	return tally(conditions, `%d pods are not %s: %v`)
}

// unhappiness is the reason a container waits or ended; empty when it runs.
func unhappiness(c corev1.ContainerStatus) string {
	switch {
	case c.State.Waiting != nil:
		return c.State.Waiting.Reason
	case c.State.Terminated != nil:
		return c.State.Terminated.Reason
	default:
		return ""
	}
}

// tally prints each key with the number and the sorted set of its reasons.
func tally(reasons map[string][]string, format string) string {
	var out []string
	for _, key := range slices.Sorted(maps.Keys(reasons)) {
		list := reasons[key]
		count := len(list)
		slices.Sort(list)
		out = append(out, fmt.Sprintf(format, count, key, slices.Compact(list)))
	}
	return strings.Join(out, "; ")
}
