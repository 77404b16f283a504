// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"shipper.dev/shipper/webhook/authz"
)

// Issuers choose the names of users: an administrator who copies the commands must not run what a name says.
func TestCommandsQuoteTheNamesOfUsers(t *testing.T) {
	get := authz.Action{Verb: "get", Resource: "secrets", Namespace: "work", Name: "flags"}
	const refusal = `you may not get secrets "flags" in namespace work, and only what its author may read is placed; ` +
		"kubectl -n work create role get-secrets-flags --verb=get --resource=secrets --resource-name=flags; "
	for name, want := range map[string]string{
		"system:serviceaccount:work:ci": "kubectl -n work create rolebinding get-secrets-flags-system:serviceaccount:work:ci " +
			"--role=get-secrets-flags --user=system:serviceaccount:work:ci",
		"https://id.example.com/#ann; reboot 'now'": "kubectl -n work create rolebinding " +
			`get-secrets-flags-https:-id.example.com-ann-reboot-now- --role=get-secrets-flags ` +
			`--user='https://id.example.com/#ann; reboot '\''now'\'''`,
	} {
		if diff := cmp.Diff(refusal+want, lacks(get, "you", name)); diff != "" {
			t.Errorf("%s: -want +got:\n%s", name, diff)
		}
	}
}
