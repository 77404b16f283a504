// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Exit codes; ExitCodes has their meanings.
const (
	Done        = 0
	Failed      = 1
	Misused     = 2
	Refused     = 3
	ToReview    = 3 // of convert
	TimedOut    = 4
	NotPassed   = 5 // of check try
	Interrupted = 130
)

// ExitCodes are the codes with their meanings, as documents list them.
var ExitCodes = []struct {
	Code    int
	Meaning string
}{
	{Done, "the command succeeded"},
	{Failed, "the command failed, or a part of it; or a check found a fault"},
	{Misused, "an unknown command or flag, or a wrong value; no cluster was asked"},
	{Refused, "the API server refused it: a RolloutBlock is in effect, the object is invalid, or a right is missing; the error names it. " +
		"`convert`: a person has to review what it lists"},
	{TimedOut, "something did not happen in time"},
	{NotPassed, "`check try`: a measurement failed, or has no verdict"},
	{Interrupted, "it was interrupted; run it again to go on"},
}

// codedError is an error with an exit code.
type codedError struct {
	error
	code int
}

// Unwrap is the error that was given a code, for errors.Is and errors.As.
func (f codedError) Unwrap() error { return f.error }

// WithCode gives an error a code. Nil stays nil.
func WithCode(code int, err error) error {
	if err == nil {
		return nil
	}
	return codedError{err, code}
}

// cobra's own errors about how it was called have no type.
var misuses = []string{"unknown command ", "required flag(s) ", "if any flags in the group ", "at least one of the flags in the group "}

// unnameable are the client's errors about invalid names, before it asks a cluster.
var unnameable = []string{"invalid resource name ", "invalid namespace ", "resource name may not be empty"}

// ExitCode is the exit code for an error of a command.
func ExitCode(err error) int {
	var known codedError
	switch {
	case err == nil:
		return Done
	case errors.Is(err, context.Canceled):
		return Interrupted
	case errors.As(err, &known):
		return known.code
	case apierrors.IsForbidden(err), apierrors.IsInvalid(err):
		return Refused
	case errors.Is(err, context.DeadlineExceeded), apierrors.IsTimeout(err), apierrors.IsServerTimeout(err):
		return TimedOut
	}
	for _, beginning := range misuses {
		if strings.HasPrefix(err.Error(), beginning) {
			return Misused
		}
	}
	for _, part := range unnameable {
		if strings.Contains(err.Error(), part) {
			return Misused
		}
	}
	return Failed
}
