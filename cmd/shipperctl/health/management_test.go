// SPDX-License-Identifier: Apache-2.0

package health

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"shipper.dev/shipper/manifests"
)

var now = time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC)

func TestTell(t *testing.T) {
	found := Sum([]Check{
		{"kinds", nil},
		{"rights", []Finding{{Level: levelBroken, What: "the account may not:\nget pods", Why: "it cannot work", Do: "set it up"}}},
		{"pods", []Finding{{Level: levelWarning, What: "1 of 2 is ready", Why: "one is left", Do: "look\nat it"}}},
	})
	const want = `ok       kinds
BROKEN   rights: the account may not:
                get pods
           why: it cannot work
           do:  set it up
warning  pods: 1 of 2 is ready
           why: one is left
           do:  look
                at it
`
	if diff := cmp.Diff(want, found.Text(0)); diff != "" || found.Broken != 1 {
		t.Errorf("%d (-want +got)\n%s", found.Broken, diff)
	}
}

func TestDeploymentFindings(t *testing.T) {
	deployment := func(wanted *int32, ready int32) *appsv1.Deployment {
		d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "ship", Name: "shipper"}}
		d.Spec.Replicas, d.Status.ReadyReplicas = wanted, ready
		return d
	}
	none, two := int32(0), int32(2)
	for sentence, tc := range map[string]struct {
		is   *appsv1.Deployment
		want []string
	}{
		"Shipper runs elsewhere": {nil, nil},
		"all are ready":          {deployment(&two, 2), nil},
		"one is":                 {deployment(&two, 1), []string{"warning: 1 of 2 Pods of the Deployment ship/shipper are ready"}},
		"none is":                {deployment(nil, 0), []string{"BROKEN: none of 1 Pods of the Deployment ship/shipper is ready"}},
		"none is asked for":      {deployment(&none, 0), []string{"BROKEN: the Deployment ship/shipper is to have no Pods"}},
	} {
		if diff := cmp.Diff(tc.want, texts(deploymentFindings(tc.is))); diff != "" {
			t.Errorf("%s (-want +got)\n%s", sentence, diff)
		}
	}
}

func TestLeaseFindings(t *testing.T) {
	lease := func(holder string, ago time.Duration) *coordinationv1.Lease {
		seconds := int32(15)
		return &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{
			HolderIdentity: &holder, LeaseDurationSeconds: &seconds, RenewTime: &metav1.MicroTime{Time: now.Add(-ago)},
		}}
	}
	for sentence, tc := range map[string]struct {
		is   *coordinationv1.Lease
		want []string
	}{
		"one leads":                   {lease("pod-1", 15*time.Second), nil},
		"a clock that is a bit ahead": {lease("pod-1", -time.Minute), nil},
		"no leader ever":              {nil, []string{"BROKEN: no reconciler has ever led: there is no Lease shipper-reconciler"}},
		"it was released": {
			lease("", time.Second), []string{"BROKEN: no reconciler leads: nothing holds the Lease shipper-reconciler"},
		},
		"its holder is gone": {
			lease("pod-1", 16*time.Second),
			[]string{"BROKEN: the reconciler pod-1 has not renewed its Lease shipper-reconciler since 2026-11-21T07:59:44Z"},
		},
	} {
		if diff := cmp.Diff(tc.want, texts(leaseFindings(tc.is, now))); diff != "" {
			t.Errorf("%s (-want +got)\n%s", sentence, diff)
		}
	}
}

