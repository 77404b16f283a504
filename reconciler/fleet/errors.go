// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/retry"
)

// WorkTimeout bounds what a reconciler does in one cluster in one pass.
const WorkTimeout = time.Minute

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

// Classify is the reason, and Wait: WatchMembers reports the change.
func (e *Error) Classify() (reason string, action retry.Action) {
	return e.Reason, retry.Wait
}

// Pending reports whether err only means that a cluster is being connected to for the first time.
func Pending(err error) bool {
	var connection *Error
	return errors.As(err, &connection) && connection.Pending
}

// Keeps reports whether a cluster's conditions stay as they are when err is met: it is being connected to for the first time, or
// another installation reported that it works and this one has no usable credentials yet.
func Keeps(err error, conditions []shipper.Condition) bool {
	if len(conditions) == 0 {
		return false
	}
	var connection *Error
	return errors.As(err, &connection) &&
		(connection.Pending || connection.Untried && shipper.ConditionTrue(conditions, shipper.TargetOperational))
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
		out.Message = fmt.Sprintf("the account has too few rights: %s", retry.Brief(err))
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
		out.Message = fmt.Sprintf("the API server at %s does not answer: %s", url, retry.Brief(err))
	}
	return out
}
