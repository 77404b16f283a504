// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"net"
	"strconv"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

func TestAGetShowsWhatTheManagerWrote(t *testing.T) {
	t.Parallel()
	s := newRolloutFixture(t)
	block := s.block("read-your-writes")
	for i := range 100 {
		value := strconv.Itoa(i)
		was := block.DeepCopy()
		metav1.SetMetaDataAnnotation(&block.ObjectMeta, "test", value)
		s.must(rollouts.client.Patch(t.Context(), block, client.MergeFrom(was)))
		got := &shipper.RolloutBlock{}
		s.must(rollouts.client.Get(t.Context(), client.ObjectKeyFromObject(block), got))
		if got.Annotations["test"] != value {
			t.Fatalf("write %d: got %q", i, got.Annotations["test"])
		}
	}
	s.must(rollouts.client.Delete(t.Context(), block))
	if err := rollouts.client.Get(t.Context(), client.ObjectKeyFromObject(block), block); client.IgnoreNotFound(err) != nil || err == nil {
		t.Errorf("the deleted object: got %v, want not found", err)
	}
}

// TestAHangingAdmissionWebhookOfATenantDelaysNoList: a List that waited for all writes of its kind would let a tenant stop every rollout.
func TestAHangingAdmissionWebhookOfATenantDelaysNoList(t *testing.T) {
	t.Parallel()
	s := newRolloutFixture(t)
	silent, err := net.Listen("tcp", "127.0.0.1:0") // accepts connections and answers nothing
	s.must(err)
	t.Cleanup(func() { _ = silent.Close() })
	never := admissionregistrationv1.SideEffectClassNone
	hook := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}}
	hook.Webhooks = []admissionregistrationv1.ValidatingWebhook{{
		Name: "silent.example.com", SideEffects: &never, AdmissionReviewVersions: []string{"v1"}, TimeoutSeconds: ptr.To[int32](30),
		ClientConfig:      admissionregistrationv1.WebhookClientConfig{URL: ptr.To("https://" + silent.Addr().String())},
		NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": s.namespace}},
		Rules: []admissionregistrationv1.RuleWithOperations{{
			Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
			Rule: admissionregistrationv1.Rule{
				APIGroups: []string{shipper.GroupName}, APIVersions: []string{"*"}, Resources: []string{"rolloutblocks"},
			},
		}},
	}}
	s.must(s.Create(t.Context(), hook))
	t.Cleanup(func() { _ = s.Delete(context.Background(), hook) })
	block := func(name string) *shipper.RolloutBlock {
		b := &shipper.RolloutBlock{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name}}
		b.Spec.Message = "no"
		return b
	}
	s.refuses(func() error { // until the API server calls the webhook
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		return s.Create(ctx, block("try"), client.DryRunAll)
	})
	writing, stop := context.WithCancel(t.Context())
	defer stop()
	done := make(chan error, 1)
	go func() { done <- rollouts.client.Create(writing, block("hangs")) }()
	// A Get of the object waits for the write: then it is under way.
	s.until("waits", func() string {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		err := rollouts.client.Get(ctx, client.ObjectKey{Namespace: s.namespace, Name: "hangs"}, &shipper.RolloutBlock{})
		if ctx.Err() != nil && err != nil {
			return "waits"
		}
		return "answers"
	})
	s.must(rollouts.client.List(t.Context(), &shipper.RolloutBlockList{}))
	select {
	case err := <-done:
		t.Errorf("the List returned after the write, which ended with: %v", err)
	default:
		stop()
		<-done
	}
}