// object is one of the manifests.
func object(t *testing.T, folder, kind, name string) *unstructured.Unstructured {
	t.Helper()
	o, err := manifests.Object(folder, kind, name)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func TestKindFindings(t *testing.T) {
	want := object(t, manifests.CRD, "CustomResourceDefinition", "clusters.shipper.booking.com")
	served := want.DeepCopy()
	set(t, served, []any{map[string]any{"type": "Established", "status": "True"}}, "status", "conditions")
	set(t, served, "None", "spec", "conversion", "strategy") // a default
	unserved := want.DeepCopy()
	old := served.DeepCopy()
	set(t, old, "Namespaced", "spec", "scope")
	lax := served.DeepCopy()
	set(t, lax, true, "spec", "preserveUnknownFields")
	for sentence, tc := range map[string]struct {
		live *unstructured.Unstructured
		want []string
	}{
		"it is as it should be": {served, nil},
		"it is missing":         {nil, []string{"BROKEN: there is no CustomResourceDefinition clusters.shipper.booking.com"}},
		"it is not served":      {unserved, []string{"BROKEN: the CustomResourceDefinition clusters.shipper.booking.com is not served"}},
		"it is another": {
			old, []string{"BROKEN: the CustomResourceDefinition clusters.shipper.booking.com is not that of this shipperctl"},
		},
		"it was the original's": {
			lax, []string{"BROKEN: the CustomResourceDefinition clusters.shipper.booking.com keeps unknown fields, as the original's did"},
		},
	} {
		if diff := cmp.Diff(tc.want, texts(kindFindings(want, tc.live))); diff != "" {
			t.Errorf("%s (-want +got)\n%s", sentence, diff)
		}
	}
}

func TestContains(t *testing.T) {
	type object = map[string]any
	for sentence, tc := range map[string]struct {
		is, want any
		holds    bool
	}{
		"defaults are added":           {object{"a": int64(1), "b": true}, object{"a": int64(1)}, true},
		"a field is missing":           {object{"a": int64(1)}, object{"a": int64(1), "b": false}, false},
		"a value is another":           {object{"a": "x"}, object{"a": "y"}, false},
		"an item is missing":           {[]any{"a"}, []any{"a", "b"}, false},
		"an item is too much":          {[]any{"a", "b"}, []any{"a"}, false},
		"items are as wanted, or more": {[]any{object{"a": "x", "b": "y"}}, []any{object{"a": "x"}}, true},
		"a number is the same number":  {float64(1), int64(1), true},
		"and the other way round":      {int64(1), float64(1), true},
		"a number is another":          {float64(1.5), int64(1), false},
		"it is of another kind":        {"x", object{}, false},
	} {
		if contains(tc.is, tc.want) != tc.holds {
			t.Error(sentence)
		}
	}
}

func TestPolicyFindings(t *testing.T) {
	policy := object(t, manifests.Policy, "ValidatingAdmissionPolicy", "blocks.shipper.booking.com")
	binding := object(t, manifests.Policy, "ValidatingAdmissionPolicyBinding", "blocks.shipper.booking.com")
	lenient, auditing := policy.DeepCopy(), binding.DeepCopy()
	set(t, lenient, "Ignore", "spec", "failurePolicy")
	set(t, auditing, []any{"Audit"}, "spec", "validationActions")
	for sentence, tc := range map[string]struct {
		live *unstructured.Unstructured
		want []string
	}{
		"the policy is as it should be":  {policy, nil},
		"the binding is as it should be": {binding, nil},
		"it is missing":                  {nil, []string{"BROKEN: there is no ValidatingAdmissionPolicy blocks.shipper.booking.com"}},
		"it may be ignored": {
			lenient, []string{"BROKEN: ValidatingAdmissionPolicy blocks.shipper.booking.com has failurePolicy Ignore"},
		},
		"it only notes": {
			auditing, []string{"BROKEN: ValidatingAdmissionPolicy blocks.shipper.booking.com does not deny: its actions are [Audit]"},
		},
	} {
		if diff := cmp.Diff(tc.want, texts(policyFindings(policy, tc.live))); diff != "" {
			t.Errorf("%s (-want +got)\n%s", sentence, diff)
		}
	}
}

// set sets a field of an object.
func set(t *testing.T, o *unstructured.Unstructured, value any, path ...string) {
	t.Helper()
	if err := unstructured.SetNestedField(o.Object, value, path...); err != nil {
		t.Fatal(err)
	}
}
