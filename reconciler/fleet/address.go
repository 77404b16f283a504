// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// AwaitsAddress reports whether a Service has to get an address before clients outside of the cluster can reach it: it is of type
// LoadBalancer, and its annotation does not say that it works without one.
func AwaitsAddress(s *corev1.Service) bool {
	return s.Spec.Type == corev1.ServiceTypeLoadBalancer && s.Annotations[shipper.AwaitAddressAnnotation] != "false"
}

// HasAddress reports whether a load balancer has given a Service an IP address or a host name.
func HasAddress(s *corev1.Service) bool {
	return slices.ContainsFunc(s.Status.LoadBalancer.Ingress, func(at corev1.LoadBalancerIngress) bool {
		return at.IP != "" || at.Hostname != ""
	})
}

// WithoutAddress describes a Service that has no address, and says what to do where no controller gives it one.
func WithoutAddress(s *corev1.Service) string {
	return fmt.Sprintf("Service %q %s", s.Name, withoutAddress(s))
}

// withoutAddress is WithoutAddress where the Service is named already.
func withoutAddress(s *corev1.Service) string {
	by := "controller"
	if s.Spec.LoadBalancerClass != nil {
		by = fmt.Sprintf("controller of class %q", *s.Spec.LoadBalancerClass)
	}
	return fmt.Sprintf("is of type LoadBalancer and has no address yet; where no %s gives one, use type ClusterIP or NodePort, "+
		"or annotate it with %s: \"false\"", by, shipper.AwaitAddressAnnotation)
}

// addressed is the health of a Service of type LoadBalancer, which kstatus takes for ready without an address. It returns false for other
// objects.
func addressed(u *unstructured.Unstructured) (Health, bool) {
	if u.GetAPIVersion() != "v1" || u.GetKind() != "Service" || u.GetDeletionTimestamp() != nil {
		return Health{}, false
	}
	if kind, _, _ := unstructured.NestedString(u.Object, "spec", "type"); kind != string(corev1.ServiceTypeLoadBalancer) {
		return Health{}, false // most Services
	}
	s := &corev1.Service{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, s); err != nil || !AwaitsAddress(s) || HasAddress(s) {
		return Health{}, false
	}
	return Health{Status: string(status.InProgressStatus), Reason: shipper.AddressAwaited, Message: withoutAddress(s)}, true
}
