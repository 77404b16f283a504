// SPDX-License-Identifier: Apache-2.0

// Package retry decides what follows the errors of a pass: whether and when it is repeated, and what conditions say. It is the one place
// where errors of API servers are judged: Classify those of the management cluster, ClassifyInCluster those of application clusters.
package retry

import (
	"context"
	"errors"
	"net"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"

	"shipper.dev/shipper/apis/rules/block"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart"
	"shipper.dev/shipper/reconciler/fence"
)

// Action is what to do about an error.
type Action int

// The actions, the latest first. Of several errors the greatest action is taken.
const (
	// Wait: only a change helps, and its event triggers the next pass.
	Wait Action = iota
	// Recheck after minutes: only a change helps, and no event reports it.
	Recheck
	// Requeue: the cache was out of date, the object was changed meanwhile, or a block that the cache lacks refused the write;
	// reading again helps, and is no error to report.
	Requeue
	// Retry: the same may succeed later.
	Retry
)

// Classified is an error of an application cluster that has its own reason for conditions and its own action.
type Classified interface {
	error
	Classify() (reason string, action Action)
}

// Classify returns what to do about an error of the management cluster; of joined errors, the greatest action.
func Classify(err error) Action {
	action := Wait
	for _, part := range parts(err) {
		action = max(action, classify(part))
	}
	return action
}

func classify(err error) Action {
	var broken *chart.Error
	switch {
	case errors.As(err, &broken):
		return ofChart(broken)
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err), apierrors.IsNotFound(err), block.RefusedBy(err) != "":
		return Requeue
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err), apierrors.IsRequestEntityTooLargeError(err):
		return Wait
	case errors.Is(err, context.Canceled):
		return Requeue
	}
	return Retry
}

func ofChart(err *chart.Error) Action {
	if err.Retry {
		return Retry
	}
	return Wait
}

// ClassifyInCluster returns the reason for the condition about an error of an application cluster, and what to do about it. Of joined
// errors it returns the greatest action and the reason of the most serious one: first one that a user has to mend, then one that may
// pass by itself, and last a concurrent write or other work in progress.
func ClassifyInCluster(err error) (reason string, action Action) {
	worst := -1
	for _, part := range parts(err) {
		why, what := classifyInCluster(part)
		action = max(action, what)
		if serious := severity(why, what); serious > worst {
			worst, reason = serious, why
		}
	}
	return reason, action
}

// severity orders the errors that are joined.
func severity(reason string, action Action) int {
	switch {
	case reason == shipper.InProgress:
		return 0
	case action == Retry:
		return 1
	}
	return 2
}

func classifyInCluster(err error) (reason string, action Action) {
	var classified Classified
	var broken *chart.Error
	switch {
	case errors.As(err, &classified):
		return classified.Classify()
	case errors.As(err, &broken):
		return broken.Reason, ofChart(broken)
	case errors.Is(err, fence.ErrNotLeader): // it was not even sent
		return shipper.InProgress, Retry
	case apierrors.IsUnauthorized(err):
		return shipper.CredentialsRefused, Retry
	case meta.IsNoMatchError(err):
		return shipper.ChartError, Recheck
	case apierrors.IsConflict(err):
		return shipper.InProgress, Requeue
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return shipper.NamespaceMissing, Retry
	case apierrors.IsBadRequest(err), apierrors.IsForbidden(err), apierrors.IsNotFound(err),
		apierrors.IsMethodNotSupported(err), apierrors.IsGone(err), apierrors.IsInvalid(err),
		apierrors.IsRequestEntityTooLargeError(err), apierrors.IsUnsupportedMediaType(err):
		return shipper.InternalError, Recheck
	case Unanswered(err):
		return shipper.ClusterUnreachable, Retry
	default:
		return shipper.InternalError, Retry
	}
}

// Conflict reports whether err is nothing but conflicts with other writers: the next pass reads what they wrote. Joined with another
// error it is not.
func Conflict(err error) bool {
	reason, action := ClassifyInCluster(err)
	return reason == shipper.InProgress && action == Requeue
}

// Unanswered reports whether an API server did not answer at all.
func Unanswered(err error) bool {
	var status apierrors.APIStatus
	var network net.Error
	return !errors.As(err, &status) && (errors.As(err, &network) || errors.Is(err, context.DeadlineExceeded) ||
		errors.Is(err, context.Canceled))
}

// Blocked returns, in the words of conditions, the first RolloutBlock that a refusal of the webhook names; empty for every other error.
// The rest of the refusal changes with time.
func Blocked(err error) string {
	for _, part := range parts(err) {
		if name := block.RefusedBy(part); name != "" {
			return shipper.BlockedBy + name
		}
	}
	return ""
}

// parts are the errors that err joins, at any depth, or only err if it joins none. An error with a judgement of its own is not taken
// apart.
func parts(err error) []error {
	for e := err; e != nil; e = errors.Unwrap(e) {
		//nolint:errorlint // each error of the chain is looked at in turn
		switch e := e.(type) {
		case Classified, *chart.Error:
			return []error{err}
		case interface{ Unwrap() []error }:
			var out []error
			for _, part := range e.Unwrap() {
				out = append(out, parts(part)...)
			}
			return out
		}
	}
	if err == nil {
		return nil
	}
	return []error{err}
}
