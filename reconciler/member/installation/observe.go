// SPDX-License-Identifier: Apache-2.0

package installation

import (
	"context"
	"reflect"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart/render"
	"shipper.dev/shipper/reconciler/fleet"
)

// Gone reports whether an installed object is gone or no longer marked as it was. What else changes in it is not ours to judge. Any target
// of the Application may have to bring back what is gone.
func Gone(e fleet.Event) bool {
	return e.Old != nil && e.Object().GetLabels()[shipper.AppLabel] != "" && (e.New == nil || !sameMark(e.Old, e.New))
}

// HookOf names the target whose hook an object is; empty if it is none. Of a hook's status the cache knows nothing, so any change may be
// its end.
func HookOf(o client.Object) string {
	if o.GetAnnotations()[shipper.HookRunAnnotation] == "" || o.GetNamespace() == "" {
		return ""
	}
	return o.GetLabels()[shipper.OwnedByLabel]
}

// AnchorGone names the target of an anchor, or of a list of objects without a namespace, that is gone or going; empty for other events.
// Changes of their data are our own.
func AnchorGone(e fleet.Event) types.NamespacedName {
	cm, ok := e.Object().(*corev1.ConfigMap)
	if !ok || !fleet.IsAnchor(cm) || e.New != nil && cm.DeletionTimestamp == nil {
		return types.NamespacedName{}
	}
	if _, lists := cm.Data[scopedKey]; lists {
		namespace, _, _ := strings.Cut(cm.Annotations[shipper.PlacedOwnerAnnotation], "/")
		return types.NamespacedName{Namespace: namespace, Name: cm.Labels[shipper.OwnedByLabel]}
	}
	return types.NamespacedName{Namespace: cm.Namespace, Name: strings.TrimSuffix(cm.Name, anchorSuffix)}
}

// InPlaceChanged reports whether an event is that of an anchor that lists workloads in place, and did not list the same before.
func InPlaceChanged(e fleet.Event) bool {
	after, ok := e.New.(*corev1.ConfigMap)
	if !ok || !fleet.IsAnchor(after) || !strings.Contains(after.Data[inventoryKey], `"inPlace":true`) {
		return false
	}
	before, ok := e.Old.(*corev1.ConfigMap)
	return !ok || before.Data[inventoryKey] != after.Data[inventoryKey]
}

// SameOrders reports whether a Release asks the same of its hooks as before, and is as free to run them.
func SameOrders(before, after client.Object) bool {
	asks := func(o client.Object, key string) string { return o.GetAnnotations()[key] }
	return blocked(before) == blocked(after) &&
		asks(before, shipper.ReleaseHooksRetryAnnotation) == asks(after, shipper.ReleaseHooksRetryAnnotation) &&
		asks(before, shipper.ReleaseTestAnnotation) == asks(after, shipper.ReleaseTestAnnotation)
}

// blocked reports whether RolloutBlocks stop a Release.
func blocked(o client.Object) bool {
	rel, ok := o.(*shipper.Release)
	return ok && shipper.ConditionTrue(rel.Status.Conditions, shipper.ReleaseBlocked)
}

// sameMark reports whether all that decide looks at is the same in both.
func sameMark(a, b client.Object) bool {
	digest := shipper.InstalledDigestAnnotation
	return a.GetLabels()[shipper.OwnedByLabel] == b.GetLabels()[shipper.OwnedByLabel] &&
		a.GetAnnotations()[digest] == b.GetAnnotations()[digest] &&
		a.GetAnnotations()[render.ResourcePolicyAnnotation] == b.GetAnnotations()[render.ResourcePolicyAnnotation] &&
		(a.GetDeletionTimestamp() == nil) == (b.GetDeletionTimestamp() == nil) &&
		reflect.DeepEqual(a.GetOwnerReferences(), b.GetOwnerReferences())
}

// look reads an object's metadata: from the cache, and when it is not there, because it may have another owner,
// from the API server. It returns nil when there is none.
func (i *installer) look(ctx context.Context, entry item) (*metav1.PartialObjectMetadata, error) {
	live, err := i.member.Metadata(ctx, entry.gvk(), entry.key())
	if apierrors.IsNotFound(err) {
		live, err = i.member.LiveMetadata(ctx, entry.gvk(), entry.key())
	}
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return live, err
}
