// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// strip drops what nobody reads before it enters a cache. Whoever writes an object that he read from one writes what he changes,
// as a patch, never the whole.
func strip(in any) (any, error) {
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
	case *appsv1.Deployment: // what its Pods are made of is the chart's affair
		o.Spec.Template = corev1.PodTemplateSpec{}
	case *corev1.Pod: // how it fares is in its status
		o.Spec = corev1.PodSpec{}
	case *discoveryv1.EndpointSlice: // which Pods serve, not where
		o.Ports = nil
		for i, e := range o.Endpoints {
			o.Endpoints[i] = discoveryv1.Endpoint{Conditions: e.Conditions, TargetRef: e.TargetRef}
		}
	}
	return in, nil
}

// forgetApplied drops kubectl's copy of the whole object.
func forgetApplied(object interface {
	GetAnnotations() map[string]string
	SetAnnotations(annotations map[string]string)
}) {
	annotations := object.GetAnnotations()
	if _, ok := annotations[corev1.LastAppliedConfigAnnotation]; ok {
		delete(annotations, corev1.LastAppliedConfigAnnotation)
		object.SetAnnotations(annotations)
	}
}
