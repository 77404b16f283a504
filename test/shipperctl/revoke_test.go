// SPDX-License-Identifier: Apache-2.0

package shipperctl

import (
	"maps"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"shipper.dev/shipper/reconciler/fleet/credential"
)

// oneOf is a clusters.yaml with the western cluster alone.
const oneOf = "applicationClusters:\n- {name: eu-west-1, region: eu-west}\n"

// held is what the management cluster has for a cluster.
func held(t *testing.T, name string) (*corev1.Secret, credential.Credential) {
	t.Helper()
	secret := get(t, management(t), &corev1.Secret{}, "shipper-system", name)
	return secret, credential.Read(secret)
}

// accepted reports whether a cluster accepts credentials.
func accepted(t *testing.T, config *rest.Config) bool {
	t.Helper()
	err := connect(t, config).List(t.Context(), &corev1.PodList{})
	if err != nil && !apierrors.IsUnauthorized(err) {
		t.Fatal(err)
	}
	return err == nil
}

func joinGivesATokenThatEnds(t *testing.T) {
	app := application(t, west)
	secret, got := held(t, west)
	bound := get(t, app, &corev1.Secret{}, "shipper-system", got.Account.Secret)
	account := get(t, app, &corev1.ServiceAccount{}, "shipper-system", "shipper-app-cluster")
	want := credential.Credential{
		Kind: credential.Token, Life: 24 * time.Hour,
		Account: credential.Account{
			Namespace: "shipper-system", Name: account.Name, UID: string(account.UID), Secret: bound.Name, SecretUID: string(bound.UID),
		},
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(credential.Credential{}, "NotBefore", "NotAfter")); diff != "" {
		t.Errorf("what the Secret says (-want +got)\n%s", diff)
	}
	if life := got.NotAfter.Sub(got.NotBefore); life != 24*time.Hour {
		t.Errorf("the token lives for %s", life)
	}
	if len(bound.Data) > 0 || len(secret.Data["ca.crt"]) == 0 {
		t.Errorf("what the token is bound to has %d values, and the CA %d bytes", len(bound.Data), len(secret.Data["ca.crt"]))
	}
	if !accepted(t, as(t, west)) {
		t.Error("the token is refused")
	}
}

// aTokenThatDoesNotEndGivesWay joins as before tokens ended, and then as now.
func aTokenThatDoesNotEndGivesWay(t *testing.T) {
	app := application(t, west)
	path := file(t, oneOf)
	succeeds(t, "join", "-f", path, "--webhook-ignore", "--token-lifetime", "0")
	secret, endless := held(t, west)
	if endless.Ends() || endless.Renewed() || len(secret.Annotations) > 0 || endless.Account.Secret != "shipper-app-cluster-token" {
		t.Fatalf("asked for one that does not end: %+v, annotations %v", endless, secret.Annotations)
	}
	old := as(t, west)
	theirs := &corev1.Secret{Type: corev1.SecretTypeServiceAccountToken}
	theirs.Namespace, theirs.Name = "shipper-system", "shipper-app-cluster-token-x7k2p" // as Kubernetes before 1.24 named it
	theirs.Annotations = map[string]string{corev1.ServiceAccountNameKey: "shipper-app-cluster"}
	if err := app.Create(t.Context(), theirs); err != nil {
		t.Fatal(err)
	}
	const note = "kubectl delete secret shipper-app-cluster-token -n shipper-system"
	const another = "kubectl delete secret shipper-app-cluster-token-x7k2p -n shipper-system"
	holds(t, succeeds(t, "join", "-f", path, "--webhook-ignore"), note, another)
	if err := app.Delete(t.Context(), theirs); err != nil {
		t.Fatal(err)
	}
	if _, c := held(t, west); !c.Ends() || !c.Renewed() || !accepted(t, as(t, west)) {
		t.Errorf("the new token is %+v", c)
	}
	if !accepted(t, old) {
		t.Error("the old token, which others may use, was revoked")
	}
	// And it is revoked by the command as well, while it is the one in use.
	succeeds(t, "join", "-f", path, "--webhook-ignore", "--token-lifetime", "0")
	holds(t, succeeds(t, "revoke", west), "Deleting the Secret shipper-system/shipper-app-cluster-token, which it is bound to... done\n")
	if accepted(t, old) {
		t.Error("the old token is let in")
	}
	err := app.Get(t.Context(), client.ObjectKey{Namespace: "shipper-system", Name: "shipper-app-cluster-token"}, &corev1.Secret{})
	if !apierrors.IsNotFound(err) {
		t.Errorf("the Secret of the old token: %v", err)
	}
	if out := succeeds(t, "join", "-f", path, "--webhook-ignore"); strings.Contains(out, note) || !accepted(t, as(t, west)) {
		t.Errorf("joined again:\n%s", out)
	}
}

