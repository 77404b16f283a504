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
	if i := slices.IndexFunc(rule.Verbs, givesAnyRight); i >= 0 {
		return "has the verb " + rule.Verbs[i] + ", by which the authors of what is placed get any right"
	}
	if why := givesIdentity(rule); why != "" {
		return why
	}
	grants := slices.ContainsFunc(rule.APIGroups, func(group string) bool { return Grants(schema.GroupResource{Group: group}) })
	if grants && writes(rule) {
		return "writes objects that give rights: grant these by name instead"
	}
	return ""
}

// givesAnyRight reports whether a verb gives rights that no rule lists. Kubernetes also has verbs such as impersonate:user-info.
func givesAnyRight(verb string) bool {
	return verb == "escalate" || verb == "bind" || strings.HasPrefix(verb, "impersonate")
}

// givesIdentity is why a rule lets its subjects become another user, with the rights of that one; empty if it does not.
func givesIdentity(rule *rbacv1.PolicyRule) string {
	of := func(group string, resources ...string) bool {
		return writes(rule) && slices.Contains(rule.APIGroups, group) &&
			slices.ContainsFunc(resources, func(resource string) bool { return slices.Contains(rule.Resources, resource) })
	}
	const certificates = "certificates.k8s.io"
	foreign := len(rule.ResourceNames) > 0 && !slices.ContainsFunc(rule.ResourceNames, ofKubernetes)
	switch {
	case of("", "serviceaccounts/token"):
		return "creates tokens of ServiceAccounts, by which the authors of what is placed get their rights"
	case of(certificates, "certificatesigningrequests/approval", "certificatesigningrequests/nodeclient",
		"certificatesigningrequests/selfnodeclient"):
		return "approves certificates, by which the authors of what is placed become any user"
	case !foreign && of(certificates, "signers"):
		return "signs or approves certificates that the API server trusts: list in resourceNames the signers, and none of kubernetes.io"
	}
	return ""
}

// ofKubernetes reports whether a signer is one whose certificates an API server may accept.
func ofKubernetes(signer string) bool {
	domain, _, _ := strings.Cut(signer, "/")
	return domain == "kubernetes.io" || strings.HasSuffix(domain, ".kubernetes.io")
}

// writes reports whether a rule has a verb that changes something.
func writes(rule *rbacv1.PolicyRule) bool {
	return slices.ContainsFunc(rule.Verbs, func(verb string) bool { return !slices.Contains(reading, verb) })
}
