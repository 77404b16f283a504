// SPDX-License-Identifier: Apache-2.0

package check

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/json"

	rules "shipper.dev/shipper/apis/rules/check"
)

// maxJob bounds a Job, in bytes: a CheckTarget has up to 20 copies, and etcd takes objects of 1.5 MiB.
const maxJob = 32 << 10

// substitutedJob returns the errors of a Job. What its Pods may do is judged by the admission of application clusters.
func substitutedJob(raw []byte, path *field.Path, values map[string]string) field.ErrorList {
	size := fmt.Sprintf("(%d bytes)", len(raw))
	if len(raw) > maxJob {
		return field.ErrorList{field.Invalid(path, size, fmt.Sprintf("a Job may have %d bytes as JSON: each run keeps a copy", maxJob))}
	}
	text, err := rules.SubstituteJSON(raw, values)
	if err != nil {
		return field.ErrorList{field.Invalid(path, size, err.Error())}
	}
	var job batchv1.JobSpec
	unknown, err := json.UnmarshalStrict(text, &job)
	if err != nil {
		return field.ErrorList{field.Invalid(path, size, "is no spec of a batch/v1 Job: "+err.Error())}
	}
	if len(unknown) > 0 {
		return field.ErrorList{field.Invalid(path, size, "is no spec of a batch/v1 Job: "+unknown[0].Error())}
	}
	return validateJob(&job, path)
}

func validateJob(job *batchv1.JobSpec, path *field.Path) field.ErrorList {
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
