// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// stripObject drops fields that no code reads before an object enters a cache. Code that writes an object from a cache writes its changes,
// as a patch, never the whole.
func stripObject(in any) (any, error) {
	if u, ok := in.(*unstructured.Unstructured); ok {
		return judged(u), nil
	}
	if object, err := meta.Accessor(in); err == nil {
		forgetApplied(object)
		if object.GetManagedFields() != nil {
			forget(object)
		}
	}
	switch o := in.(type) {
	case *corev1.ConfigMap:
		if o.Data[shipper.AnchorTargetUIDKey] == "" {
			o.Data, o.BinaryData = nil, nil
		}
	case *appsv1.Deployment: // which Services its Pods are made for, not what they are made of
		backs := o.Spec.Template.Labels
		maps.DeleteFunc(backs, func(key, _ string) bool { return !strings.HasPrefix(key, shipper.BackendPrefix) })
		if o.Spec.Template = (corev1.PodTemplateSpec{}); len(backs) > 0 {
			o.Spec.Template.Labels = backs
		}
	case *corev1.Pod: // how it fares is in its status
		o.Spec = corev1.PodSpec{}
		stripPodStatus(&o.Status)
	case *discoveryv1.EndpointSlice: // which Pods serve, not where
		o.Ports = nil
		for i, e := range o.Endpoints {
			o.Endpoints[i] = discoveryv1.Endpoint{Conditions: e.Conditions, TargetRef: e.TargetRef}
		}
	case *appsv1.StatefulSet:
		o.Spec.Template, o.Spec.VolumeClaimTemplates = corev1.PodTemplateSpec{}, nil
	case *appsv1.DaemonSet:
		o.Spec.Template = corev1.PodTemplateSpec{}
	}
	return in, nil
}

// stripPodStatus drops where a Pod is and, while nothing is wrong with it, what its containers are made of. Of a Pod with which
// something is wrong its CapacityTarget shows all of its containers.
func stripPodStatus(of *corev1.PodStatus) {
	of.HostIP, of.HostIPs, of.PodIP, of.PodIPs, of.StartTime = "", nil, "", nil, nil
	wrong := func(c corev1.PodCondition) bool { return c.Status == corev1.ConditionFalse }
	if of.Phase != corev1.PodRunning || slices.ContainsFunc(of.Conditions, wrong) {
		return
	}
	of.InitContainerStatuses, of.EphemeralContainerStatuses = nil, nil
	for i, c := range of.ContainerStatuses {
		of.ContainerStatuses[i] = corev1.ContainerStatus{
			Name: c.Name, Ready: c.Ready, RestartCount: c.RestartCount, State: c.State, LastTerminationState: c.LastTerminationState,
		}
	}
}

// forgetApplied drops the copies of the whole object that kubectl and Shipper keep.
func forgetApplied(object interface {
	GetAnnotations() map[string]string
	SetAnnotations(annotations map[string]string)
}) {
	annotations := object.GetAnnotations()
	for _, copied := range []string{corev1.LastAppliedConfigAnnotation, shipper.LastAppliedAnnotation} {
		if _, ok := annotations[copied]; ok {
			delete(annotations, copied)
			object.SetAnnotations(annotations)
		}
	}
}
