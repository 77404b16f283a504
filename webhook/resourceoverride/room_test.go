// SPDX-License-Identifier: Apache-2.0

package resourceoverride_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/admission/ask"
	"shipper.dev/shipper/webhook/resourceoverride"
	"shipper.dev/shipper/webhook/response"
)

// numbered are n ResourceOverrides of a namespace.
func numbered(namespace string, n int) []shipper.ResourceOverride {
	var out []shipper.ResourceOverride
	for i := range n {
		o := *labels(namespace, "none")
		o.Name = fmt.Sprint("o", i)
		out = append(out, o)
	}
	return out
}

// TestANamespaceHasNoMoreOverridesThanCanBeRead: all of them are read for each new Release, also those that bear on no Application.
func TestANamespaceHasNoMoreOverridesThanCanBeRead(t *testing.T) {
	const full = `ResourceOverride.shipper.booking.com "labels" is invalid: metadata.namespace: Forbidden: namespace %s has 200 ` +
		`ResourceOverrides, and may not have more: delete some, or add the rules to one that exists`
	update := ask.Update("ann", writtenBy("ann", labels("shop", "new")), writtenBy("ann", labels("shop", "none")))
	unread := errors.New("too slow")
	for sentence, tc := range map[string]struct {
		req      *admission.Request
		there    []shipper.ResourceOverride
		err      error
		decision response.Decision
		want     string
	}{
		"the last one": {create("ann", labels("shop")), numbered("shop", 199), nil, "", ""},
		"one more": {
			create("ann", labels("shop")), numbered("shop", 200), nil, response.Invalid, fmt.Sprintf(full, "shop"),
		},
		"one more of all namespaces": {
			create("ann", labels("global")), numbered("global", 200), nil, response.Invalid, fmt.Sprintf(full, "global"),
		},
		"not because of another namespace": {create("ann", labels("shop")), numbered("global", 200), nil, "", ""},
		"an edit":                          {update, numbered("shop", 300), nil, "", ""},
		"one where they cannot be counted": {create("ann", labels("shop")), nil, unread, response.Unavailable, "too slow"},
		"an edit where they cannot be":     {update, nil, unread, "", ""},
	} {
		t.Run(sentence, func(t *testing.T) {
			authz := ask.Grant(append(editor("ann"), "ann"+everywhere, "ann place *.* /")...)
			hook := &resourceoverride.Webhook{
				Authz: authz, GlobalNamespace: "global", State: known{overrides: tc.there, err: tc.err}, Charts: &judging{},
			}
			ask.CheckRefusal(t, hook.Validate(t.Context(), tc.req, &response.Response{}), tc.decision, tc.want)
		})
	}
}

// TestMandatoryOverridesHaveRoomOfTheirOwn: otherwise a Release could be rolled back to none with as many others as there may be.
func TestMandatoryOverridesHaveRoomOfTheirOwn(t *testing.T) {
	long := func(name string, operations int, mandatory bool) *shipper.ResourceOverride {
		o := labels("global")
		o.Name, o.Spec.Mandatory = name, mandatory
		o.Spec.Rules[0].Patch = slices.Repeat(o.Spec.Rules[0].Patch, operations)
		return o
	}
	const full = `ResourceOverride.shipper.booking.com "new" is invalid: spec.mandatory: Invalid value: true: an Application could have no ` +
		`Release, not even by a rollback: 2 mandatory ResourceOverrides bear on the Application and have 251 operations, more than the 250 ` +
		`that a Release may keep: delete some, or make some optional`
	for sentence, tc := range map[string]struct {
		there, new *shipper.ResourceOverride
		want       string
	}{
		"as many as there may be":    {long("other", 150, true), long("new", 100, true), ""},
		"more":                       {long("other", 150, true), long("new", 101, true), full},
		"beside one that is not":     {long("other", 700, false), long("new", 250, true), ""},
		"in place of itself":         {long("new", 200, true), long("new", 200, true), ""},
		"one that is not, beside it": {long("other", 250, true), long("new", 700, false), ""},
	} {
		t.Run(sentence, func(t *testing.T) {
			hook := &resourceoverride.Webhook{
				Authz: ask.Grant("ann"+everywhere, "ann place *.* /"), GlobalNamespace: "global", Charts: &judging{},
				State: known{overrides: []shipper.ResourceOverride{*tc.there}},
			}
			decision := response.Decision("")
			if tc.want != "" {
				decision = response.Invalid
			}
			ask.CheckRefusal(t, hook.Validate(t.Context(), create("ann", tc.new), &response.Response{}), decision, tc.want)
		})
	}
}

// TestRulesAreNotTriedBeyondTheirTime: each rule may be compared with a thousand clusters.
func TestRulesAreNotTriedBeyondTheirTime(t *testing.T) {
	charts := &judging{}
	hook := &resourceoverride.Webhook{Authz: ask.Grant(editor("ann")...), GlobalNamespace: "global", State: known{}, Charts: charts}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	a := &response.Response{}
	if err := hook.Validate(ctx, create("ann", labels("shop", "web")), a); err != nil {
		t.Fatal(err)
	}
	want := []any{[]string(nil), []string{"not tried on Application web: context canceled", effect}}
	if diff := cmp.Diff(want, []any{charts.asked, a.Warnings()}); diff != "" {
		t.Error(diff)
	}
}
