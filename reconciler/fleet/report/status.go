// SPDX-License-Identifier: Apache-2.0

package report

import (
	"context"
	"errors"
	"reflect"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/fleet"
	"shipper.dev/shipper/reconciler/retry"
)

// Failed sets Operational and Ready of one cluster from an error met there. When the cluster cannot be worked with,
// whether it is ready is not known, and both conditions say why; otherwise it is operational and not ready. After nothing but conflicts
// with another writer, it is not known either.
func Failed(conditions []shipper.Condition, err error, now metav1.Time) []shipper.Condition {
	reason, _ := retry.ClassifyInCluster(err)
	message := retry.Brief(err)
	var connection *fleet.Error
	if errors.As(err, &connection) {
		message = Shorten(connection.Message, retry.MaxBrief)
	}
	operational := shipper.Condition{Type: shipper.TargetOperational, Status: corev1.ConditionTrue}
	ready := shipper.Condition{Type: shipper.TargetReady, Status: corev1.ConditionFalse, Reason: reason, Message: message}
	if retry.Conflict(err) {
		ready.Status = corev1.ConditionUnknown
	}
	if ofConnection(reason) {
		operational.Status, operational.Reason, operational.Message = corev1.ConditionFalse, ready.Reason, ready.Message
		ready.Status = corev1.ConditionUnknown
	}
	if fleet.Pending(err) {
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
	if sameStatus(was, object) {
		return false, nil
	}
	patch := client.MergeFromWithOptions(was, client.MergeFromWithOptimisticLock{})
	if err := c.Status().Patch(ctx, object, patch); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	return true, nil
}

// sameStatus reports whether the statuses of two objects of a type are equal. Nothing else is compared: it is larger, most often.
func sameStatus(a, b client.Object) bool {
	x, y := reflect.ValueOf(a).Elem().FieldByName("Status"), reflect.ValueOf(b).Elem().FieldByName("Status")
	return equality.Semantic.DeepEqual(x.Addr().Interface(), y.Addr().Interface())
}
