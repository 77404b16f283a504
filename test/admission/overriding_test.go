// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/env"
)

// account creates a service account and returns the subject for a binding.
func account(t *testing.T, namespace, name string) rbacv1.Subject {
	t.Helper()
	create(t, admin, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}})
	return rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: name}
}

// holding returns a client with the token of a service account, which impersonates user unless that is "".
func holding(t *testing.T, namespace, name, user string) client.Client {
	t.Helper()
	path, err := management.ServiceAccountKubeconfig(t.Context(), namespace, name)
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		t.Fatal(err)
	}
	config.Impersonate = rest.ImpersonationConfig{UserName: user}
	config.WarningHandler = rest.NoWarnings{}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// mayImpersonate lets a service account impersonate users.
func mayImpersonate(t *testing.T, who rbacv1.Subject, users ...string) {
	t.Helper()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{GenerateName: "impersonate-"}, Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{""}, Resources: []string{"users"}, ResourceNames: users, Verbs: []string{"impersonate"},
	}}}
	create(t, admin, role)
	bind(t, "", who, role.Name)
}

// mayOverrideOne grants the right to override one block, as docs/user-guide.md says.
func mayOverrideOne(t *testing.T, who rbacv1.Subject, b *shipper.RolloutBlock) {
	t.Helper()
	meta := metav1.ObjectMeta{Namespace: b.Namespace, Name: "override-" + b.Name}
	create(t, admin,
		&rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{shipper.GroupName}, Resources: []string{"rolloutblocks"}, ResourceNames: []string{b.Name},
			Verbs: []string{"override"},
		}}},
		&rbacv1.RoleBinding{ObjectMeta: meta, Subjects: []rbacv1.Subject{who}, RoleRef: rbacv1.RoleRef{
			APIGroup: rbacv1.GroupName, Kind: "Role", Name: meta.Name,
		}})
}

// The webhook asks the authorizer about the user of the request, impersonated or not.
func TestWhoMayOverride(t *testing.T) {
	aggregated(t)
	ns, elsewhere := namespace(t), namespace(t)
	r := rollOut(t, ns)
	one, two, global := block(t, ns), block(t, ns), block(t, shipper.GlobalBlocksNamespace)
	bind(t, ns, person("sre"), editRole, sreRole)
	bind(t, ns, person("dev"), editRole)
	bind(t, ns, team("on-duty"), editRole, sreRole)
	bind(t, ns, account(t, ns, "deployer"), editRole, sreRole)
	bind(t, ns, account(t, ns, "builder"), editRole)
	bind(t, ns, person("named"), editRole)
	mayOverrideOne(t, person("named"), one)
	bind(t, ns, person("stranger"), editRole)
	bind(t, elsewhere, person("stranger"), sreRole)
	bind(t, ns, person("global-sre"), editRole)
	bind(t, shipper.GlobalBlocksNamespace, person("global-sre"), sreRole)
	mayImpersonate(t, account(t, ns, "helpdesk"), "sre", "dev")
	mayImpersonate(t, rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: ns, Name: "deployer"}, "dev")

	names := func(blocks ...*shipper.RolloutBlock) string {
		var out []string
		for _, b := range blocks {
			out = append(out, b.Namespace+"/"+b.Name)
		}
		return strings.Join(out, ",")
	}
	no := func(user string, b *shipper.RolloutBlock) refused {
		return refused{403, `user "` + user + `" may not override RolloutBlock ` + names(b)}
	}
	const builder = ":builder"
	accountOf := func(name string) string { return "system:serviceaccount:" + ns + name }
	for sentence, tc := range map[string]struct {
		who  client.Client
		what string
		want refused
	}{
		"an SRE overrides":                                {inGroups(t, "sre"), names(one, two), refused{}},
		"a developer does not":                            {inGroups(t, "dev"), names(one), no("dev", one)},
		"a member of a group of SREs overrides":           {inGroups(t, "ann", "on-duty"), names(one, two), refused{}},
		"a service account overrides":                     {holding(t, ns, "deployer", ""), names(one, two), refused{}},
		"one without the right does not":                  {holding(t, ns, "builder", ""), names(one), no(accountOf(builder), one)},
		"a user with the right to one block overrides it": {inGroups(t, "named"), names(one), refused{}},
		"and no other":                                    {inGroups(t, "named"), names(two), no("named", two)},
		"nor another beside it":                           {inGroups(t, "named"), names(one, two), no("named", two)},
		"an SRE of another namespace does not":            {inGroups(t, "stranger"), names(one), no("stranger", one)},
		"an SRE of a namespace overrides no block of all": {inGroups(t, "sre"), names(global), no("sre", global)},
		"an SRE of all blocks overrides such a one":       {inGroups(t, "global-sre"), names(global), refused{}},
		"and none of a namespace":                         {inGroups(t, "global-sre"), names(one), no("global-sre", one)},
		"in the name of an SRE one overrides":             {holding(t, ns, "helpdesk", "sre"), names(one), refused{}},
		"in the name of a developer one does not":         {holding(t, ns, "helpdesk", "dev"), names(one), no("dev", one)},
		"nor does an account with a right of its own":     {holding(t, ns, "deployer", "dev"), names(one), no("dev", one)},
		"Shipper itself does not": {
			holding(t, shipper.SystemNamespace, shipper.ManagementServiceAccount, ""), names(one), no(reconcilerUser, one),
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			for _, o := range []client.Object{r.app, r.rel} {
				patch := client.RawPatch(types.MergePatchType, []byte(annotations(override+`"`+tc.what+`"`)))
				err := tc.who.Patch(t.Context(), copyOf(o), patch, client.DryRunAll)
				if tc.want.code != 0 {
					checkRefused(t, err, tc.want)
					continue
				}
				if err != nil { // a new grant takes effect soon
					env.Eventually(t, "the right to be known", func(ctx context.Context) error {
						return tc.who.Patch(ctx, copyOf(o), patch, client.DryRunAll)
					})
				}
			}
		})
	}
}
