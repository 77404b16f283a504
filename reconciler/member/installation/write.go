// SPDX-License-Identifier: Apache-2.0

package installation

import (
	"context"
	"encoding/json"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rules "shipper.dev/shipper/apis/rules/traffic"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/fleet"
	"shipper.dev/shipper/reconciler/member/applyset"
	"shipper.dev/shipper/reconciler/member/traffic"
)

// write applies an object whole, and returns its UID.
func (i *installer) write(ctx context.Context, s step) (types.UID, error) {
	if s.item.Namespace != "" && s.keeps() && s.live != nil {
		if err := withoutAnchor(ctx, i.member, i.it, s.live); err != nil {
			return "", err
		}
	}
	object, err := i.content(ctx, s)
	if err != nil {
		return "", err
	}
	err = applyset.Apply(ctx, i.member.Client(), object, client.ForceOwnership)
	return object.GetUID(), err
}

// content is an object whole, as it is applied.
func (i *installer) content(ctx context.Context, s step) (*unstructured.Unstructured, error) {
	object := s.in(s.item.Namespace)
	if s.item.Namespace != "" && !s.keeps() {
		object.SetOwnerReferences(owners(i.it, s.live, i.anchor.reference(shipper.AnchorName(i.it.Name))))
	}
	if isDeployment(object) {
		if err := i.setReplicas(ctx, s, object); err != nil {
			return nil, err
		}
	}
	if isTrafficService(object) || isPreviewService(object) {
		if err := i.setSelector(ctx, s, object); err != nil {
			return nil, err
		}
	}
	if s.live != nil && i.sharesPorts(object) {
		if s.ports == nil {
			ports, err := i.portsOf(ctx, s, object)
			if err != nil {
				return nil, err
			}
			s.ports = &ports
		}
		if err := s.ports.merge(object); err != nil {
			return nil, err
		}
	}
	return object, nil
}

// isPreviewService reports whether an object is the Service that selects the contender before it has traffic.
func isPreviewService(object *unstructured.Unstructured) bool {
	return isServiceFor(object, shipper.LBForPreview)
}

// isTrafficService reports whether an object is the Service that traffic is shifted on.
func isTrafficService(object *unstructured.Unstructured) bool {
	return isServiceFor(object, shipper.LBForProduction)
}

// isServiceFor reports whether an object is a Service whose label shipper-lb has that value.
func isServiceFor(object *unstructured.Unstructured, use string) bool {
	return object.GroupVersionKind() == corev1.SchemeGroupVersion.WithKind("Service") && object.GetLabels()[shipper.LBLabel] == use
}

// setSelector keeps the selector of a live Service unless it selects by label: the traffic reconciler corrects any other one, after it has
// labelled the Pods. The resource version makes the write fail if the Service was changed meanwhile. A new Service gets the initial
// selector. Where Services always select by label, only this corrects selectors.
func (i *installer) setSelector(ctx context.Context, s step, object *unstructured.Unstructured) error {
	of := i.selectors(object)
	switch {
	case s.live == nil && isPreviewService(object): // it selects no Pods until the traffic worker lets it
		return nil
	case s.live == nil:
		return i.selectRelease(ctx, of, object)
	}
	var live corev1.Service
	err := i.member.Client().Get(ctx, s.item.key(), &live)
	if apierrors.IsNotFound(err) { // it is new, or a user removed our label
		err = i.member.Live().Get(ctx, s.item.key(), &live)
	}
	if err != nil {
		return fmt.Errorf("reading its selector: %w", err)
	}
	object.SetResourceVersion(live.ResourceVersion)
	if by := of.Selection(live.Spec.Selector); by.Release == "" && (i.initialSelector == nil || by.ByLabel) {
		return nil
	}
	return unstructured.SetNestedStringMap(object.Object, live.Spec.Selector, "spec", "selector")
}

// selectors are those that a Service for traffic or previews may have.
func (i *installer) selectors(object *unstructured.Unstructured) traffic.Selectors {
	of := traffic.Selectors{App: i.it.Labels[shipper.AppLabel]}
	if i.byApplication() {
		of.Service = object.GetName()
	}
	return of
}

// byApplication reports whether objects are named by Application.
func (i *installer) byApplication() bool {
	return i.it.Spec.Chart != nil && i.it.Spec.Chart.Naming == shipper.NamingByApplication
}

// selectRelease makes a new Service select the Pods of the one Release that has all traffic, if there is one.
func (i *installer) selectRelease(ctx context.Context, of traffic.Selectors, object *unstructured.Unstructured) error {
	if i.initialSelector == nil {
		return nil
	}
	release, err := i.initialSelector(ctx, i.member.Client(), i.it.Namespace, of, i.member.Name)
	if release == "" || err != nil {
		return err
	}
	return unstructured.SetNestedStringMap(object.Object, of.Selector(rules.Selection{Release: release}), "spec", "selector")
}

