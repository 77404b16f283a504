// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

const (
	// writesGuard are the rights of another grant: the API server lets the granted account give them.
	writesGuard = "{apiGroups: [admissionregistration.k8s.io], resources: [validatingwebhookconfigurations], resourceNames: [guard], " +
		"verbs: [patch]}"
	noGrant = "; no grant covers that: have an administrator of the cluster write it, and leave it out here"
	gives   = "writes objects that give rights: grant these by name instead" + noGrant
)

// lacksRules is the message about an object called monitoring whose rights the grants of the cluster lack.
func lacksRules(resource string) string {
	of := resource + ".rbac.authorization.k8s.io"
	return "Shipper's account lacks rights to " + of + "; some of them give rights that the grants of the cluster lack, so an administrator " +
		"grants each name, with these rights in FILE: shipperctl clusters grant " + of + "/monitoring --clusters eu-1 --reason WHY --rules FILE"
}

func roleWith(name, rules string) string {
	return fmt.Sprintf("{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: %s}, rules: [%s]}\n", name, rules)
}

// labelledRole is a ClusterRole with bounded rights, and a label.
func labelledRole(label string) string { return labelled(clusterRole("monitoring", "get"), label) }

func labelled(role, label string) string {
	return strings.Replace(role, "{name: monitoring}", `{name: monitoring, labels: {`+label+`: "true"}}`, 1)
}

// aggregating is a ClusterRole whose rules are those of the ones with a label.
func aggregating(name, label string) string {
	return fmt.Sprintf("{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: %s}, aggregationRule: "+
		"{clusterRoleSelectors: [{matchLabels: {%s: \"true\"}}]}}\n", name, label)
}

func bindingOf(name, role string) string {
	return fmt.Sprintf("{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: %s}, roleRef: {apiGroup: "+
		"rbac.authorization.k8s.io, kind: ClusterRole, name: %q}, subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, "+
		"name: mallory}]}\n", name, role)
}

