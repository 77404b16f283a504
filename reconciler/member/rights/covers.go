// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
)

// GrantRolePrefix begins the name of the ClusterRole of a grant. Its first rule lets Shipper write the granted name; the others are
// --rules.
const GrantRolePrefix = "shipper:grant:"

// maxParts bounds the rights of a rule that are compared: lists of verbs, groups, resources and names multiply.
const maxParts = 10_000

// Uncovered is the index of the first of the wanted rules with a right that no given rule contains; -1 if there is none. An asterisk covers
// only itself, because no grant contains one. A rule of more than 10,000 rights is not covered.
func Uncovered(given, wanted []rbacv1.PolicyRule) int {
	return slices.IndexFunc(wanted, func(rule rbacv1.PolicyRule) bool {
		return countParts(&rule) > maxParts || slices.ContainsFunc(parts(&rule), func(one rbacv1.PolicyRule) bool {
			return !slices.ContainsFunc(given, func(of rbacv1.PolicyRule) bool { return contains(&of, &one) })
		})
	})
}

// countParts is how many rights a rule has. Each list of a rule that an API server stores has fewer than a million entries.
func countParts(rule *rbacv1.PolicyRule) int {
	n := len(rule.APIGroups) * len(rule.Resources)
	if n <= maxParts {
		n = n*max(1, len(rule.ResourceNames)) + len(rule.NonResourceURLs)
	}
	if n <= maxParts {
		n *= len(rule.Verbs)
	}
	return n
}

// parts are the rights of a rule one by one: each has one verb, and one path or one resource of one group with at most one name.
func parts(rule *rbacv1.PolicyRule) (out []rbacv1.PolicyRule) {
	names := [][]string{nil}
	if len(rule.ResourceNames) > 0 {
		names = slices.Collect(slices.Chunk(rule.ResourceNames, 1))
	}
	for verb := range slices.Chunk(rule.Verbs, 1) {
		for path := range slices.Chunk(rule.NonResourceURLs, 1) {
			out = append(out, rbacv1.PolicyRule{Verbs: verb, NonResourceURLs: path})
		}
		for group := range slices.Chunk(rule.APIGroups, 1) {
			for resource := range slices.Chunk(rule.Resources, 1) {
				for _, name := range names {
					out = append(out, rbacv1.PolicyRule{Verbs: verb, APIGroups: group, Resources: resource, ResourceNames: name})
				}
			}
		}
	}
	return out
}

// contains reports whether a rule has the right of a part. A rule without names has those to all names.
func contains(rule, part *rbacv1.PolicyRule) bool {
	every := func(of, in []string) bool {
		return !slices.ContainsFunc(of, func(one string) bool { return !slices.Contains(in, one) })
	}
	named := len(rule.ResourceNames) == 0 || len(part.ResourceNames) > 0 && every(part.ResourceNames, rule.ResourceNames)
	return named && every(part.Verbs, rule.Verbs) && every(part.APIGroups, rule.APIGroups) && every(part.Resources, rule.Resources) &&
		every(part.NonResourceURLs, rule.NonResourceURLs)
}
