// SPDX-License-Identifier: Apache-2.0

package block

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

func TestWeakened(t *testing.T) {
	type spec = shipper.RolloutBlockSpec
	moment := func(day int) *metav1.Time { return &metav1.Time{Time: time.Date(2026, 12, day, 0, 0, 0, 0, time.UTC)} }
	during := func(day int) *shipper.RolloutBlockSchedule { return &shipper.RolloutBlockSchedule{End: moment(day)} }
	hours := func(n int) *metav1.Duration { return &metav1.Duration{Duration: time.Duration(n) * time.Hour} }
	charts := func(names ...string) *shipper.RolloutBlockScope { return &shipper.RolloutBlockScope{Charts: names} }
	when := func(text string) []shipper.RolloutBlockMatchCondition {
		return []shipper.RolloutBlockMatchCondition{{Name: "x", Expression: text}}
	}
	allow := func(kinds ...shipper.RolloutBlockChange) spec { return spec{Allow: kinds} }
	for sentence, tc := range map[string]struct {
		old, now spec
		want     []string
	}{
		"nothing":            {spec{Message: "a"}, spec{Message: "a"}, nil},
		"another message":    {spec{Message: "a"}, spec{Message: "b", Author: shipper.RolloutBlockAuthor{Name: "b"}}, nil},
		"a schedule comes":   {spec{}, spec{Schedule: during(1)}, []string{"schedule"}},
		"a schedule changes": {spec{Schedule: during(1)}, spec{Schedule: during(2)}, []string{"schedule"}},
		"a schedule goes":    {spec{Schedule: during(1)}, spec{}, nil},
		"a schedule stays":   {spec{Schedule: during(1)}, spec{Schedule: during(1)}, nil},
		"an end comes":       {spec{}, spec{ExpiresAt: moment(2)}, []string{"expiresAt"}},
		"an end is earlier":  {spec{ExpiresAt: moment(2)}, spec{ExpiresAt: moment(1)}, []string{"expiresAt"}},
		"an end is later":    {spec{ExpiresAt: moment(1)}, spec{ExpiresAt: moment(2)}, nil},
		"an end goes":        {spec{ExpiresAt: moment(1)}, spec{}, nil},
		"a ttl comes":        {spec{}, spec{TTL: hours(2)}, []string{"ttl"}},
		"a ttl is shorter":   {spec{TTL: hours(2)}, spec{TTL: hours(1)}, []string{"ttl"}},
		"a ttl is longer":    {spec{TTL: hours(1)}, spec{TTL: hours(2)}, nil},
		"a ttl goes":         {spec{TTL: hours(1)}, spec{}, nil},
		"a scope comes":      {spec{}, spec{Scope: charts("a")}, []string{"scope"}},
		"a scope changes":    {spec{Scope: charts("a")}, spec{Scope: charts("a", "b")}, []string{"scope"}},
		"a scope goes":       {spec{Scope: charts("a")}, spec{}, nil},
		"a condition comes":  {spec{}, spec{MatchConditions: when("true")}, []string{"matchConditions"}},
		"a condition changes": {
			spec{MatchConditions: when("true")}, spec{MatchConditions: when("false")}, []string{"matchConditions"},
		},
		"a condition goes":               {spec{MatchConditions: when("true")}, spec{}, nil},
		"more is let through":            {allow("Abort"), allow("Abort", "Retreat"), []string{"allow"}},
		"other is let through":           {allow("Abort"), allow("Retreat"), []string{"allow"}},
		"less is let through":            {allow("Abort", "Retreat"), allow("Retreat"), nil},
		"in another order":               {allow("Abort", "Retreat"), allow("Retreat", "Abort"), nil},
		"it only warns":                  {spec{}, spec{Enforcement: "Warn"}, []string{"enforcement"}},
		"it only notes":                  {spec{Enforcement: "Warn"}, spec{Enforcement: "Audit"}, []string{"enforcement"}},
		"it denies, in words":            {spec{}, spec{Enforcement: "Deny"}, nil},
		"it denies again":                {spec{Enforcement: "Audit"}, spec{}, nil},
		"anyone overrides":               {spec{}, spec{OverridePolicy: "Anyone"}, []string{"overridePolicy"}},
		"some may override":              {spec{OverridePolicy: "Nobody"}, spec{OverridePolicy: "Authorized"}, []string{"overridePolicy"}},
		"it allows no override":          {spec{OverridePolicy: "Authorized"}, spec{OverridePolicy: "Nobody"}, nil},
		"reasons do not matter any more": {spec{RequireOverrideReason: true}, spec{}, []string{"requireOverrideReason"}},
		"reasons matter":                 {spec{}, spec{RequireOverrideReason: true}, nil},
		"everything at once": {
			spec{RequireOverrideReason: true},
			spec{
				Schedule: during(1), ExpiresAt: moment(1), TTL: hours(1), Scope: charts("a"), MatchConditions: when("true"),
				Allow: []shipper.RolloutBlockChange{"Abort"}, Enforcement: "Audit", OverridePolicy: "Anyone",
			},
			[]string{
				"schedule", "expiresAt", "ttl", "scope", "matchConditions", "allow", "enforcement", "overridePolicy",
				"requireOverrideReason",
			},
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Weakened(&tc.old, &tc.now)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
