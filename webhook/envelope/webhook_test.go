// SPDX-License-Identifier: Apache-2.0

package envelope_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/admission/ask"
	"shipper.dev/shipper/webhook/envelope"
	"shipper.dev/shipper/webhook/response"
)

// TestWhatAnAdministratorWroteIsTakenAwayWithTheRight: Shipper removes from clusters what an Envelope no longer holds, or what is no longer
// selected because the Envelope has other labels or is gone.
func TestWhatAnAdministratorWroteIsTakenAwayWithTheRight(t *testing.T) {
	manifest := func(kind, namespace string) shipper.Manifest {
		return shipper.Manifest{"apiVersion": "v1", "kind": kind, "metadata": map[string]any{"name": "a", "namespace": namespace}}
	}
	old := &shipper.Envelope{ObjectMeta: metav1.ObjectMeta{Namespace: "work", Name: "e"}, Spec: shipper.EnvelopeSpec{
		Manifests: []shipper.Manifest{manifest("ConfigMap", "work"), manifest("ConfigMap", "payments"), manifest("Gone", "vault")},
	}}
	edited := func(edit func(*shipper.Envelope)) *admission.Request {
		now := old.DeepCopy()
		edit(now)
		return ask.Update("dev", now, old)
	}
	lacks := func(n, namespace string) string {
		return "spec.manifests[" + n + `]: you may not place namespaces "` + namespace + `" on clusters: that needs the verb "place" on it; ` +
			"kubectl create clusterrole place-namespaces-" + namespace + " --verb=place --resource=namespaces --resource-name=" + namespace +
			"; kubectl create clusterrolebinding place-namespaces-" + namespace + "-dev --clusterrole=place-namespaces-" + namespace +
			" --user=dev"
	}
	payments, vault := lacks("1", "payments"), lacks("2", "vault")
	for sentence, tc := range map[string]struct {
		req     *admission.Request
		message string
	}{
		"one that goes": {edited(func(e *shipper.Envelope) {
			e.Spec.Manifests = []shipper.Manifest{manifest("ConfigMap", "work")}
		}), payments + "; " + vault},
		"one of a kind that is no longer served": {edited(func(e *shipper.Envelope) { e.Spec.Manifests = e.Spec.Manifests[:2] }), vault},
		"other labels": {
			edited(func(e *shipper.Envelope) { e.Labels = map[string]string{"a": "b"} }), payments + "; " + vault,
		},
		"an owner": {edited(func(e *shipper.Envelope) {
			e.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "mine", UID: "mine"}}
		}), payments + "; " + vault},
		"all of it":     {ask.Delete("dev", old), payments + "; " + vault},
		"an annotation": {edited(func(e *shipper.Envelope) { e.Annotations = map[string]string{"a": "b"} }), ""},
		"all of it, with its namespace or owner": {
			ask.Delete("system:serviceaccount:kube-system:generic-garbage-collector", old), "",
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			for _, granted := range []bool{false, true} {
				rights, message, decision := ask.Grant(), tc.message, response.Decision("")
				if granted {
					rights, message = ask.Grant("dev place namespaces /payments", "dev place namespaces /vault"), ""
				}
				if message != "" {
					decision = response.Forbidden
				}
				hook := &envelope.Webhook{Resources: (&ask.World{Authz: rights}).Resources()}
				ask.CheckRefusal(t, hook.Validate(t.Context(), tc.req, &response.Response{}), decision, message)
			}
		})
	}
}

func TestAnEmptyListIsAccepted(t *testing.T) {
	hook := &envelope.Webhook{Resources: (&ask.World{Authz: ask.Grant()}).Resources()}
	empty := &shipper.Envelope{ObjectMeta: metav1.ObjectMeta{Namespace: "work", Name: "e"}, Spec: shipper.EnvelopeSpec{
		Manifests: []shipper.Manifest{{"apiVersion": "v1", "kind": "List", "items": []any{}}, {"apiVersion": "v1", "kind": "List"}},
	}}
	ask.CheckRefusal(t, hook.Validate(t.Context(), ask.Create("dev", empty), &response.Response{}), "", "")
	ask.CheckRefusal(t, hook.Validate(t.Context(), ask.Delete("dev", empty), &response.Response{}), "", "")
}

func TestDuplicatesInListsAreWarnedOfOrRefused(t *testing.T) {
	service := func(port map[string]any) shipper.Manifest {
		return shipper.Manifest{"apiVersion": "v1", "kind": "Service", "metadata": map[string]any{"name": "a"}, "spec": map[string]any{
			"ports": []any{map[string]any{"port": int64(80)}, port},
		}}
	}
	of := func(manifests ...shipper.Manifest) *shipper.Envelope {
		return &shipper.Envelope{
			ObjectMeta: metav1.ObjectMeta{Namespace: "work", Name: "e"}, Spec: shipper.EnvelopeSpec{Manifests: manifests},
		}
	}
	equal, other := service(map[string]any{"port": int64(80)}), service(map[string]any{"port": int64(80), "name": "x"})
	const twice = `spec.ports[0] and [1] have the same port and protocol "80, TCP"; `
	const refused = twice + "Kubernetes accepts no two: remove one"
	for sentence, tc := range map[string]struct {
		req      *admission.Request
		message  string
		warnings []string
	}{
		"equal elements": {
			req: ask.Create("dev", of(equal)), warnings: []string{"spec.manifests[0]: Service a: " + twice + "the second is left out"},
		},
		"elements that differ": {
			req:     ask.Create("dev", of(other)),
			message: `Envelope.shipper.booking.com "e" is invalid: spec.manifests[0]: Invalid value: "Service a": ` + refused,
		},
		"elements that differ, and were admitted before": {
			req: ask.Update("dev", of(other, shipper.Manifest{
				"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a"},
			}), of(other)), warnings: []string{"spec.manifests[0]: Service a: " + refused},
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			hook := &envelope.Webhook{Resources: (&ask.World{Authz: ask.Grant()}).Resources()}
			a, decision := &response.Response{}, response.Decision("")
			if tc.message != "" {
				decision = response.Invalid
			}
			ask.CheckRefusal(t, hook.Validate(t.Context(), tc.req, a), decision, tc.message)
			if diff := cmp.Diff(tc.warnings, a.Warnings()); diff != "" {
				t.Errorf("warnings: -want +got:\n%s", diff)
			}
		})
	}
}
