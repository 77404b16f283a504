// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// TestAProofThatLostItsLabelIsFound has the second Service of a turn without the label by which Shipper knows it, as if a user had
// taken it off.
func TestAProofThatLostItsLabelIsFound(t *testing.T) {
	s, served := newFixture(t)
	service := &corev1.Service{}
	s.find(west, "test-nginx-prod", service)
	const name = "test-nginx-prod-shipper-proof"
	s.must(world.clusters[west].Create(s.ctx, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: s.namespace, Name: name, Labels: map[string]string{shipper.ProofLabel: string(service.UID)},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Service", Name: service.Name, UID: service.UID}},
		},
		Spec: corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone, Selector: map[string]string{"app": "something-else"}},
	}))
	served.only("web-1", "web-2")
	s.weigh("web-2", 1, west)
	served.settles(byLabel(), map[string]int{"web-1": 2, "web-2": 2})
	s.soon("the second Service stays", func() string {
		if s.find(west, name, &corev1.Service{}) {
			return name
		}
		return ""
	})
}

// TestARefusedProofIsToldOfAndTrafficStays has a policy that lets no such Service be made.
func TestARefusedProofIsToldOfAndTrafficStays(t *testing.T) {
	s, served := newFixture(t)
	lift := s.refuseProofs()
	s.weigh("web-2", 1, west)
	said := func(release, reason, message string) {
		t.Helper()
		s.soon("TrafficTarget "+release+" does not say what is wrong", func() string {
			var tt shipper.TrafficTarget
			s.must(s.management.Get(s.ctx, s.key(release), &tt))
			for _, c := range tt.Status.Clusters {
				if ready := shipper.FindCondition(c.Conditions, shipper.TargetReady); ready != nil && ready.Reason == reason &&
					strings.Contains(ready.Message, message) {
					return ""
				}
			}
			return fmt.Sprintf("%+v", tt.Status)
		})
	}
	said("web-1", shipper.InternalError, "making Service test-nginx-prod-shipper-proof, which proves for moments what Service "+
		"test-nginx-prod may select: traffic stays as it is until the cluster admits it, so raise the quota of Services by one, or "+
		"except what has the label shipper-proof from the policy: ")
	said("web-1", shipper.InternalError, "no second Services here")
	said("web-2", shipper.PodsNotInEndpoints, `see the TrafficTarget of release "web-1"`)
	served.only("web-1", "web-2") // from when it is lifted: it is tried again all the time
	lift()
	s.weigh("web-1", 2, west)
	served.settles(byLabel(), map[string]int{"web-1": 2, "web-2": 2})
}

// refuseProofs makes a policy in west that refuses them in the story's namespace, and waits until it holds. What it returns lifts it.
func (s *fixture) refuseProofs() (lift func()) {
	s.Helper()
	made := func(kind string, spec map[string]any) *unstructured.Unstructured {
		o := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": map[string]any{"name": s.namespace}, "spec": spec,
		}}
		s.must(world.clusters[west].Create(s.ctx, o))
		s.Cleanup(func() {
			if err := world.clusters[west].Delete(context.Background(), o); client.IgnoreNotFound(err) != nil {
				s.Error(err)
			}
		})
		return o
	}
	made("ValidatingAdmissionPolicy", map[string]any{
		"failurePolicy": "Fail",
		"matchConstraints": map[string]any{"resourceRules": []any{map[string]any{
			"apiGroups": []any{""}, "apiVersions": []any{"v1"}, "resources": []any{"services"}, "operations": []any{"CREATE"},
		}}},
		"validations": []any{map[string]any{
			"expression": "!object.metadata.name.endsWith('-proof') || object.metadata.namespace != '" + s.namespace + "'",
			"message":    "no second Services here",
		}},
	})
	binding := made("ValidatingAdmissionPolicyBinding", map[string]any{
		"policyName": s.namespace, "validationActions": []any{"Deny"},
	})
	attempt := func() error {
		o := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "try-proof"}}
		o.Spec.ClusterIP = corev1.ClusterIPNone
		return world.clusters[west].Create(s.ctx, o, client.DryRunAll)
	}
	s.soon("the policy does not hold", func() string {
		if attempt() == nil {
			return "not yet"
		}
		return ""
	})
	return func() {
		s.Helper()
		s.must(world.clusters[west].Delete(s.ctx, binding))
		s.soon("the policy still holds", func() string {
			if err := attempt(); err != nil {
				return err.Error()
			}
			return ""
		})
	}
}
