// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/fleet/credential"
	"shipper.dev/shipper/reconciler/renewal"
)

// ahead is the clock that renewals go by.
type ahead struct{ clock.RealClock }

// Now is later than it is.
func (ahead) Now() time.Time { return time.Now().Add(time.Duration(world.later.Load())) }

// lossy makes a client of the management cluster that loses patches of Secrets while it is set to.
func lossy(config *rest.Config, options client.Options) (client.Client, error) {
	options.Cache.EnableReadYourWritesConsistency = ptr.To(true) // as NewClient does
	c, err := client.NewWithWatch(config, options)
	if err != nil {
		return nil, err
	}
	return interceptor.NewClient(c, interceptor.Funcs{Patch: func(
		ctx context.Context, c client.WithWatch, o client.Object, patch client.Patch, opts ...client.PatchOption,
	) error {
		if _, is := o.(*corev1.Secret); is && world.lost.Add(-1) >= 0 {
			return errors.New("lost on its way")
		}
		return c.Patch(ctx, o, patch, opts...)
	}}), nil
}

// renewed joins the western cluster once more, with a token of ten minutes that Shipper renews. What it returns is the Secret
// in the management cluster, and what the tokens are bound to.
func (s *fixture) renewed(name string) (secret, bound *corev1.Secret) {
	s.Helper()
	west := world.clusters[west]
	bound = &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: shipper.SystemNamespace, GenerateName: name + "-"}}
	s.must(west.Create(s.ctx, bound))
	account := &corev1.ServiceAccount{
		ObjectMeta: metav1.ObjectMeta{Namespace: shipper.SystemNamespace, Name: shipper.ApplicationServiceAccount},
	}
	request := renewal.Request(bound.Name, bound.UID, credential.ShortestLife)
	s.must(west.SubResource("token").Create(s.ctx, account, request))
	secret = clusterSecret(name, "west")
	secret.Data["token"] = []byte(request.Status.Token)
	secret.Annotations = map[string]string{shipper.SecretRenewAnnotation: "10m"}
	s.lend(secret)
	s.lend(aCluster(name, "west"))
	s.clusterIs(name, "")
	return secret, bound
}

// wakes lets time pass for renewals, and wakes the waiting ones.
func (s *fixture) wakes(secret *corev1.Secret, after time.Duration) {
	s.Helper()
	world.later.Add(int64(after))
	s.Cleanup(func() { world.later.Add(-int64(after)) })
	s.change(secret, func(client.Object) {
		metav1.SetMetaDataLabel(&secret.ObjectMeta, "woken", fmt.Sprint(world.later.Load()))
	})
}

// anotherToken waits until a Secret has another token than that, and returns it.
func (s *fixture) anotherToken(secret *corev1.Secret, than []byte) []byte {
	s.Helper()
	s.soon("the token is not renewed", func() string {
		s.must(s.management.Get(s.ctx, client.ObjectKeyFromObject(secret), secret))
		if bytes.Equal(secret.Data["token"], than) {
			return "it is the same"
		}
		return ""
	})
	return secret.Data["token"]
}

// valid waits until a Cluster says of its credentials that they are so.
func (s *fixture) valid(name, want string) {
	s.Helper()
	s.soon("CredentialsValid of "+name, func() string {
		c := &shipper.Cluster{}
		s.must(s.management.Get(s.ctx, client.ObjectKey{Name: name}, c))
		got := "absent"
		if is := shipper.FindCondition(c.Status.Conditions, shipper.ClusterCredentialsValid); is != nil {
			got = strings.TrimSpace(fmt.Sprintf("%s %s %s", is.Status, is.Reason, is.Message))
		}
		if !strings.HasPrefix(got, want) {
			return fmt.Sprintf("it is %q, want %q", got, want)
		}
		return ""
	})
}