// revokeLeavesOtherManagementClustersAlone has two management clusters with one application cluster.
func revokeLeavesOtherManagementClustersAlone(t *testing.T) {
	succeeds(t, "setup", "management", "--context", east)
	path := file(t, oneOf)
	succeeds(t, "join", "-f", path, "--context", east, "--webhook-ignore")
	other := as(t, west)
	other.BearerToken = string(get(t, application(t, east), &corev1.Secret{}, "shipper-system", west).Data["token"])
	ours := as(t, west)

	before := versions(t)
	out := succeeds(t, "revoke", west)
	holds(t, out, "Revoking the token of cluster eu-west-1, with the context eu-west-1:\n", ", which it is bound to... done\n",
		"Waiting until the cluster refuses it... done, after ", "`shipperctl clusters join` makes another token\n")
	if accepted(t, ours) {
		t.Error("the revoked token is let in")
	}
	if !accepted(t, other) {
		t.Error("the other management cluster is refused")
	}
	var changed []string
	for key, version := range versions(t) {
		if before[key] != version {
			changed = append(changed, key)
		}
	}
	if want := []string{"mgmt: *v1.Secret shipper-system/eu-west-1"}; !cmp.Equal(want, changed) {
		t.Errorf("written was %v", changed)
	}
	holds(t, refuses(t, "", "cannot be used", "clusters", "check", west),
		`BROKEN   cluster eu-west-1: the token in Secret "shipper-system/eu-west-1" was revoked at `,
		"do:  join it again: shipperctl clusters join")
	holds(t, succeeds(t, "revoke", west), "nothing to revoke: the token in Secret")

	succeeds(t, "join", "-f", path, "--webhook-ignore")
	if accepted(t, ours) || !accepted(t, as(t, west)) {
		t.Error("after joining again, the new token should be let in, and the revoked one not")
	}
	holds(t, succeeds(t, "revoke", west, "--account"),
		"Deleting the account shipper-system/shipper-app-cluster, with all its tokens... done\n")
	if accepted(t, other) {
		t.Error("the account is gone, and the other management cluster is let in")
	}
}

// revokeWithoutAContext lets the token revoke itself.
func revokeWithoutAContext(t *testing.T) {
	succeeds(t, "join", "-f", file(t, oneOf), "--webhook-ignore")
	ours := as(t, west)
	config, err := clientcmd.LoadFromFile(fleetOf(t).Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	maps.DeleteFunc(config.Contexts, func(name string, _ *clientcmdapi.Context) bool { return name != config.CurrentContext })
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		t.Fatal(err)
	}
	out, err := runIn(t, path, "revoke", west)
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	holds(t, out, "Revoking the token of cluster eu-west-1, with the token itself:\n")
	if accepted(t, ours) {
		t.Error("the revoked token is let in")
	}
	succeeds(t, "join", "-f", file(t, both(t)), "--webhook-ignore")
}

func revokeReportsWhatItCannot(t *testing.T) {
	secret, _ := held(t, west)
	differs(t, secret, func() { secret.Data = map[string][]byte{"tls.crt": []byte("c"), "tls.key": []byte("k")} }, func() {
		fails(t, "the client certificate of cluster eu-west-1 cannot be revoked, by anybody", "revoke", west)
	})
	differs(t, secret, func() { secret.Data["token"] = []byte("plain") }, func() {
		fails(t, "was not given to a ServiceAccount by that cluster", "revoke", west)
	})
	fails(t, "there is no context", "revoke", west, "--application-cluster-context", "nowhere")
	without := strings.Replace(oneOf, "name: eu-west-1", "name: x, context: eu-west-1", 1)
	fails(t, "lists no cluster eu-west-1", "revoke", west, "-f", file(t, without))
	if !accepted(t, as(t, west)) {
		t.Error("it was revoked all the same")
	}
}
