// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// redirection is an edit of the production Service that sends its requests elsewhere, and what is said of it.
type redirection struct {
	edit func(*corev1.Service)
	said []string
}

// redirections are of a Service of which the chart has a port and a selector only.
var redirections = map[string]redirection{
	"an alias of another host": {func(s *corev1.Service) {
		s.Spec.Type, s.Spec.ExternalName = corev1.ServiceTypeExternalName, "example.com"
	}, []string{
		`web spec.externalName:  -> "example.com"`, `web spec.internalTrafficPolicy: "Cluster" ->`,
		`web spec.type: "ClusterIP" -> "ExternalName"`,
	}},
	"ports of nodes": {func(s *corev1.Service) { s.Spec.Type = corev1.ServiceTypeNodePort }, []string{
		`web spec.externalTrafficPolicy:  -> "Cluster"`, `web spec.type: "ClusterIP" -> "NodePort"`,
	}},
	"a load balancer": {func(s *corev1.Service) {
		s.Spec.Type, s.Spec.LoadBalancerClass, s.Spec.LoadBalancerIP = corev1.ServiceTypeLoadBalancer, ptr.To("example.com/x"), "192.0.2.7"
		s.Spec.LoadBalancerSourceRanges = []string{"192.0.2.0/24"}
		s.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal
	}, []string{
		`web spec.externalTrafficPolicy:  -> "Local"`, `web spec.loadBalancerClass:  -> "example.com/x"`,
		`web spec.loadBalancerIP:  -> "192.0.2.7"`, `web spec.loadBalancerSourceRanges:  -> ["192.0.2.0/24"]`,
		`web spec.type: "ClusterIP" -> "LoadBalancer"`,
	}},
	"another port of the Pods": {func(s *corev1.Service) { s.Spec.Ports[0].TargetPort = intstr.FromInt32(9999) }, []string{
		`web spec.ports[0].targetPort: 80 -> 9999`,
	}},
	"all else": {func(s *corev1.Service) {
		s.Spec.ExternalIPs, s.Spec.SessionAffinity = []string{"192.0.2.7"}, corev1.ServiceAffinityClientIP
		s.Spec.InternalTrafficPolicy = ptr.To(corev1.ServiceInternalTrafficPolicyLocal)
		s.Spec.PublishNotReadyAddresses = true
		s.Labels["service.kubernetes.io/service-proxy-name"] = "other"
		metav1.SetMetaDataAnnotation(&s.ObjectMeta, "service.kubernetes.io/topology-mode", "Auto")
	}, []string{
		`web metadata.annotations["service.kubernetes.io/topology-mode"]:  -> "Auto"`,
		`web metadata.labels["service.kubernetes.io/service-proxy-name"]:  -> "other"`,
		`web spec.externalIPs:  -> ["192.0.2.7"]`, `web spec.externalTrafficPolicy:  -> "Cluster"`,
		`web spec.internalTrafficPolicy: "Cluster" -> "Local"`, `web spec.publishNotReadyAddresses:  -> true`,
		`web spec.sessionAffinity: "None" -> "ClientIP"`, `web spec.sessionAffinityConfig:  -> {"clientIP":{"timeoutSeconds":10800}}`,
	}},
}

// TestARedirectedServiceIsDrift edits fields that the chart leaves to the API server. They are reported under no policy and under
// Report, and set back under Correct.
func TestARedirectedServiceIsDrift(t *testing.T) {
	t.Parallel()
	for name, r := range redirections {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := begin(t, west)
			s.policy("")
			s.publish("redirected", nil)
			s.install("web-1", "redirected", "0.0.1", shipper.ChartValues{}, west)
			s.installed("web-1")
			service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "web"}}
			s.find(west, "web", service)
			before := service.DeepCopy()
			s.meddle(west, service, func() { r.edit(service) })
			s.drifts("web-1", west, r.said...)
			s.policy(shipper.DriftReport)
			s.drifts("web-1", west, r.said...)
			s.policy(shipper.DriftCorrect)
			s.restored(before)
			s.drifts("web-1", west)
		})
	}
}

// restored waits until a Service is as it was before the edit, except for its address: one that was an alias gets another.
// Shipper holds what it has written by applying it only, so that a later Release can take it away.
func (s *fixture) restored(before *corev1.Service) {
	s.Helper()
	s.soon("the Service is not corrected", func() string {
		service := &corev1.Service{}
		s.find(west, before.Name, service)
		service.Spec.ClusterIP, service.Spec.ClusterIPs = before.Spec.ClusterIP, before.Spec.ClusterIPs
		for _, m := range service.ManagedFields {
			if m.Manager == shipper.FieldOwner && m.Operation == metav1.ManagedFieldsOperationUpdate {
				return "Shipper holds fields that it has not applied"
			}
		}
		return cmp.Diff(before.Spec, service.Spec) + cmp.Diff(before.Labels, service.Labels) + cmp.Diff(before.Annotations, service.Annotations)
	})
}

// TestAnAddressThatWasGivenUpIsReported makes the Service headless, which Kubernetes allows by way of an alias only and does not take
// back: it is reported under Correct too.
func TestAnAddressThatWasGivenUpIsReported(t *testing.T) {
	t.Parallel()
	s := begin(t, west)
	s.policy("")
	s.publish("headless", nil)
	s.install("web-1", "headless", "0.0.1", shipper.ChartValues{}, west)
	s.installed("web-1")
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "web"}}
	s.meddle(west, service, func() { service.Spec.Type, service.Spec.ExternalName = corev1.ServiceTypeExternalName, "example.com" })
	s.meddle(west, service, func() {
		service.Spec.Type, service.Spec.ExternalName, service.Spec.ClusterIP = corev1.ServiceTypeClusterIP, "", corev1.ClusterIPNone
	})
	s.drifts("web-1", west, `web spec.clusterIP:  -> "None"`)
	s.policy(shipper.DriftCorrect)
	s.meddle(west, service, func() { service.Spec.PublishNotReadyAddresses = true })
	s.soon("the rest is not corrected", func() string {
		s.find(west, "web", service)
		if service.Spec.PublishNotReadyAddresses {
			return "requests go to Pods that are not ready"
		}
		return ""
	})
	s.drifts("web-1", west, `web spec.clusterIP:  -> "None"`)
}
