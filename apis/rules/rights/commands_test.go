// SPDX-License-Identifier: Apache-2.0

package rights_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"shipper.dev/shipper/apis/rules/rights"
)

// Issuers choose the names of users, and users those of objects: an administrator who copies the commands must not run what a name says.
// A Secret and a ConfigMap of one name need two roles.
func TestCommandsQuoteNamesAndNameOneRoleForEachRight(t *testing.T) {
	get := func(resource, name string) rights.Action {
		return rights.Action{Verb: "get", Resource: resource, Namespace: "work", Name: name}
	}
	for _, tc := range []struct {
		what       rights.Action
		user, want string
	}{
		{
			get("secrets", "web"), "system:serviceaccount:work:ci",
			"kubectl -n work create role get-secrets-web --verb=get --resource=secrets --resource-name=web; " +
				"kubectl -n work create rolebinding get-secrets-web-system:serviceaccount:work:ci --role=get-secrets-web " +
				"--user=system:serviceaccount:work:ci",
		},
		{
			get("configmaps", "web"), "ann",
			"kubectl -n work create role get-configmaps-web --verb=get --resource=configmaps --resource-name=web; " +
				"kubectl -n work create rolebinding get-configmaps-web-ann --role=get-configmaps-web --user=ann",
		},
		{
			get("secrets", "a $(reboot)"), "https://id.example.com/#ann; reboot 'now'",
			"kubectl -n work create role get-secrets-a-reboot- --verb=get --resource=secrets --resource-name='a $(reboot)'; " +
				"kubectl -n work create rolebinding get-secrets-a-reboot--https:-id.example.com-ann-reboot-now- " +
				`--role=get-secrets-a-reboot- --user='https://id.example.com/#ann; reboot '\''now'\'''`,
		},
		{
			rights.Action{Verb: "list", Resource: "configmaps", Namespace: "work"}, "ann",
			"kubectl -n work create role list-configmaps --verb=list --resource=configmaps; " +
				"kubectl -n work create rolebinding list-configmaps-ann --role=list-configmaps --user=ann",
		},
		{
			rights.Action{Verb: rights.Place, Group: "apps", Resource: "deployments", Name: "web"}, "ann",
			"kubectl create clusterrole place-deployments-web --verb=place --resource=deployments.apps --resource-name=web; " +
				"kubectl create clusterrolebinding place-deployments-web-ann --clusterrole=place-deployments-web --user=ann",
		},
	} {
		if diff := cmp.Diff(tc.want, rights.Commands(tc.what, tc.user)); diff != "" {
			t.Errorf("%+v, %s: -want +got:\n%s", tc.what, tc.user, diff)
		}
	}
}
