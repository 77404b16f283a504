// SPDX-License-Identifier: Apache-2.0

package check

import (
	"maps"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// MaxJob bounds a Job, in bytes: a CheckTarget has up to 20 copies, and etcd takes objects of 1.5 MiB.
const MaxJob = 32 << 10

// ValidateJob returns the errors of a Job that a Check or a task test runs. What its Pods may do is judged by the admission of application
// clusters.
func ValidateJob(job *batchv1.JobSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	pod := path.Child("template", "spec")
	if len(job.Template.Spec.Containers) == 0 {
		errs = append(errs, field.Required(pod.Child("containers"), "say what the Job runs"))
	}
	switch job.Template.Spec.RestartPolicy {
	case "", corev1.RestartPolicyNever, corev1.RestartPolicyOnFailure:
	default:
		errs = append(errs, field.NotSupported(pod.Child("restartPolicy"), job.Template.Spec.RestartPolicy,
			[]corev1.RestartPolicy{corev1.RestartPolicyNever, corev1.RestartPolicyOnFailure}))
	}
	if job.Selector != nil {
		errs = append(errs, field.Forbidden(path.Child("selector"), "is written by Kubernetes: leave it out"))
	}
	if job.ManualSelector != nil {
		errs = append(errs, field.Forbidden(path.Child("manualSelector"), "Kubernetes writes the selector: leave manualSelector out"))
	}
	labels := path.Child("template", "metadata", "labels")
	for _, key := range slices.Sorted(maps.Keys(job.Template.Labels)) {
		if strings.HasPrefix(key, "shipper-") {
			errs = append(errs, field.Forbidden(labels.Key(key), "labels of Shipper select the Pods of Releases, and Services: leave it out"))
		}
	}
	return errs
}