// TestAGrantHandsOnNoOtherGrant: tenants with the verb place on the names monitoring, and with no other rights.
func TestAGrantHandsOnNoOtherGrant(t *testing.T) {
	for sentence, tc := range map[string]struct{ there, content, reason, want string }{
		"a role with the rights of another grant": {
			content: roleWith("monitoring", writesGuard), reason: shipper.NotGranted, want: "ClusterRole monitoring: rules[0] " + gives,
		},
		"a role with such rights beside others": {
			content: roleWith("monitoring", `{apiGroups: [""], resources: [nodes], verbs: [get]}, `+writesGuard), reason: shipper.NotGranted,
			want: "ClusterRole monitoring: rules[1] " + gives,
		},
		"a binding of a role of the cluster with such rights": {
			there: roleWith("guards", writesGuard), content: bindingOf("monitoring", "guards"), reason: shipper.NotGranted,
			want: `ClusterRoleBinding monitoring: it binds the ClusterRole "guards", whose rules[0] ` + gives,
		},
		"a binding of the role of another grant": {
			content: bindingOf("monitoring", "shipper:grant:validatingwebhookconfigurations.admissionregistration.k8s.io:guard"),
			reason:  shipper.ObjectConflict,
			want: "ClusterRoleBinding monitoring belongs to the cluster: its roleRef gives its subjects the right to write what " +
				"administrators have granted to Shipper by name; one of the two has to leave it out",
		},
		"a webhook of Shipper": {
			content: "{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: " +
				"{name: shipper.booking.com}}\n",
			reason: shipper.ObjectConflict,
			want: "ValidatingWebhookConfiguration shipper.booking.com belongs to the cluster: names that end in shipper.booking.com are those of " +
				"Shipper's own webhooks and policies; one of the two has to leave it out",
		},
		"a role with the right to write a granted name of a kind that gives none": {
			content: roleWith("monitoring", "{apiGroups: [example.com], resources: [things], resourceNames: [x], verbs: [patch]}"),
			reason:  shipper.NotGranted, want: "ClusterRole monitoring: " + lacksRules("clusterroles"),
		},
		"a binding of a role of the cluster with more rights than the rules of grants": {
			there: clusterRole("nodes", "watch"), content: bindingOf("monitoring", "nodes"), reason: shipper.NotGranted,
			want: "ClusterRoleBinding monitoring: " + lacksRules("clusterrolebindings"),
		},
		"a role with the label of grants": {
			there: `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: fake, labels: ` +
				`{shipper.booking.com/grant: ""}}, rules: [{}, {apiGroups: [""], resources: [nodes], verbs: [watch]}]}`,
			content: clusterRole("monitoring", "watch"), reason: shipper.NotGranted,
			want: "ClusterRole monitoring: " + lacksRules("clusterroles"),
		},
		"a role with the right to become a ServiceAccount": {
			content: roleWith("monitoring", `{apiGroups: [""], resources: [serviceaccounts/token], verbs: [create]}`), reason: shipper.NotGranted,
			want: "ClusterRole monitoring: rules[0] creates tokens of ServiceAccounts, by which the authors of what is placed get their " +
				"rights" + noGrant,
		},
		"a role that adds its rules to those of all editors": {
			content: labelledRole("rbac.authorization.k8s.io/aggregate-to-edit"), reason: shipper.NotGranted,
			want: "ClusterRole monitoring: has the label rbac.authorization.k8s.io/aggregate-to-edit, which adds its rules to those of " +
				"another ClusterRole" + noGrant,
		},
		"a role that adds its rules to those of another role": {
			there: aggregating("support", "example.com/support"), content: labelledRole("example.com/support"), reason: shipper.NotGranted,
			want: `ClusterRole monitoring: has labels which add its rules to those of the ClusterRole "support"` + noGrant,
		},
		"a role without rules, with which others get theirs": {
			there: aggregating("support", "example.com/support"), reason: shipper.NotGranted,
			content: labelled(roleWith("monitoring", ""), "example.com/support"),
			want:    `ClusterRole monitoring: has labels which add its rules to those of the ClusterRole "support"` + noGrant,
		},
		"a role that gets the rules of others": {
			content: aggregating("monitoring", "example.com/support"), reason: shipper.NotGranted,
			want: "ClusterRole monitoring: rules change with those of other roles: it has an aggregationRule" + noGrant,
		},
		"a binding of a role that gets the rules of others later": {
			there: aggregating("support", "example.com/support"), content: bindingOf("monitoring", "support"), reason: shipper.NotGranted,
			want: `ClusterRoleBinding monitoring: it binds the ClusterRole "support", whose rules change with those of other roles: it has ` +
				"an aggregationRule" + noGrant,
		},
		"a role with a label that adds its rules to no other": {
			there: aggregating("support", "example.com/support"), content: labelledRole("example.com/other"),
		},
		"a role with bounded rights": {content: clusterRole("monitoring", "get")},
		"a binding of a role with bounded rights": {
			there: clusterRole("nodes", "get"), content: bindingOf("monitoring", "nodes"),
		},
	} {
		for _, how := range []shipper.ApplyType{shipper.ApplyServerSide, shipper.ApplyClientSide} {
			t.Run(sentence+", "+string(how), func(t *testing.T) {
				f := beginGrants(t, "ClusterRole monitoring", "ClusterRoleBinding monitoring", "ValidatingWebhookConfiguration shipper.booking.com")
				if tc.there != "" {
					f.put(tc.there)
				}
				f.snapshot("one", tc.content)
				it := f.release(0, "one")
				it.Spec.Resources.Apply = &shipper.Apply{Type: how}
				out, writes := f.place(it)
				wrote := slices.ContainsFunc(writes, func(one string) bool { return strings.HasPrefix(one, "granted: ") })
				if tc.want == "" {
					same(t, "error", nil, out.Err)
					same(t, "the granted account writes", true, wrote)
					return
				}
				same(t, "reason and message", []string{tc.reason, tc.want}, []string{reasonOf(out.Err), fmt.Sprint(out.Err)})
				same(t, "the granted account writes", false, wrote)
			})
		}
	}
}

func TestAGrantedRoleDoesNotGetTheRightsOfAnotherGrantLater(t *testing.T) {
	for _, how := range []shipper.ApplyType{shipper.ApplyServerSide, shipper.ApplyClientSide} {
		t.Run(string(how), func(t *testing.T) {
			f := beginGrants(t, "ClusterRole monitoring")
			f.snapshot("one", clusterRole("monitoring", "get"))
			f.snapshot("two", roleWith("monitoring", writesGuard))
			it := f.release(0, "one")
			it.Spec.Resources.Apply = &shipper.Apply{Type: how}
			out, _ := f.place(it)
			same(t, "error", nil, out.Err)
			it.Spec.Resources.Snapshot = "two"
			out, writes := f.place(it)
			same(t, "message", "ClusterRole monitoring: rules[0] "+gives, fmt.Sprint(out.Err))
			same(t, "the granted account writes", false, slices.Contains(writes, "granted: ClusterRole monitoring"))
		})
	}
}

func TestAnAccountWithTheRightToWriteRolesNeedsNoGrant(t *testing.T) {
	f := beginGrants(t)
	f.member.denied = map[string]bool{}
	f.snapshot("one", roleWith("injector", writesGuard))
	out, writes := f.place(f.release(0, "one"))
	same(t, "error", nil, out.Err)
	same(t, "it is applied", true, slices.Contains(writes, "apply ClusterRole /injector"))
}
