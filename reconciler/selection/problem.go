// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart"
	"shipper.dev/shipper/reconciler/retry"
)

// recheck is the time until the next pass if rights are missing: no event reports that they were granted.
const recheck = 2 * time.Minute

// Problem is why content is not taken. The last Release stays.
type Problem struct {
	// Reason and Message are those of the condition.
	Reason, Message string
	// action is what follows.
	action retry.Action
	cause  error
}

// Error returns the message.
func (p *Problem) Error() string { return p.Message }

// Unwrap returns the cause.
func (p *Problem) Unwrap() error { return p.cause }

// Passing reports whether the same may succeed later.
func (p *Problem) Passing() bool { return p.action > retry.Recheck }

// Recheck is the time until it is looked at again; 0 if a change does that, or if it is transient.
func (p *Problem) Recheck() time.Duration {
	if p.action == retry.Recheck {
		return recheck
	}
	return 0
}

func problemf(reason string, action retry.Action, format string, args ...any) *Problem {
	return &Problem{Reason: reason, Message: fmt.Sprintf(format, args...), action: action}
}

// ProblemOf describes an error of reading or storing content; nil for a conflict: the next pass reads what was written.
func ProblemOf(app *shipper.Application, err error) *Problem {
	if err == nil || retry.Conflict(err) {
		return nil
	}
	if known, ok := errors.AsType[*Problem](err); ok {
		return known
	}
	if broken, ok := errors.AsType[*chart.Error](err); ok { // of stored content
		p := &Problem{Reason: broken.Reason, Message: broken.Message, action: retry.Retry, cause: err}
		if apierrors.IsForbidden(err) {
			p.action = retry.Recheck
		}
		return p
	}
	return &Problem{
		Reason: shipper.SelectionNotReadable, action: retry.Retry, cause: err,
		Message: fmt.Sprintf("the resources of Application %s cannot be taken now: %s", app.Name, retry.Brief(err)),
	}
}

// errChanged is the error of a pass that reads other content than the one before.
func errChanged(app *shipper.Application) error {
	return apierrors.NewConflict(shipper.Resource("applications"), app.Name, errors.New("its content has changed since it was read"))
}
