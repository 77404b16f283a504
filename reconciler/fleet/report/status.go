// SPDX-License-Identifier: Apache-2.0

package report

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/fleet"
)

// Failed sets Operational and Ready of one cluster from an error met there. When the cluster cannot be worked with,
// whether it is ready is not known, and both conditions say why; otherwise it is operational and not ready.
func Failed(conditions []shipper.Condition, err error, now metav1.Time) []shipper.Condition {
	reason, _ := fleet.Classify(err)
	message := err.Error()
	var connection *fleet.Error
	if errors.As(err, &connection) {
		message = connection.Message
	}
	return Failure(conditions, reason, message, fleet.Pending(err), now)
}

// Failure is Failed with the words chosen by the caller. pending leaves open whether the cluster can be worked with.
func Failure(
	conditions []shipper.Condition, reason, message string, pending bool, now metav1.Time,
) []shipper.Condition {
	operational := shipper.Condition{Type: shipper.TargetOperational, Status: corev1.ConditionTrue}
	ready := shipper.Condition{
		Type: shipper.TargetReady, Status: corev1.ConditionFalse, Reason: reason, Message: Shorten(message, maxMessage),
	}
	if ofConnection(reason) {
		operational.Status, operational.Reason, operational.Message = corev1.ConditionFalse, ready.Reason, ready.Message
		ready.Status = corev1.ConditionUnknown
	}
	if pending {
		operational.Status = corev1.ConditionUnknown
	}
	return shipper.SetCondition(shipper.SetCondition(conditions, operational, now), ready, now)
}

// ofConnection reports whether a reason means that the cluster cannot be worked with.
func ofConnection(reason string) bool {
	switch reason {
	case shipper.TargetClusterClientError, shipper.ClusterUnreachable, shipper.CredentialsRefused,
		shipper.CredentialsRevoked, shipper.SecretMissing, shipper.SecretInvalid:
		return true
	}
	return false
}

// PatchStatus writes the status of object when it differs from that of was, which is the object as it was read. An
// object that was deleted meanwhile needs no status. An object that was written meanwhile is a conflict: the cache was out of date,
// and so is the difference. For the same reason callers need the events of status changes: if an outdated cache shows no difference,
// the next event corrects that.
func PatchStatus(ctx context.Context, c client.Client, object, was client.Object) (changed bool, err error) {
	if equality.Semantic.DeepEqual(was, object) {
		return false, nil
	}
	patch := client.MergeFromWithOptions(was, client.MergeFromWithOptimisticLock{})
	if err := c.Status().Patch(ctx, object, patch); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	return true, nil
}
