// SPDX-License-Identifier: Apache-2.0

package shipyard

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"shipper.dev/shipper/apis/rules/check"
	"shipper.dev/shipper/apis/rules/placement"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// properties are those that each task of Shipper's own reads. Keptn's teststrategy and timeframe have no effect, and are in its files.
var properties = map[string][]string{
	TaskApproval:   {"pass", "warning", "approvals", "expires", "allowRequester", allowServiceAccounts},
	TaskDeployment: {"deploymentstrategy", "to", "values"},
	TaskEvaluation: {"pass", "warning", "checks", "timeframe"},
	TaskEvaluate:   {"pass", "warning", "checks", "timeframe"},
	TaskRelease:    {"to"},
	TaskRollback:   {"strategy"},
	TaskTest:       {"job", "teststrategy"},
}

// validateJob refuses a Job of a task test that could not be run. One with arguments ({{…}}) is decoded when they have values.
func validateJob(task *shipper.Task, path *field.Path) field.ErrorList {
	given, has := task.Properties["job"]
	if !has {
		return nil
	}
	raw, err := json.Marshal(given)
	of, is := given.(map[string]any)
	switch {
	case err != nil || !is:
		return field.ErrorList{field.Invalid(path, fmt.Sprintf("%T", given), "is no spec of a batch/v1 Job: write an object with template")}
	case strings.Contains(string(raw), "{{"):
		return nil
	}
	var job batchv1.JobSpec
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(of, &job, true); err != nil {
		return field.ErrorList{field.Invalid(path, fmt.Sprintf("(%d bytes)", len(raw)), "is no spec of a batch/v1 Job: "+err.Error())}
	}
	return check.ValidateJob(&job, path)
}

// maxUnknown bounds the unknown properties of a task that a refusal names.
const maxUnknown = 5

// unknownProperties refuses those that a task of Shipper's own does not read: a misspelt approvals would leave one approval, and a misspelt
// checks none. Other tasks are for executors, which have properties of their own.
func unknownProperties(task *shipper.Task, path *field.Path) field.ErrorList {
	known, own := properties[task.Name]
	if !own {
		return nil
	}
	var errs field.ErrorList
	for _, name := range slices.Sorted(maps.Keys(task.Properties)) {
		if slices.Contains(known, name) {
			continue
		}
		if len(errs) == maxUnknown {
			break
		}
		why := fmt.Sprintf("task %s has no such property; it has %s", task.Name, strings.Join(known, ", "))
		if nearest := placement.Nearest(name, slices.Values(known)); nearest != "" {
			why = fmt.Sprintf("task %s has no such property; did you mean %q?", task.Name, nearest)
		}
		errs = append(errs, field.Invalid(path.Key(name), name, why))
	}
	return errs
}
