// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rules "shipper.dev/shipper/apis/rules/override"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/env"
)

// resourceOverride is one that names author as its author, unless that is "".
func resourceOverride(namespace, author string) *shipper.ResourceOverride {
	o := &shipper.ResourceOverride{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "by-cluster"}}
	if author != "" {
		o.Annotations = map[string]string{shipper.OverrideRequestedByAnnotation: author}
	}
	o.Spec = shipper.ResourceOverrideSpec{
		Resources: []shipper.OverriddenResource{{Kind: "ConfigMap"}}, Rules: []shipper.OverrideRule{{Delete: true}},
	}
	return o
}

// TestTheAuthorOfAnOverrideIsTheLastOneToWriteItsSpec asks the webhook: the author approves no Release with the override.
func TestTheAuthorOfAnOverrideIsTheLastOneToWriteItsSpec(t *testing.T) {
	aggregated(t)
	ns := namespace(t)
	for _, name := range []string{"ann", "bob"} {
		bind(t, ns, person(name), editRole)
	}
	ann, bob := inGroups(t, "ann"), inGroups(t, "bob")
	o := resourceOverride(ns, "eve")
	env.Eventually(t, "the rights to be known", func(ctx context.Context) error { return ann.Create(ctx, o) })
	author := func(want string) {
		t.Helper()
		if err := admin.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
			t.Fatal(err)
		}
		if got := o.Annotations[shipper.OverrideRequestedByAnnotation]; got != want {
			t.Errorf("the author is %q, want %q", got, want)
		}
	}
	author("ann")
	patch := func(who *user, text string) error {
		return who.Patch(t.Context(), copyOf(o), client.RawPatch(types.MergePatchType, []byte(text)))
	}
	if err := patch(bob, `{"metadata":{"labels":{"a":"b"}}}`); err != nil {
		t.Fatal(err)
	}
	author("ann")
	checkRefused(t, patch(bob, annotations(`"`+shipper.OverrideRequestedByAnnotation+`":"bob"`)), refused{422, `leave it out, or at "ann"`})
	if err := patch(bob, `{"spec":{"priority":1}}`); err != nil {
		t.Fatal(err)
	}
	author("bob")
	if got, want := rules.EarlierWriters(o), []string{"ann"}; !slices.Equal(got, want) {
		t.Errorf("it was written before by %q, want %q", got, want)
	}
	checkRefused(t, patch(bob, annotations(`"`+shipper.OverrideEarlierWritersAnnotation+`":null`)), refused{})
	author("bob")
	if got, want := rules.EarlierWriters(o), []string{"ann"}; !slices.Equal(got, want) {
		t.Errorf("it was written before by %q after the record was removed, want %q", got, want)
	}
}

func TestThePolicyAloneJudgesOverrides(t *testing.T) {
	aggregated(t)
	ns := namespace(t)
	bind(t, ns, person("ann"), editRole)
	bind(t, ns, person("reader"), "shipper:edit")
	withoutWebhooks(t)
	judged := func(who, author string) error {
		return inGroups(t, who).Create(t.Context(), resourceOverride(ns, author), client.DryRunAll)
	}
	env.Eventually(t, "the rights to be known", func(context.Context) error { return judged("ann", "ann") })
	const name = "annotation shipper.booking.com/override.requested-by names the user who writes the spec"
	for sentence, tc := range map[string]struct {
		who, author string
		want        refused
	}{
		"in the own name":          {"ann", "ann", refused{}},
		"in no name":               {"ann", "", refused{403, name}},
		"in the name of another":   {"ann", "bob", refused{403, name}},
		"by a user who reads less": {"reader", "reader", refused{403, `needs the verb "list" on secrets and configmaps in namespace ` + ns}},
	} {
		t.Run(sentence, func(t *testing.T) { checkRefused(t, judged(tc.who, tc.author), tc.want) })
	}
}
