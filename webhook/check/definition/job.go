// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/json"

	rules "shipper.dev/shipper/apis/rules/check"
)

// substitutedJob returns the errors of a Job. What its Pods may do is judged by the admission of application clusters.
func substitutedJob(raw []byte, path *field.Path, values map[string]string) field.ErrorList {
	size := fmt.Sprintf("(%d bytes)", len(raw))
	if len(raw) > rules.MaxJob {
		return field.ErrorList{field.Invalid(path, size, fmt.Sprintf("a Job may have %d bytes as JSON: each run keeps a copy", rules.MaxJob))}
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
	return rules.ValidateJob(&job, path)
}
