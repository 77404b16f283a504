// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/fence"
)

// Error reports why a cluster cannot be worked with.
type Error struct {
	// Cluster is its name.
	Cluster string
	// Reason is a reason of conditions: TargetClusterClientError, ClusterUnreachable, CredentialsRefused, SecretMissing or
	// SecretInvalid.
	Reason string
	// Message is a sentence for people.
	Message string
	// Pending is true while the first attempt to connect is under way: nothing is known to be wrong, and what was said of
	// the cluster before may still be true.
	Pending bool
	// Untried is true while no connection of this installation has worked and the credentials are missing or refused: a status that
	// another installation left is not refuted.
	Untried bool
	// Err is the cause, when there is one.
	Err error
}

// Error is the message, with the cluster's name.
func (e *Error) Error() string {
	return fmt.Sprintf("cluster %q: %s", e.Cluster, e.Message)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error {
	return e.Err
}

// Action is what to do about an error.
type Action int

const (
	// Retry soon, with back-off: the error may pass by itself.
	Retry Action = iota
	// Recheck after minutes: a user has to change something, and no event reports that.
	Recheck
	// Wait for the event that comes when it changes.
	Wait
)

// Classified is an error that knows its own reason and remedy.
type Classified interface {
	error
	Classify() (reason string, action Action)
}

// Classify is the reason, and Wait: WatchMembers reports the change.
func (e *Error) Classify() (reason string, action Action) {
	return e.Reason, Wait
}

// Classify is the one place where errors of application clusters are judged: the reason for the condition and the
// remedy.
func Classify(err error) (reason string, action Action) {
	var classified Classified
	switch {
	case errors.As(err, &classified):
		return classified.Classify()
	case errors.Is(err, fence.ErrNotLeader): // it was not even sent
		return shipper.InProgress, Retry
	case apierrors.IsUnauthorized(err):
		return shipper.CredentialsRefused, Retry
	case meta.IsNoMatchError(err):
		return shipper.ChartError, Recheck
	case apierrors.IsConflict(err):
		return shipper.InProgress, Retry
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return shipper.NamespaceMissing, Retry
	case apierrors.IsBadRequest(err), apierrors.IsForbidden(err), apierrors.IsNotFound(err),
		apierrors.IsMethodNotSupported(err), apierrors.IsGone(err), apierrors.IsInvalid(err),
		apierrors.IsRequestEntityTooLargeError(err), apierrors.IsUnsupportedMediaType(err):
		return shipper.InternalError, Recheck
	case unanswered(err):
		return shipper.ClusterUnreachable, Retry
	default:
		return shipper.InternalError, Retry
	}
}

// unanswered reports whether no answer came at all.
func unanswered(err error) bool {
	var status apierrors.APIStatus
	var network net.Error
	return !errors.As(err, &status) && (errors.As(err, &network) || errors.Is(err, context.DeadlineExceeded) ||
		errors.Is(err, context.Canceled))
}

// ConnectError words an error that was met while connecting to or probing a cluster, for conditions and for people.
func ConnectError(cluster, url string, err error) *Error {
	var known *Error
	if errors.As(err, &known) {
		return known
	}
	out := &Error{Cluster: cluster, Reason: shipper.ClusterUnreachable, Err: err}
	var authority x509.UnknownAuthorityError
	var hostname x509.HostnameError
	var invalid x509.CertificateInvalidError
	switch {
	case apierrors.IsUnauthorized(err):
		out.Reason = shipper.CredentialsRefused
		out.Message = fmt.Sprintf("the API server at %s does not accept the credentials in the Secret", url)
	case apierrors.IsForbidden(err):
		out.Reason = shipper.CredentialsRefused
		out.Message = fmt.Sprintf("the account has too few rights: %v", err)
	case errors.As(err, &authority):
		out.Reason = shipper.SecretInvalid
		out.Message = fmt.Sprintf("the certificate of %s is not signed by the CA in the Secret", url)
	case errors.As(err, &hostname):
		out.Reason = shipper.SecretInvalid
		out.Message = fmt.Sprintf("the certificate of %s is for another host: %v", url, hostname)
	case errors.As(err, &invalid): // expired, most often: nothing that another Secret would mend
		out.Message = fmt.Sprintf("the certificate of %s is not valid: %v", url, invalid)
	case errors.Is(err, context.DeadlineExceeded):
		out.Message = fmt.Sprintf("the API server at %s does not answer in time", url)
	default:
		out.Message = fmt.Sprintf("the API server at %s does not answer: %v", url, err)
	}
	return out
}