// asked counts what was asked of the western cluster with a token: requests by verb and resource.
func asked(t *testing.T, token []byte) map[string]int {
	t.Helper()
	who := &authenticationv1.SelfSubjectReview{}
	config := rest.AnonymousClientConfig(world.access["west"])
	config.BearerToken = string(token)
	c, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Create(t.Context(), who); err != nil {
		t.Fatal(err)
	}
	const id = "authentication.kubernetes.io/credential-id"
	file, err := os.Open(world.members["west"].AuditLog)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	out := map[string]int{}
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var e auditv1.Event
		if json.Unmarshal(lines.Bytes(), &e) == nil && e.ObjectRef != nil && e.Verb != "" &&
			fmt.Sprint(e.User.Extra[id]) == fmt.Sprint(who.Status.UserInfo.Extra[id]) {
			out[e.Verb+" "+e.ObjectRef.Resource]++
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestRenewsATokenAndKeepsTheCaches renews a token, uses the new one, and reads nothing again.
func TestRenewsATokenAndKeepsTheCaches(t *testing.T) {
	s := begin(t, west)
	secret, bound := s.renewed("renewed")
	first := secret.Data["token"]
	s.valid("renewed", "True")
	s.wakes(secret, 3*time.Minute)
	second := s.anotherToken(secret, first)
	s.valid("renewed", "True")

	was, is := credential.ReadToken(string(first)), credential.ReadToken(string(second))
	if diff := cmp.Diff(was.Account, is.Account); diff != "" || is.Account.SecretUID != string(bound.UID) {
		t.Errorf("it is bound to %s, and of another account (-want +got):\n%s", is.Account.SecretUID, diff)
	}
	if secret.Annotations[shipper.SecretRenewAnnotation] != "10m" || len(secret.Data["ca.crt"]) == 0 || len(secret.Data) != 2 {
		t.Errorf("beside the token something was changed: %v, %d keys", secret.Annotations, len(secret.Data))
	}
	if before := asked(t, first); before["list pods"] == 0 {
		t.Fatalf("with the first token nothing was read: %v", before)
	}
	s.soon("the new token is not used", func() string {
		if now := asked(t, second); now["get leases"] < 2 {
			return fmt.Sprint(now)
		}
		return ""
	})
	s.install("web-1", "test-nginx", "0.0.1", shipper.ChartValues{}, "renewed")
	it := s.installed("web-1")
	for what, times := range asked(t, second) {
		for _, k := range []string{"pods", "services", "deployments", "endpointslices"} {
			if what == "list "+k || what == "watch "+k {
				t.Errorf("with the new token there is %d times %s: the caches were read again", times, what)
			}
		}
	}
	s.must(s.management.Delete(s.ctx, it))
	s.gone(it)
}

// TestARenewalThatIsKilledIsDoneAgain loses what the cluster has answered before it is written.
func TestARenewalThatIsKilledIsDoneAgain(t *testing.T) {
	s := begin(t)
	secret, _ := s.renewed("killed")
	first := secret.Data["token"]
	s.valid("killed", "True")
	world.lost.Store(1)
	s.wakes(secret, 3*time.Minute)
	s.valid("killed", `False RenewalFailed the token in Secret "shipper-system/killed" ends at `)
	s.anotherToken(secret, first)
	s.valid("killed", "True")
	s.clusterIs("killed", "")
}

// TestARevokedTokenIsToldOf deletes what a token is bound to.
func TestARevokedTokenIsToldOf(t *testing.T) {
	t.Parallel()
	s := begin(t)
	secret, bound := s.renewed("revoked")
	began := time.Now()
	s.must(world.clusters[west].Delete(s.ctx, bound))
	c := s.clusterIs("revoked", shipper.CredentialsRefused)
	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("it was reported after %s", took)
	}
	want := "the API server at " + world.wires[west].url + " does not accept the credentials in the Secret: the token was revoked, or is " +
		"for another cluster; `shipperctl clusters join` makes another"
	if got := shipper.FindCondition(c.Status.Conditions, shipper.ClusterReady).Message; got != want {
		t.Errorf("it says %q, want %q", got, want)
	}
	s.change(secret, func(client.Object) {
		delete(secret.Data, "token")
		secret.Annotations[shipper.SecretRevokedAnnotation] = "2026-11-21T10:00:00Z"
	})
	s.clusterIs("revoked", shipper.CredentialsRevoked)
	s.valid("revoked", "absent")
	s.change(secret, func(client.Object) { secret.Data["token"] = clusterSecret(west, west).Data["token"] })
	s.clusterIs("revoked", "")
}

// TestOtherCredentialsAreNeverTouched has a client certificate, and a token in the format of the original.
func TestOtherCredentialsAreNeverTouched(t *testing.T) {
	s := begin(t)
	admin := world.members[west].Config
	certificate, original := clusterSecret("certified", west), clusterSecret("original", west)
	certificate.Data = map[string][]byte{"tls.crt": admin.CertData, "tls.key": admin.KeyData, "tls.ca": admin.CAData}
	original.Type = corev1.SecretTypeOpaque
	original.Annotations = map[string]string{"kubernetes.io/service-account.name": shipper.ApplicationServiceAccount}
	endless := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: shipper.SystemNamespace, Name: "original-token",
			Annotations: map[string]string{corev1.ServiceAccountNameKey: shipper.ApplicationServiceAccount},
		},
		Type: corev1.SecretTypeServiceAccountToken,
	}
	s.must(world.clusters[west].Create(s.ctx, endless))
	s.soon("there is no token", func() string {
		s.must(world.clusters[west].Get(s.ctx, client.ObjectKeyFromObject(endless), endless))
		if len(endless.Data["token"]) == 0 {
			return "none"
		}
		return ""
	})
	original.Data = endless.Data // token, ca.crt and namespace, as the original copied them
	for _, secret := range []*corev1.Secret{certificate, original} {
		s.lend(secret)
		s.lend(aCluster(secret.Name, west))
		s.clusterIs(secret.Name, "")
	}
	s.valid("certified", "True")
	s.valid("original", "absent")
	s.wakes(certificate, 400*24*time.Hour)
	s.valid("certified", `False CredentialsEnded the client certificate in Secret "shipper-system/certified" ended at `)
	for secret, annotations := range map[*corev1.Secret]int{certificate: 0, original: 1} {
		live := &corev1.Secret{}
		s.must(s.management.Get(s.ctx, client.ObjectKeyFromObject(secret), live))
		if diff := cmp.Diff(secret.Data, live.Data); diff != "" || len(live.Annotations) != annotations {
			t.Errorf("Secret %s was written (-want +got):\n%s", secret.Name, diff)
		}
	}
	s.must(client.IgnoreNotFound(world.clusters[west].Delete(s.ctx, endless)))
	s.clusterIs("original", shipper.CredentialsRefused)
}
