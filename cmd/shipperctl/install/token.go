// SPDX-License-Identifier: Apache-2.0

package install

import (
	"bytes"
	"context"
	"fmt"
	"hash/fnv"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/cmd/shipperctl/cli"
	"shipper.dev/shipper/reconciler/fleet/credential"
	"shipper.dev/shipper/reconciler/renewal"
)

// tokens makes a token for each holder: one that ends and is renewed, or, if that is asked for, the one that does not end, which
// all have in common. A holder with a client certificate needs none.
func (a *Application) tokens(ctx context.Context, holders []Holder) ([]Credentials, error) {
	out := make([]Credentials, len(holders))
	for i, h := range holders {
		title := "Creating a token for the service account " + a.ServiceAccount
		if h.Name != "" {
			title += " for management cluster " + h.Name
		}
		err := a.Report.Step(title, func() (string, error) {
			if h.certified() {
				return "not needed, there is a client certificate. Skipping", nil
			}
			give := a.boundToken
			if a.TokenLifetime == 0 {
				give = a.endlessToken
			}
			credentials, how, err := give(ctx, h)
			out[i] = credentials
			return how, err
		})
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// endlessToken makes a token that does not end, and waits until the cluster has issued it. Since Kubernetes 1.24 none is made by
// itself. Deleting its Secret revokes it.
func (a *Application) endlessToken(ctx context.Context, _ Holder) (Credentials, string, error) {
	secret, how, err := a.tokenSecret(ctx)
	if err != nil {
		return Credentials{}, "", err
	}
	if !issued(secret) {
		if secret, err = a.awaitToken(ctx, secret); err != nil {
			return Credentials{}, "", err
		}
	}
	return Credentials{
		Token: secret.Data[corev1.ServiceAccountTokenKey],
		CA:    a.authority(secret.Data[corev1.ServiceAccountRootCAKey]),
	}, how, nil
}

// authority is the CA that Shipper is to trust. The one that came with the token has signed the API server's own certificate, but a
// front end may answer with another: the connection that just worked decides.
func (a *Application) authority(handedOut []byte) []byte {
	own := bytes.TrimSpace(handedOut)
	switch {
	case len(a.CA) == 0:
		return handedOut
	case !a.Elsewhere || len(own) == 0 || bytes.Contains(a.CA, own):
		return a.CA
	}
	return slices.Concat(bytes.TrimSpace(a.CA), []byte("\n"), own, []byte("\n"))
}

// tokenSecret returns the Secret that asks for a token, and makes it if need be. One for an earlier account of the same
// name is replaced: its token is void.
func (a *Application) tokenSecret(ctx context.Context) (*corev1.Secret, string, error) {
	account := &corev1.ServiceAccount{}
	if err := a.Client.Get(ctx, client.ObjectKey{Namespace: a.Namespace, Name: a.ServiceAccount}, account); err != nil {
		return nil, "", fmt.Errorf("reading the account: %w", err)
	}
	want := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Name:        endlessName(a.ServiceAccount),
			Namespace:   a.Namespace,
			Labels:      map[string]string{shipper.RBACDomainLabel: shipper.RBACApplication},
			Annotations: map[string]string{corev1.ServiceAccountNameKey: a.ServiceAccount},
		},
		Type: corev1.SecretTypeServiceAccountToken,
	}
	live := &corev1.Secret{}
	err := a.Client.Get(ctx, client.ObjectKeyFromObject(want), live)
	if apierrors.IsNotFound(err) {
		return want, created, a.Client.Create(ctx, want, client.FieldOwner(fieldOwner))
	}
	if err != nil {
		return nil, "", err
	}
	holder := live.Annotations[corev1.ServiceAccountNameKey]
	if live.Type != corev1.SecretTypeServiceAccountToken || holder != a.ServiceAccount {
		return nil, "", fmt.Errorf("the Secret %s/%s is something else; move it away", a.Namespace, want.Name)
	}
	if uid := live.Annotations[corev1.ServiceAccountUIDKey]; uid == "" || uid == string(account.UID) {
		return live, unchanged, nil
	}
	if err := remove(ctx, a.Client, live); err != nil {
		return nil, "", err
	}
	return want, updated, a.Client.Create(ctx, want, client.FieldOwner(fieldOwner))
}

