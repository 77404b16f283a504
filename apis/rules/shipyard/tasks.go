// SPDX-License-Identifier: Apache-2.0

package shipyard

import (
	"fmt"
	"slices"
	"time"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// The tasks that Shipper does itself (K5). Other names are done by executors.
const (
	TaskApproval    = "approval"
	TaskDeployment  = "deployment"
	TaskEvaluation  = "evaluation"
	TaskEvaluate    = "evaluate"
	TaskRelease     = "release"
	TaskRollback    = "rollback"
	TaskTest        = "test"
	TaskRemediation = "remediation"
)

// Native are the tasks that this version of Shipper does.
var Native = []string{TaskApproval, TaskDeployment, TaskEvaluation, TaskEvaluate, TaskRelease, TaskRollback, TaskTest}

// IsNative reports whether Shipper does a task itself.
func IsNative(task string) bool { return slices.Contains(Native, task) }

// The values of pass and warning of an approval.
const (
	automatic = "automatic"
	manual    = "manual"
)

// Bounds and defaults of tasks.
const (
	MaxApprovals       = 10
	DefaultExpires     = 72 * time.Hour
	DefaultTaskTimeout = time.Hour
	DefaultRunTimeout  = 24 * time.Hour
)

// allowServiceAccounts is the property of the task approval that Consent.AllowServiceAccounts has.
const allowServiceAccounts = "allowServiceAccounts"

// Consent is what the task approval asks for.
type Consent struct {
	// Pass and Warning are automatic or manual, by the result of the tasks before.
	Pass, Warning string
	// Approvals is how many users have to approve.
	Approvals int
	// Expires is how long the task waits.
	Expires time.Duration
	// AllowRequester lets the user who requested the run approve.
	AllowRequester bool
	// AllowServiceAccounts lets ServiceAccounts of the run's namespace request the run, and approve.
	AllowServiceAccounts bool
}

// ConsentOf reads the properties of a task approval. Errors name the property.
func ConsentOf(properties shipper.FreeForm) (Consent, error) {
	out := Consent{Pass: manual, Warning: manual, Approvals: 1, Expires: DefaultExpires}
	for _, one := range []struct {
		name string
		to   *string
	}{{"pass", &out.Pass}, {"warning", &out.Warning}} {
		value, given := properties[one.name]
		if !given {
			continue
		}
		text, isText := value.(string)
		if !isText || text != automatic && text != manual {
			return out, fmt.Errorf("%s: %v is not automatic or manual", one.name, value)
		}
		*one.to = text
	}
	if value, given := properties["approvals"]; given {
		n, ok := whole(value)
		if !ok || n < 1 || n > MaxApprovals {
			return out, fmt.Errorf("approvals: %v is not a number from 1 to %d", value, MaxApprovals)
		}
		out.Approvals = n
	}
	if value, given := properties["expires"]; given {
		text, _ := value.(string)
		expires, err := time.ParseDuration(text)
		if err != nil || expires <= 0 {
			return out, fmt.Errorf("expires: %v is not a duration such as 72h", value)
		}
		out.Expires = expires
	}
	for _, one := range []struct {
		name string
		to   *bool
	}{{"allowRequester", &out.AllowRequester}, {allowServiceAccounts, &out.AllowServiceAccounts}} {
		value, given := properties[one.name]
		if !given {
			continue
		}
		allow, isBool := value.(bool)
		if !isBool {
			return out, fmt.Errorf("%s: %v is not true or false", one.name, value)
		}
		*one.to = allow
	}
	return out, nil
}

// whole is a JSON number without a fraction.
func whole(value any) (int, bool) {
	switch n := value.(type) {
	case int64:
		return int(n), true
	case int:
		return n, true
	case float64:
		return int(n), n == float64(int(n))
	}
	return 0, false
}
