// SPDX-License-Identifier: Apache-2.0

package block

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

func aBlock(namespace, name string) *shipper.RolloutBlock {
	return &shipper.RolloutBlock{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}

func nn(namespace, name string) types.NamespacedName {
	return types.NamespacedName{Namespace: namespace, Name: name}
}

// over is an override without a record.
func over(namespace, name string) Override { return Override{Name: nn(namespace, name)} }

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func TestBears(t *testing.T) {
	for name, tc := range map[string]struct {
		block     *shipper.RolloutBlock
		namespace string
		global    string
		want      bool
	}{
		"a block bears on its own namespace":               {aBlock("frontend", "demo"), "frontend", "global", true},
		"a block does not bear on another namespace":       {aBlock("frontend", "demo"), "backend", "global", false},
		"a global block bears on every namespace":          {aBlock("global", "dns"), "backend", "global", true},
		"with no global namespace, none is global":         {aBlock("", "dns"), "backend", "", false},
		"the global namespace itself is blocked by it too": {aBlock("global", "dns"), "global", "global", true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Bears(tc.block, tc.namespace, tc.global); got != tc.want {
				t.Errorf("Bears() = %v, want %v", got, tc.want)
			}
		})
	}
}

func TestJudge(t *testing.T) {
	dns, demo := aBlock("global", "dns"), aBlock("frontend", "demo")
	for name, tc := range map[string]struct {
		bearing   []*shipper.RolloutBlock
		overrides []Override
		want      Verdict
		blocked   bool
		message   string
	}{
		"nothing blocks": {},
		"a block is in effect": {
			bearing: []*shipper.RolloutBlock{dns},
			want:    Verdict{Effective: []*shipper.RolloutBlock{dns}},
			blocked: true, message: "rollouts blocked by: global/dns",
		},
		"blocks are named in order, once each": {
			bearing: []*shipper.RolloutBlock{dns, demo, dns},
			want:    Verdict{Effective: []*shipper.RolloutBlock{demo, dns}},
			blocked: true, message: "rollouts blocked by: frontend/demo,global/dns",
		},
		"an override of every block lets the change through": {
			bearing:   []*shipper.RolloutBlock{dns, demo},
			overrides: []Override{over("global", "dns"), over("frontend", "demo")},
			want:      Verdict{Overridden: []*shipper.RolloutBlock{demo, dns}},
		},
		"an override of one block leaves the other in effect": {
			bearing:   []*shipper.RolloutBlock{dns, demo},
			overrides: []Override{over("frontend", "demo")},
			want: Verdict{
				Effective:  []*shipper.RolloutBlock{dns},
				Overridden: []*shipper.RolloutBlock{demo},
			},
			blocked: true, message: "rollouts blocked by: global/dns",
		},
		"an override that names no block blocks": {
			overrides: []Override{over("global", "typo"), over("backend", "gone"), over("global", "typo")},
			want:      Verdict{Unknown: []types.NamespacedName{nn("backend", "gone"), nn("global", "typo")}},
			blocked:   true,
			message:   "the override names blocks that do not bear on this namespace: backend/gone,global/typo",
		},
		"a block in effect and an override that names none are both reported": {
			bearing:   []*shipper.RolloutBlock{dns},
			overrides: []Override{over("global", "typo")},
			want: Verdict{
				Effective: []*shipper.RolloutBlock{dns},
				Unknown:   []types.NamespacedName{nn("global", "typo")},
			},
			blocked: true,
			message: "rollouts blocked by: global/dns; " +
				"the override names blocks that do not bear on this namespace: global/typo",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := Judge(tc.bearing, tc.overrides, Change{}, noon)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("Judge() (-want +got):\n%s", diff)
			}
			if got.Blocked() != tc.blocked {
				t.Errorf("Blocked() = %v, want %v", got.Blocked(), tc.blocked)
			}
			if got.Message() != tc.message {
				t.Errorf("Message() = %q, want %q", got.Message(), tc.message)
			}
		})
	}
}

// one is a block with a UID, changed by an edit.
func one(name string, edit func(*shipper.RolloutBlockSpec)) *shipper.RolloutBlock {
	b := aBlock("global", name)
	b.UID = types.UID(name + "-uid")
	if edit != nil {
		edit(&b.Spec)
	}
	return b
}