func (a *Application) awaitToken(ctx context.Context, secret *corev1.Secret) (*corev1.Secret, error) {
	filled := &corev1.Secret{}
	key := client.ObjectKeyFromObject(secret)
	ok, err := cli.Await(ctx, a.Client, key, filled, interval, a.Patience, func() bool { return issued(filled) })
	if err != nil {
		return nil, fmt.Errorf("waiting for the token: %w", err)
	}
	if !ok {
		return nil, cli.WithCode(cli.TimedOut, fmt.Errorf("the cluster put no token into the Secret %s/%s within %s; its "+
			"kube-controller-manager does that (controller serviceaccount-token, flag --service-account-private-key-file): "+
			"see that it runs, then run this again",
			secret.Namespace, secret.Name, a.Patience))
	}
	return filled, nil
}

func issued(s *corev1.Secret) bool {
	return len(s.Data[corev1.ServiceAccountTokenKey]) > 0
}

// clamped is how much shorter than requested a token's lifetime may be without a note.
const clamped = time.Minute

// boundTo is an annotation that explains an empty Secret to people.
const boundTo = "shipper.booking.com/tokens-of"

// Holder is a management cluster that needs credentials for an application cluster, and those that it has.
type Holder struct {
	// Name is for people; empty when there is one management cluster.
	Name string
	// ID is the UID of Shipper's namespace there, which identifies it. A management cluster that is restored is another one,
	// so that the tokens of the lost one can be revoked.
	ID string
	// Secret is that of the cluster; nil when there is none.
	Secret *corev1.Secret
}

// Holder returns the management cluster as the holder of credentials for a cluster.
func (m *Management) Holder(ctx context.Context, cluster string) (Holder, error) {
	namespace, secret := &corev1.Namespace{}, &corev1.Secret{}
	if err := m.Client.Get(ctx, client.ObjectKey{Name: m.Namespace}, namespace); err != nil {
		return Holder{}, explain("looking at the management cluster", err)
	}
	err := m.Client.Get(ctx, client.ObjectKey{Namespace: m.Namespace, Name: cluster}, secret)
	if apierrors.IsNotFound(err) {
		return Holder{ID: string(namespace.UID)}, nil
	}
	if err != nil {
		return Holder{}, explain("looking for the credentials of "+cluster, err)
	}
	return Holder{ID: string(namespace.UID), Secret: secret}, nil
}

// certified reports whether the holder has a client certificate, which stays.
func (h Holder) certified() bool {
	return h.Secret != nil && len(h.Secret.Data[credential.CertificateKey]) > 0 && len(h.Secret.Data[credential.TokenKey]) == 0
}

// boundToken gives a holder a token that ends and that Shipper renews, unless it has one. It is bound to a Secret of the
// application cluster with nothing in it, which is the holder's alone: deleting that Secret revokes the token and those that
// Shipper gets for it.
func (a *Application) boundToken(ctx context.Context, h Holder) (Credentials, string, error) {
	account := &corev1.ServiceAccount{}
	if err := a.Client.Get(ctx, client.ObjectKey{Namespace: a.Namespace, Name: a.ServiceAccount}, account); err != nil {
		return Credentials{}, "", fmt.Errorf("reading the account: %w", err)
	}
	bound, how, err := a.boundSecret(ctx, h)
	if err != nil {
		return Credentials{}, "", err
	}
	handedOut, err := a.ownAuthority(ctx)
	if err != nil {
		return Credentials{}, "", err
	}
	out := Credentials{CA: a.authority(handedOut), Life: a.TokenLifetime}
	if has := h.token(); how == unchanged && has != nil {
		c := credential.Read(h.Secret)
		ours := credential.Account{
			Namespace: a.Namespace, Name: account.Name, UID: string(account.UID), Secret: bound.Name, SecretUID: string(bound.UID),
		}
		if c.Account == ours && c.Life == a.TokenLifetime && a.Clock.Now().Before(c.WarnAt()) {
			out.Token = has
			return out, unchanged, nil
		}
		how = updated
	}
	request := renewal.Request(bound.Name, bound.UID, a.TokenLifetime)
	if err := a.Client.SubResource("token").Create(ctx, account, request, client.FieldOwner(fieldOwner)); err != nil {
		return Credentials{}, "", fmt.Errorf("asking for a token: %w", err)
	}
	out.Token = []byte(request.Status.Token)
	if given := request.Status.ExpirationTimestamp.Sub(a.Clock.Now()); given < a.TokenLifetime-clamped {
		a.notes = append(a.notes, fmt.Sprintf("Note: cluster %s gives tokens for %s, and not for %s: they are renewed as often as that needs",
			a.Name, given.Round(time.Minute), a.TokenLifetime))
	}
	return out, how, nil
}