// setReplicas has a Deployment keep its number of Pods, which is capacity's: a field that is no longer applied may fall back to its
// default. The version it was read at makes sure that it has not been scaled meanwhile. A new Deployment starts with the Pods that it
// will adopt: none, unless a user deleted the one before and kept them.
func (i *installer) setReplicas(ctx context.Context, s step, object *unstructured.Unstructured) error {
	var replicas int64
	if s.live == nil {
		var err error
		if replicas, err = i.orphans(ctx, object); err != nil {
			return err
		}
	} else {
		var live appsv1.Deployment
		if err := i.member.Live().Get(ctx, s.item.key(), &live); err != nil {
			return fmt.Errorf("reading its replicas: %w", err)
		}
		object.SetResourceVersion(live.ResourceVersion)
		replicas = int64(ptr.Deref(live.Spec.Replicas, 1))
	}
	return unstructured.SetNestedField(object.Object, replicas, "spec", "replicas")
}

// orphans is how many Pods the ReplicaSets run that a new Deployment will adopt, as after "kubectl delete deployment --cascade=orphan": it
// would scale them to its own number.
func (i *installer) orphans(ctx context.Context, object *unstructured.Unstructured) (n int64, err error) {
	var pods corev1.PodList
	of := client.MatchingFields{fleet.ByRelease: i.it.Name}
	if err := i.member.Client().List(ctx, &pods, client.InNamespace(i.it.Namespace), of, client.UnsafeDisableDeepCopy); err != nil {
		return 0, fmt.Errorf("listing Pods: %w", err)
	}
	if len(pods.Items) == 0 { // as for each Release that is new
		return 0, nil
	}
	var d appsv1.Deployment
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &d); err != nil {
		return 0, nil //nolint:nilerr // the API server says what is wrong
	}
	selector, err := metav1.LabelSelectorAsSelector(d.Spec.Selector)
	if err != nil {
		return 0, nil //nolint:nilerr // the same
	}
	var sets appsv1.ReplicaSetList
	matching := client.MatchingLabelsSelector{Selector: selector}
	if err := i.member.Live().List(ctx, &sets, client.InNamespace(i.it.Namespace), matching); err != nil {
		return 0, fmt.Errorf("listing ReplicaSets: %w", err)
	}
	for _, set := range sets.Items {
		if metav1.GetControllerOf(&set) == nil && set.DeletionTimestamp == nil {
			n += int64(ptr.Deref(set.Spec.Replicas, 1))
		}
	}
	return n, nil
}

// in is the object as it is applied in a namespace, empty where its kind has none: all but its owner and its replicas.
func (w wanted) in(namespace string) *unstructured.Unstructured {
	object := w.content.DeepCopy()
	unstructured.RemoveNestedField(object.Object, "metadata", "creationTimestamp")
	unstructured.RemoveNestedField(object.Object, "status")
	object.SetNamespace(namespace)
	annotations := object.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[shipper.InstalledDigestAnnotation] = w.digest
	object.SetAnnotations(annotations)
	return object
}

func isDeployment(object *unstructured.Unstructured) bool {
	return object.GroupVersionKind() == appsv1.SchemeGroupVersion.WithKind("Deployment")
}

// withoutPods is how a Deployment begins.
func withoutPods(object *unstructured.Unstructured) error {
	return unstructured.SetNestedField(object.Object, int64(0), "spec", "replicas")
}

// mark sets nothing but the digest and the owner.
func (i *installer) mark(ctx context.Context, s step) error {
	metadata := map[string]any{
		"resourceVersion": s.live.ResourceVersion,
		"annotations":     map[string]any{shipper.InstalledDigestAnnotation: s.digest},
	}
	switch keeps := s.keeps(); {
	case s.item.Namespace == "" || i.anchor.owns(s.live) != keeps:
	case keeps:
		metadata["ownerReferences"] = withoutOwner(s.live.OwnerReferences, shipper.AnchorName(i.it.Name))
	default:
		metadata["ownerReferences"] = withOwner(s.live.OwnerReferences, i.anchor.reference(shipper.AnchorName(i.it.Name)))
	}
	raw, err := json.Marshal(map[string]any{"metadata": metadata})
	if err != nil {
		return fmt.Errorf("writing the mark: %w", err)
	}
	patch := client.RawPatch(types.MergePatchType, raw)
	return i.member.Client().Patch(ctx, s.live.DeepCopy(), patch, client.FieldOwner(shipper.FieldOwner))
}

// withOwner is all references there are, but for one to a former anchor of the same name, and ours.
func withOwner(refs []metav1.OwnerReference, own metav1.OwnerReference) []metav1.OwnerReference {
	return append(withoutOwner(refs, own.Name), own)
}

// carryOutAll carries out steps in their order, up to the first that fails.
func (i *installer) carryOutAll(ctx context.Context, steps []step) error {
	for _, s := range steps {
		if err := i.carryOut(ctx, s); err != nil {
			return err
		}
	}
	return nil
}
