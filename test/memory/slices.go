// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"
)

// slice writes the EndpointSlices of a namespace's Services: one for each Service that selects.
func (s *Server) slice(namespace string) {
	t := s.tables[discoveryGroup+"/endpointslices"]
	if t == nil {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(s.tables[services].objects[namespace])) {
		o := s.tables[services].get(namespace, name)
		service := o.live.(*corev1.Service)
		if len(service.Spec.Selector) == 0 || service.DeletionTimestamp != nil {
			continue
		}
		s.publish(t, service, s.endpoints(service))
	}
}

// endpoints returns the Pods of a Service that have addresses.
func (s *Server) endpoints(service *corev1.Service) (out []discoveryv1.Endpoint) {
	for _, p := range s.tables[pods].list(service.Namespace, selector{labels: labels.SelectorFromSet(service.Spec.Selector)}) {
		pod := p.live.(*corev1.Pod)
		if pod.Status.PodIP == "" || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
			continue
		}
		serving, terminating := ready(pod), pod.DeletionTimestamp != nil
		out = append(out, discoveryv1.Endpoint{
			Addresses: []string{pod.Status.PodIP},
			Conditions: discoveryv1.EndpointConditions{
				Ready:   ptr.To(service.Spec.PublishNotReadyAddresses || serving && !terminating),
				Serving: ptr.To(serving), Terminating: ptr.To(terminating),
			},
			NodeName:  ptr.To(pod.Spec.NodeName),
			TargetRef: &corev1.ObjectReference{Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID},
		})
	}
	return out
}

// publish writes the EndpointSlice of a Service.
func (s *Server) publish(t *table, service *corev1.Service, endpoints []discoveryv1.Endpoint) {
	now := t.get(service.Namespace, service.Name+"-slice")
	slice := &discoveryv1.EndpointSlice{}
	if now != nil {
		slice = now.live.(*discoveryv1.EndpointSlice).DeepCopy()
	}
	slice.Namespace, slice.Name, slice.GenerateName = service.Namespace, service.Name+"-slice", service.Name+"-"
	slice.Labels = map[string]string{}
	maps.Copy(slice.Labels, service.Labels)
	slice.Labels[discoveryv1.LabelServiceName] = service.Name
	slice.Labels[discoveryv1.LabelManagedBy] = "endpointslice-controller.k8s.io"
	slice.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(service, corev1.SchemeGroupVersion.WithKind("Service"))}
	slice.AddressType, slice.Endpoints, slice.Ports = discoveryv1.AddressTypeIPv4, endpoints, nil
	for _, p := range service.Spec.Ports {
		number := p.TargetPort.IntVal // named ports are not resolved
		if number == 0 {
			number = p.Port
		}
		slice.Ports = append(slice.Ports, discoveryv1.EndpointPort{Name: ptr.To(p.Name), Port: ptr.To(number), Protocol: ptr.To(p.Protocol)})
	}
	if now == nil {
		s.add(t, slice)
		return
	}
	before := now.live.(*discoveryv1.EndpointSlice)
	if string(t.kind.encode(slice)) != string(now.raw) {
		slice.Generation = before.Generation + 1
		s.put(t, slice)
	}
}
