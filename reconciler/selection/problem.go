// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"shipper.dev/shipper/apis/rules/block"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart"
	"shipper.dev/shipper/reconciler/retry"
)

// recheck is the time until the next pass if rights are missing: no event reports that they were granted.
const recheck = 2 * time.Minute

// problem is why content is not taken. The last Release stays.
type problem struct {
	// reason and message are those of the condition.
	reason, message string
	// action is what follows.
	action retry.Action
	cause  error
}

// Error returns the message.
func (p *problem) Error() string { return p.message }

// Unwrap returns the cause.
func (p *problem) Unwrap() error { return p.cause }

func problemf(reason string, action retry.Action, format string, args ...any) *problem {
	return &problem{reason: reason, message: fmt.Sprintf(format, args...), action: action}
}

// problemOf describes an error of a pass. A concurrent write is none: the next pass reads what was written.
func problemOf(app *shipper.Application, err error) *problem {
	if err == nil || retry.Conflict(err) || passing(err) {
		return nil
	}
	if known, ok := errors.AsType[*problem](err); ok {
		return known
	}
	if broken, ok := errors.AsType[*chart.Error](err); ok { // of stored content
		p := &problem{reason: broken.Reason, message: broken.Message, action: retry.Retry, cause: err}
		if apierrors.IsForbidden(err) {
			p.action = retry.Recheck
		}
		return p
	}
	return &problem{
		reason: shipper.SelectionNotReadable, action: retry.Retry, cause: err,
		message: fmt.Sprintf("the resources of Application %s cannot be taken now: %s", app.Name, retry.Brief(err)),
	}
}

// refused describes an error of the patch that pins content. It is err itself if that is none of the webhook's refusals. inCache is true if
// the cache has the block that the webhook names: then the end of the block makes the next pass.
func refused(app *shipper.Application, err error, inCache bool) error {
	switch {
	case err == nil, apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return err
	case block.RefusedBy(err) != "":
		p := &problem{reason: shipper.RolloutsBlocked, message: retry.Blocked(err), action: retry.Requeue, cause: err}
		if inCache {
			p.action = retry.Wait
		}
		return p
	case apierrors.IsForbidden(err):
		return &problem{
			reason: shipper.SelectionNotAllowed, action: retry.Recheck, cause: err,
			message: fmt.Sprintf("%s chose the resources, and their content as it is now is refused; what is placed stays. Grant the right, "+
				"or apply the Application as a user who has it: %s", chooser(app), retry.Brief(err)),
		}
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		return &problem{
			reason: shipper.SelectionInvalid, action: retry.Wait, cause: err,
			message: fmt.Sprintf("the content of resources is refused; what is placed stays: %s", retry.Brief(err)),
		}
	}
	return err
}