func TestJudgeByPolicies(t *testing.T) {
	plain := one("plain", nil)
	law := one("law", func(s *shipper.RolloutBlockSpec) { s.OverridePolicy = shipper.RolloutBlockNobody })
	anyone := one("anyone", func(s *shipper.RolloutBlockSpec) { s.OverridePolicy = shipper.RolloutBlockAnyone })
	warns := one("warns", func(s *shipper.RolloutBlockSpec) { s.Enforcement = shipper.RolloutBlockWarn })
	audits := one("audits", func(s *shipper.RolloutBlockSpec) { s.Enforcement = shipper.RolloutBlockAudit })
	denies := one("denies", func(s *shipper.RolloutBlockSpec) { s.Enforcement = shipper.RolloutBlockDeny })
	sleeps := one("sleeps", func(s *shipper.RolloutBlockSpec) { s.ExpiresAt = &metav1.Time{Time: noon} })
	elsewhere := one("elsewhere", func(s *shipper.RolloutBlockSpec) { s.Scope = &shipper.RolloutBlockScope{Charts: []string{"x"}} })
	uid := func(name, uid string) Override { return Override{Name: nn("global", name), UID: types.UID(uid)} }
	type list = []*shipper.RolloutBlock
	for sentence, tc := range map[string]struct {
		bearing   list
		overrides []Override
		want      Verdict
	}{
		"one that warns and one that notes stop nothing": {
			list{warns, audits}, nil, Verdict{Warning: list{warns}, Auditing: list{audits}},
		},
		"one that denies does so beside them": {
			list{warns, denies, audits}, nil, Verdict{Effective: list{denies}, Warning: list{warns}, Auditing: list{audits}},
		},
		"a warning can be overridden too":   {list{warns}, []Override{uid("warns", "")}, Verdict{Overridden: list{warns}}},
		"policy Nobody: the block holds":    {list{law}, []Override{uid("law", "law-uid")}, Verdict{Effective: list{law}}},
		"policy Anyone: it is overridden":   {list{anyone}, []Override{uid("anyone", "anyone-uid")}, Verdict{Overridden: list{anyone}}},
		"an override is of this very block": {list{plain}, []Override{uid("plain", "plain-uid")}, Verdict{Overridden: list{plain}}},
		"an override of an earlier block of the name is none, nor unknown": {
			list{plain}, []Override{uid("plain", "earlier")}, Verdict{Effective: list{plain}},
		},
		"an override of which nothing was recorded is one of any": {list{plain}, []Override{uid("plain", "")}, Verdict{Overridden: list{plain}}},
		"one of several overrides of the name is enough": {
			list{plain, plain}, []Override{uid("plain", "earlier"), uid("plain", "plain-uid")}, Verdict{Overridden: list{plain}},
		},
		"an override of an inactive block stops nothing and is known": {list{sleeps}, []Override{uid("sleeps", "")}, Verdict{}},
		"an override of a block elsewhere does too":                   {list{elsewhere}, []Override{uid("elsewhere", "")}, Verdict{}},
		"inactive blocks and those elsewhere stop nothing":            {list{sleeps, elsewhere}, nil, Verdict{}},
	} {
		t.Run(sentence, func(t *testing.T) {
			change := Change{Environments: []*shipper.ReleaseEnvironment{env("nginx")}}
			if diff := cmp.Diff(tc.want, Judge(tc.bearing, tc.overrides, change, noon)); diff != "" {
				t.Errorf("Judge() (-want +got):\n%s", diff)
			}
		})
	}
}

func TestJudgeLeavesItsArgumentsAlone(t *testing.T) {
	bearing := []*shipper.RolloutBlock{aBlock("z", "z"), aBlock("a", "a")}
	overrides := []Override{over("z", "z"), over("a", "a")}
	Judge(bearing, overrides, Change{}, noon)
	if bearing[0].Name != "z" || overrides[0].Name.Name != "z" {
		t.Errorf("Judge sorted its arguments: %v %v", bearing, overrides)
	}
}
