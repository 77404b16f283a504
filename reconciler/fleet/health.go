// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// Health is how an installed object is, as kstatus judges it. Words that count along, Pods that become ready one by one, are
// not in it: a status with them would be written for each.
type Health struct {
	// Status is Current when all is well; otherwise InProgress, Failed, Terminating, NotFound or Unknown.
	Status string
	// Reason is one word for what is awaited or wrong.
	Reason string
	// Message says what has failed, or what to do about an address that is awaited; empty otherwise.
	Message string
	// Unreadable is set where nothing in the object says how it is, and Status is Current for that reason alone.
	Unreadable bool
}

// Healthy reports whether all is well.
func (h Health) Healthy() bool { return h.Status == string(status.CurrentStatus) }

// unknown is the health of an object that cannot be judged.
func unknown(reason string) Health {
	return Health{Status: string(status.UnknownStatus), Reason: reason}
}

// healthKey is where a cached object of a kind with a status has its Health, in the place of what that was judged by.
const healthKey = "health"

// unreadableKey is there in it, with any value, where Unreadable is set.
const unreadableKey = "unreadable"

// Settling is how long events that only change health, or only report an edit, are collected: many come at the same time.
const Settling = time.Second

// plain are the kinds that have no health but to be there. Of these nothing but metadata is watched: of Secrets above all.
var plain = map[schema.GroupKind]bool{
	{Kind: "Namespace"}: true, {Kind: "ConfigMap"}: true, {Kind: "Secret"}: true, {Kind: "ServiceAccount"}: true,
	{Group: "rbac.authorization.k8s.io", Kind: "Role"}: true, {Group: "rbac.authorization.k8s.io", Kind: "RoleBinding"}: true,
	{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole"}: true, {Group: "rbac.authorization.k8s.io", Kind: "ClusterRoleBinding"}: true,
	{Group: "networking.k8s.io", Kind: "NetworkPolicy"}: true, {Group: "networking.k8s.io", Kind: "Ingress"}: true,
	{Group: "networking.k8s.io", Kind: "IngressClass"}: true, {Group: "batch", Kind: "CronJob"}: true,
	{Group: "scheduling.k8s.io", Kind: "PriorityClass"}: true, {Group: "storage.k8s.io", Kind: "StorageClass"}: true,
}

// likeOf is what the cache of a kind is asked with: metadata where that is all there is to know.
func likeOf(gvk schema.GroupVersionKind) client.Object {
	if plain[gvk.GroupKind()] {
		like := &metav1.PartialObjectMetadata{}
		like.SetGroupVersionKind(gvk)
		return like
	}
	like := &unstructured.Unstructured{}
	like.SetGroupVersionKind(gvk)
	return like
}

// judged is what a cache keeps of an object of any kind: its metadata and its health.
func judged(u *unstructured.Unstructured) *unstructured.Unstructured {
	h := judge(u)
	forgetApplied(u)
	forget(u)
	out := map[string]any{"apiVersion": u.GetAPIVersion(), "kind": u.GetKind(), "metadata": u.Object["metadata"]}
	said := map[string]any{"status": h.Status, "reason": h.Reason, "message": h.Message}
	if h.Unreadable {
		said[unreadableKey] = "true"
	}
	out[healthKey] = said
	return &unstructured.Unstructured{Object: out}
}

// judge asks kstatus, except for a Service without the address that it awaits.
func judge(u *unstructured.Unstructured) Health {
	if h, awaits := addressed(u); awaits {
		return h
	}
	result, err := status.Compute(u)
	if err != nil {
		return unknown("NotUnderstood")
	}
	h := Health{Status: string(result.Status), Unreadable: unreadable(u, result.Status)}
	for _, c := range result.Conditions {
		if h.Reason = c.Reason; h.Reason != "" {
			break
		}
	}
	if result.Status == status.FailedStatus {
		h.Message = result.Message
	}
	paused, _, _ := unstructured.NestedBool(u.Object, "spec", "paused")
	if paused && u.GetKind() == "Deployment" && result.Status == status.InProgressStatus {
		h.Reason = "Paused" // kstatus waits for Pods that its controller does not create
	}
	return h
}

// unreadable reports whether kstatus takes an object for Current only because it has no status that says otherwise.
func unreadable(u *unstructured.Unstructured, is status.Status) bool {
	gk := u.GroupVersionKind().GroupKind()
	if is != status.CurrentStatus || plain[gk] || status.GetLegacyConditionsFn(u) != nil {
		return false
	}
	conditions, _, err := unstructured.NestedSlice(u.Object, "status", "conditions")
	_, observed, failed := unstructured.NestedInt64(u.Object, "status", "observedGeneration")
	return err == nil && failed == nil && len(conditions) == 0 && !observed
}

// HealthOf is that of an object as caches and their events have it.
func HealthOf(object client.Object) Health {
	switch o := object.(type) {
	case *unstructured.Unstructured:
		said, found, err := unstructured.NestedStringMap(o.Object, healthKey)
		if err != nil || !found {
			return judge(o.DeepCopy())
		}
		return Health{
			Status: said["status"], Reason: said["reason"], Message: said["message"], Unreadable: said[unreadableKey] != "",
		}
	case *corev1.ConfigMap, *metav1.PartialObjectMetadata:
		if o.GetDeletionTimestamp() != nil {
			return Health{Status: string(status.TerminatingStatus)}
		}
		return Health{Status: string(status.CurrentStatus)}
	}
	gvk, err := apiutil.GVKForObject(object, scheme.Scheme)
	if err != nil {
		return unknown("NotUnderstood")
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return unknown("NotUnderstood")
	}
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(gvk)
	return judge(u)
}

// Health reads the metadata of an object of ours, as Metadata does, and how it is.
func (m *Member) Health(
	ctx context.Context, gvk schema.GroupVersionKind, key client.ObjectKey,
) (*metav1.PartialObjectMetadata, Health, error) {
	k, err := m.session.use(ctx, gvk)
	if err != nil {
		return nil, Health{}, err
	}
	switch {
	case k.typed != nil:
		object, ok := k.typed.DeepCopyObject().(client.Object)
		if !ok {
			return nil, Health{}, fmt.Errorf("reading %s %s: not an object", gvk.Kind, key.Name)
		}
		if err := m.Client().Get(ctx, key, object); err != nil {
			return nil, Health{}, fmt.Errorf("reading %s %s: %w", gvk.Kind, key.Name, err)
		}
		out := &metav1.PartialObjectMetadata{}
		out.SetGroupVersionKind(gvk)
		out.Labels, out.Annotations, out.DeletionTimestamp = object.GetLabels(), object.GetAnnotations(), object.GetDeletionTimestamp()
		return out, HealthOf(object), nil
	case k.informer == nil: // objects are read one by one: no event reports changes
		live, err := metadata(ctx, m.Live(), gvk, key)
		return live, unknown("NotWatched"), err
	}
	return m.session.cached(ctx, gvk, key)
}

// cached reads from the cache of a kind that is not among the core's.
func (s *session) cached(
	ctx context.Context, gvk schema.GroupVersionKind, key client.ObjectKey,
) (*metav1.PartialObjectMetadata, Health, error) {
	object := likeOf(gvk)
	if err := s.cluster.GetCache().Get(ctx, key, object); err != nil {
		return nil, Health{}, fmt.Errorf("reading %s %s: %w", gvk.Kind, key.Name, err)
	}
	if out, ok := object.(*metav1.PartialObjectMetadata); ok {
		return out, HealthOf(out), nil
	}
	u, ok := object.(*unstructured.Unstructured)
	if !ok {
		return nil, Health{}, fmt.Errorf("reading %s %s: not an object", gvk.Kind, key.Name)
	}
	h := HealthOf(u)
	delete(u.Object, healthKey)
	out := &metav1.PartialObjectMetadata{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, out); err != nil {
		return nil, Health{}, fmt.Errorf("reading %s %s: %w", gvk.Kind, key.Name, err)
	}
	return out, h, nil
}

// HealthChanged reports whether an event changes how an object is.
func (e Event) HealthChanged() bool {
	return e.Old == nil || e.New == nil || HealthOf(e.Old) != HealthOf(e.New)
}

// PodReady reports whether a Pod is ready, by its own condition.
func PodReady(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}
