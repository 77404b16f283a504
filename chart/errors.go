// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"cmp"
	"errors"
	"fmt"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// Sentinels that an *Error wraps. Ask with errors.Is.
var (
	// ErrNoMatch means that the repository answers, but has no such chart or no version that satisfies the constraint.
	// The message lists the nearest versions. Refuse; the user has to choose another.
	ErrNoMatch = errors.New("no version matches")
	// ErrNoChart is the ErrNoMatch of a repository that has no chart of the name at all.
	ErrNoChart = fmt.Errorf("no such chart: %w", ErrNoMatch)
	// ErrUnreachable means that the repository does not answer and that nothing is known of it. Try again later.
	ErrUnreachable = errors.New("repository cannot be reached")
	// ErrNotRepository means that something answers under the URL, but that it is not a chart repository: an error
	// status such as 404, a page of HTML, a file that is no index, or a URL that is not http or https. Refuse.
	ErrNotRepository = errors.New("not a chart repository")
	// ErrNotAllowed means that the Policy of Options does not let this be fetched. Refuse.
	ErrNotAllowed = errors.New("not allowed")
	// ErrCredentials means that the Secret that a chart names is not there, may not be read, or has nothing of use. Refuse.
	ErrCredentials = errors.New("no credentials")
	// ErrBadConstraint means that the version asked for is neither a version nor a constraint. Refuse.
	ErrBadConstraint = errors.New("not a version constraint")
	// ErrDigest means that the bytes fetched are not those that were pinned. Do not install.
	ErrDigest = errors.New("digest differs")
	// ErrKeys means that the Secret whose keys are to verify a chart is not there, may not be read, or has no keys. Refuse.
	ErrKeys = errors.New("no keys")
	// ErrProvenance means that an archive has no provenance, or one that does not say of it what is demanded. Do not install.
	ErrProvenance = errors.New("not verified")
	// ErrNotKept means that an archive is not where LoadKept was told to look.
	ErrNotKept = errors.New("not kept")
)

// Error is what every function of this package returns when it fails, other than by the caller's ctx.
type Error struct {
	// Reason is ChartFetchFailure, ChartNotVerified, BrokenChartSpec, WrongChartDeployments or ChartError of v1alpha1: the reason of the
	// condition that tells the user.
	Reason string
	// Message says in whole words what is wrong and, where it can, what would change it. It holds no credentials.
	Message string
	// Retry is true when the same call may succeed later with nothing changed by the user.
	Retry bool
	// Cause is a sentinel of this package or the error met underneath; may be nil.
	Cause error
	// open is what of Message can be told where values are secret; empty for nothing.
	open string
}

// Error returns the message.
func (e *Error) Error() string { return e.Message }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Cause }

// openly notes what of the message says nothing of values.
func (e *Error) openly(format string, args ...any) *Error {
	e.open = fmt.Sprintf(format, args...)
	return e
}

// Withheld is an error of rendering with secret values, without what may quote them: templates, schemas and the objects that they
// render to are free to. Other errors are as they are.
func Withheld(err error) error {
	told, ok := errors.AsType[*Error](err)
	if !ok || told.Reason != shipper.ChartError && told.Reason != shipper.WrongChartDeployments {
		return err
	}
	message := cmp.Or(told.open, "the chart cannot be rendered with these values") + Unsaid
	return &Error{Reason: told.Reason, Retry: told.Retry, Message: message}
}

// Unsaid ends messages of which something was left out.
const Unsaid = "; what else is known may tell what is in a Secret, and is left out: who may read that sees it by `shipperctl chart render`"

// chartError says that the chart breaks a rule or does not render; only another chart or other values change it.
func chartError(format string, args ...any) *Error {
	return &Error{Reason: shipper.ChartError, Message: fmt.Sprintf(format, args...)}
}

// brokenSpec says that what is named is not a chart that can be used.
func brokenSpec(cause error, format string, args ...any) *Error {
	return &Error{Reason: shipper.BrokenChartSpec, Message: fmt.Sprintf(format, args...), Cause: cause}
}

// fetchFailure says that a download failed; it is tried again.
func fetchFailure(cause error, format string, args ...any) *Error {
	return &Error{Reason: shipper.ChartFetchFailure, Message: fmt.Sprintf(format, args...), Retry: true, Cause: cause}
}

// notVerified says that a chart does not have the signature that is demanded. It is looked for again: nobody here is told when
// one is published, or when a Secret has other keys.
func notVerified(cause error, format string, args ...any) *Error {
	return &Error{Reason: shipper.ChartNotVerified, Message: fmt.Sprintf(format, args...), Retry: true, Cause: cause}
}

// wrongDeployments says that the chart does not have the one Deployment it must have.
func wrongDeployments(format string, args ...any) *Error {
	return &Error{Reason: shipper.WrongChartDeployments, Message: fmt.Sprintf(format, args...)}
}
