// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"cmp"
	"errors"
	"fmt"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// Sentinels that an *Error wraps. Use errors.Is.
var (
	// ErrNoMatch means that the repository has no such chart or no version that satisfies the constraint. The message lists the
	// nearest versions. Refuse; the user has to choose another.
	ErrNoMatch = errors.New("no version matches")
	// ErrNoChart is the ErrNoMatch of a repository that has no chart of the name at all.
	ErrNoChart = fmt.Errorf("no such chart: %w", ErrNoMatch)
	// ErrUnreachable means that the repository does not answer and that no index is cached. Retry later.
	ErrUnreachable = errors.New("repository cannot be reached")
	// ErrNotRepository means that the URL is not a chart repository: the answer is an error status such as 404, a page of HTML
	// or another file, or the scheme is not http or https. Refuse.
	ErrNotRepository = errors.New("not a chart repository")
	// ErrNotAllowed means that a Policy of package outward forbids the URL. Refuse.
	ErrNotAllowed = errors.New("not allowed")
	// ErrCredentials means that the Secret that a chart names does not exist, may not be read, or has no usable credentials.
	// Refuse.
	ErrCredentials = errors.New("no credentials")
	// ErrBadConstraint means that the version asked for is neither a version nor a constraint. Refuse.
	ErrBadConstraint = errors.New("not a version constraint")
	// ErrDigest means that the fetched bytes do not have the pinned digest. Do not install.
	ErrDigest = errors.New("digest differs")
	// ErrKeys means that the Secret with the keys to verify a chart does not exist, may not be read, or has no keys. Refuse.
	ErrKeys = errors.New("no keys")
	// ErrProvenance means that an archive has no provenance, or not the required one. Do not install.
	ErrProvenance = errors.New("not verified")
	// ErrNotKept means that the kept function of repository.Catalog.LoadKept does not have the archive.
	ErrNotKept = errors.New("not kept")
)

// Error is the error of the functions in the packages below, except when the caller's ctx ends.
type Error struct {
	// Reason is ChartFetchFailure, ChartNotVerified, BrokenChartSpec, WrongChartDeployments, ChartError or, while a chart waits for
	// others, InProgress of v1alpha1: the reason of the condition that shows the error.
	Reason string
	// Message is a full text for users: the problem and, where known, what would solve it. It holds no credentials.
	Message string
	// Retry is true when the same call may succeed later without a change by the user.
	Retry bool
	// Cause is a sentinel of this package or the underlying error; may be nil.
	Cause error
	// Public is the part of Message that quotes no values; empty for none.
	Public string
}

// Error returns the message.
func (e *Error) Error() string { return e.Message }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Cause }

// WithPublic sets the part of the message that quotes no values.
func (e *Error) WithPublic(format string, args ...any) *Error {
	e.Public = fmt.Sprintf(format, args...)
	return e
}

// Withheld is an error of rendering with secret values, without the parts that may quote them: templates, schemas and rendered
// objects may. Other errors stay as they are.
func Withheld(err error) error {
	failure, ok := errors.AsType[*Error](err)
	if !ok || failure.Reason != shipper.ChartError && failure.Reason != shipper.WrongChartDeployments {
		return err
	}
	message := cmp.Or(failure.Public, "the chart cannot be rendered with these values") + Unsaid
	return &Error{Reason: failure.Reason, Retry: failure.Retry, Message: message}
}

// Unsaid ends messages that were shortened by Withheld.
const Unsaid = "; the details may quote a Secret and are left out: `shipperctl chart render` shows them to users who may read it"

// BrokenSpec is the error of a reference that is not a usable chart.
func BrokenSpec(cause error, format string, args ...any) *Error {
	return &Error{Reason: shipper.BrokenChartSpec, Message: fmt.Sprintf(format, args...), Cause: cause}
}

// FetchFailure is the error of a failed download; it is retried.
func FetchFailure(cause error, format string, args ...any) *Error {
	return &Error{Reason: shipper.ChartFetchFailure, Message: fmt.Sprintf(format, args...), Retry: true, Cause: cause}
}

// NotVerified is the error of a chart without the required signature. It is retried: a signature may be published, or a Secret
// may get other keys, without notice.
func NotVerified(cause error, format string, args ...any) *Error {
	return &Error{Reason: shipper.ChartNotVerified, Message: fmt.Sprintf(format, args...), Retry: true, Cause: cause}
}

// AsError is err as an *Error.
func AsError(err error) *Error {
	if failure, ok := errors.AsType[*Error](err); ok {
		return failure
	}
	return FetchFailure(err, "%s", err)
}

// Final reports whether a chart cannot be resolved until a user changes something: asking again does not help.
func Final(err error) bool {
	for _, one := range []error{ErrNoMatch, ErrBadConstraint, ErrNotRepository, ErrNotAllowed, ErrCredentials} {
		if errors.Is(err, one) {
			return true
		}
	}
	known, is := errors.AsType[*Error](err)
	return is && !known.Retry
}