func (h Holder) token() []byte {
	if h.Secret == nil {
		return nil
	}
	return h.Secret.Data[credential.TokenKey]
}

// boundSecret makes the Secret that a holder's tokens are bound to, unless it is there.
func (a *Application) boundSecret(ctx context.Context, h Holder) (*corev1.Secret, string, error) {
	hash := fnv.New32a()
	fmt.Fprintf(hash, "%s/%s", h.ID, a.Name)
	want := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: a.Namespace,
			Name:      fmt.Sprintf("%s-%08x", a.ServiceAccount, hash.Sum32()),
			Labels:    map[string]string{shipper.RBACDomainLabel: shipper.RBACApplication},
			Annotations: map[string]string{
				boundTo: fmt.Sprintf("cluster %s of the management cluster with the namespace %s of UID %s; deleting this Secret revokes them",
					a.Name, a.Namespace, h.ID),
			},
		},
	}
	live := &corev1.Secret{}
	err := a.Client.Get(ctx, client.ObjectKeyFromObject(want), live)
	if apierrors.IsNotFound(err) {
		return want, created, a.Client.Create(ctx, want, client.FieldOwner(fieldOwner))
	}
	if err != nil {
		return nil, "", err
	}
	if len(live.Data) > 0 || live.Labels[shipper.RBACDomainLabel] != shipper.RBACApplication {
		return nil, "", fmt.Errorf("the Secret %s/%s is something else; move it away", a.Namespace, want.Name)
	}
	return live, unchanged, nil
}

// ownAuthority is the authority that signed the API server's own certificate, as published to Pods; empty when
// none is published.
func (a *Application) ownAuthority(ctx context.Context) ([]byte, error) {
	published := &corev1.ConfigMap{}
	err := a.Client.Get(ctx, client.ObjectKey{Namespace: metav1.NamespaceSystem, Name: "kube-root-ca.crt"}, published)
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("reading the authority of the cluster: %w", err)
	}
	return []byte(published.Data[credential.TokenCAKey]), nil
}

// endless notes tokens of the account that do not end: one of an earlier join, or one that Kubernetes before 1.24 made by itself, as for
// the original. Others may use them.
func (a *Application) endless(ctx context.Context) error {
	names, err := a.endlessTokens(ctx)
	for _, name := range names {
		a.notes = append(a.notes, fmt.Sprintf("Note: cluster %s still has a token that does not end, from an earlier join. When no other "+
			"management cluster uses it, revoke it with a context of that cluster: kubectl delete secret %s -n %s", a.Name, name, a.Namespace))
	}
	return err
}

// endlessTokens names the Secrets with tokens of the account. Without the right to list Secrets it finds the one with the usual name.
func (a *Application) endlessTokens(ctx context.Context) ([]string, error) {
	list := &corev1.SecretList{}
	err := a.Client.List(ctx, list, client.InNamespace(a.Namespace))
	if apierrors.IsForbidden(err) {
		secret := corev1.Secret{}
		err = a.Client.Get(ctx, client.ObjectKey{Namespace: a.Namespace, Name: endlessName(a.ServiceAccount)}, &secret)
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		list.Items = []corev1.Secret{secret}
	}
	if err != nil {
		return nil, fmt.Errorf("looking for tokens that do not end: %w", err)
	}
	var out []string
	for _, secret := range list.Items {
		of := secret.Annotations[corev1.ServiceAccountNameKey]
		if secret.Type == corev1.SecretTypeServiceAccountToken && of == a.ServiceAccount {
			out = append(out, secret.Name)
		}
	}
	return out, nil
}

func endlessName(account string) string { return account + "-token" }
