// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"
)

func TestRulesThatGiveMoreThanTheyListAreUnbounded(t *testing.T) {
	const (
		token    = "creates tokens of ServiceAccounts, by which the authors of what is placed get their rights"
		approves = "approves certificates, by which the authors of what is placed become any user"
		signs    = "signs or approves certificates that the API server trusts: list in resourceNames the signers, and none of kubernetes.io"
	)
	verb := func(verb string) string {
		return "has the verb " + verb + ", by which the authors of what is placed get any right"
	}
	for rule, want := range map[string]string{
		`{apiGroups: [""], resources: [serviceaccounts/token], verbs: [create]}`:                                      token,
		`{apiGroups: [""], resources: [serviceaccounts/token], resourceNames: [one], verbs: [create]}`:                token,
		`{apiGroups: [apps, ""], resources: [nodes, serviceaccounts/token], verbs: [get, create]}`:                    token,
		`{apiGroups: [""], resources: [serviceaccounts], verbs: [get, create]}`:                                       "",
		`{apiGroups: [certificates.k8s.io], resources: [certificatesigningrequests/approval], verbs: [update]}`:       approves,
		`{apiGroups: [certificates.k8s.io], resources: [certificatesigningrequests/nodeclient], verbs: [create]}`:     approves,
		`{apiGroups: [certificates.k8s.io], resources: [certificatesigningrequests/selfnodeclient], verbs: [create]}`: approves,
		`{apiGroups: [certificates.k8s.io], resources: [certificatesigningrequests], verbs: [create, list, delete]}`:  "",
		`{apiGroups: [certificates.k8s.io], resources: [signers], verbs: [approve]}`:                                  signs,
		`{apiGroups: [certificates.k8s.io], resources: [signers], verbs: [sign]}`:                                     signs,
		`{apiGroups: [certificates.k8s.io], resources: [signers], resourceNames: [example.com/a, kubernetes.io/kube-apiserver-client], ` +
			`verbs: [sign]}`: signs,
		`{apiGroups: [certificates.k8s.io], resources: [signers], resourceNames: [kubernetes.io/*], verbs: [approve]}`:    signs,
		`{apiGroups: [certificates.k8s.io], resources: [signers], resourceNames: [issuers.example.com/*], verbs: [sign]}`: "",

		`{apiGroups: [""], resources: [users, groups], verbs: [impersonate]}`:                  verb("impersonate"),
		`{apiGroups: [authentication.k8s.io], resources: [users], verbs: ["impersonate:uid"]}`: verb("impersonate:uid"),
		`{apiGroups: [""], resources: [pods], verbs: ["impersonate-on:uid:list"]}`:             verb("impersonate-on:uid:list"),

		`{apiGroups: [rbac.authorization.k8s.io], resources: [clusterroles], resourceNames: [edit], verbs: [bind]}`: verb("bind"),
		`{apiGroups: [rbac.authorization.k8s.io], resources: [clusterroles], verbs: [escalate]}`:                    verb("escalate"),
		`{apiGroups: [rbac.authorization.k8s.io], resources: [clusterroles], verbs: [get, list, watch]}`:            "",
		`{apiGroups: [admissionregistration.k8s.io], resources: [validatingwebhookconfigurations], verbs: [patch]}`: "writes objects that give " +
			"rights: grant these by name instead",
		`{apiGroups: [""], resources: [nodes], verbs: ["*"]}`: "has '*': list what it stands for",
	} {
		t.Run(rule, func(t *testing.T) {
			var parsed rbacv1.PolicyRule
			if err := yaml.UnmarshalStrict([]byte(rule), &parsed); err != nil {
				t.Fatal(err)
			}
			if got := Unbounded(&parsed); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}
