// SPDX-License-Identifier: Apache-2.0

package installation

import (
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// Kinds that end.
var (
	jobKind, podKind = batchv1.SchemeGroupVersion.WithKind("Job"), corev1.SchemeGroupVersion.WithKind("Pod")
	jobs, pods       = jobKind.GroupKind(), podKind.GroupKind()
)

// ends reports whether objects of a kind do something and end. As with Helm, others are as they should once they are there, and
// stay when their Release goes: a Secret that only the first Release makes is needed by all.
func ends(entry item) bool {
	kind := entry.gvk().GroupKind()
	return kind == jobs || kind == pods
}

// ended reports whether a hook has done its work, or what went wrong with it.
func ended(live *unstructured.Unstructured) (done bool, wrong string) {
	switch live.GroupVersionKind().GroupKind() {
	case jobs:
		return endedJob(live)
	case pods:
		return endedPod(live)
	default:
		return true, ""
	}
}

func endedJob(live *unstructured.Unstructured) (done bool, wrong string) {
	var job batchv1.Job
	if !into(live, &job) {
		return false, ""
	}
	for _, c := range job.Status.Conditions {
		if c.Status != corev1.ConditionTrue {
			continue
		}
		switch c.Type {
		case batchv1.JobComplete:
			return true, ""
		case batchv1.JobFailed:
			return false, because(c.Reason, c.Message)
		}
	}
	return false, ""
}

func endedPod(live *unstructured.Unstructured) (done bool, wrong string) {
	var pod corev1.Pod
	if !into(live, &pod) {
		return false, ""
	}
	switch pod.Status.Phase {
	case corev1.PodSucceeded:
		return true, ""
	case corev1.PodFailed:
		for _, c := range pod.Status.ContainerStatuses {
			if t := c.State.Terminated; t != nil && t.ExitCode != 0 && pod.Status.Reason == "" {
				return false, because("container "+c.Name, t.Reason+" "+t.Message)
			}
		}
		return false, because(pod.Status.Reason, pod.Status.Message)
	default:
		return false, ""
	}
}

// into reads what an API server sent as its kind.
func into(live *unstructured.Unstructured, out any) bool {
	return runtime.DefaultUnstructuredConverter.FromUnstructured(live.Object, out) == nil
}

// because is a reason and a message, of which either may be missing.
func because(reason, message string) string {
	switch {
	case reason == "" && message == "":
		return "it says nothing more"
	case reason == "":
		return message
	case message == "":
		return reason
	default:
		return reason + ": " + message
	}
}
