// SPDX-License-Identifier: Apache-2.0

package block

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// Weakened names the changed fields of a block that may let changes pass that it stopped before. Any change of times, scopes or
// expressions counts, because these cannot be compared.
func Weakened(old, now *shipper.RolloutBlockSpec) []string {
	var out []string
	weaker := func(field string, is bool) {
		if is {
			out = append(out, field)
		}
	}
	same := equality.Semantic.DeepEqual
	weaker("schedule", now.Schedule != nil && !same(old.Schedule, now.Schedule))
	weaker("expiresAt", now.ExpiresAt != nil && (old.ExpiresAt == nil || now.ExpiresAt.Before(old.ExpiresAt)))
	weaker("ttl", now.TTL != nil && (old.TTL == nil || now.TTL.Duration < old.TTL.Duration))
	weaker("scope", now.Scope != nil && !same(old.Scope, now.Scope))
	weaker("matchConditions", len(now.MatchConditions) > 0 && !same(old.MatchConditions, now.MatchConditions))
	weaker("allow", slices.ContainsFunc(now.Allow, func(c shipper.RolloutBlockChange) bool {
		return !slices.Contains(old.Allow, c)
	}))
	weaker("enforcement", hardness(now.Enforcement) < hardness(old.Enforcement))
	weaker("overridePolicy", strictness(now.OverridePolicy) < strictness(old.OverridePolicy))
	weaker("requireOverrideReason", old.RequireOverrideReason && !now.RequireOverrideReason)
	return out
}

func hardness(e shipper.RolloutBlockEnforcement) int {
	switch e {
	case shipper.RolloutBlockAudit:
		return 0
	case shipper.RolloutBlockWarn:
		return 1
	}
	return 2
}

func strictness(p shipper.RolloutBlockOverridePolicy) int {
	switch p {
	case shipper.RolloutBlockAnyone:
		return 0
	case shipper.RolloutBlockNobody:
		return 2
	}
	return 1
}
