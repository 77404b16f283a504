// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// reading are the verbs that change nothing.
var reading = []string{"get", "list", "watch"}

// Unbounded is why a rule is in no grant, and in no role that a grant lets Shipper write: with it, the authors of what is placed could get
// any right, or write what is granted by name. It is empty for other rules.
func Unbounded(rule *rbacv1.PolicyRule) string {
	if slices.ContainsFunc(slices.Concat(rule.Verbs, rule.APIGroups, rule.Resources, rule.NonResourceURLs), func(value string) bool {
		return strings.Contains(value, "*")
	}) {
		return "has '*': list what it stands for"
	}
	for _, verb := range []string{"escalate", "bind", "impersonate"} {
		if slices.Contains(rule.Verbs, verb) {
			return "has the verb " + verb + ", by which the authors of what is placed get any right"
		}
	}
	grants := slices.ContainsFunc(rule.APIGroups, func(group string) bool { return Grants(schema.GroupResource{Group: group}) })
	if grants && slices.ContainsFunc(rule.Verbs, func(verb string) bool { return !slices.Contains(reading, verb) }) {
		return "writes objects that give rights: grant these by name instead"
	}
	return ""
}
