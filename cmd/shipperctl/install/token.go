// SPDX-License-Identifier: Apache-2.0

package install

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/cmd/shipperctl/cli"
)

// tokens makes a token for each holder: one that ends and is renewed, or, if that is asked for, the one that does not end, which
// all have in common. Who has a client certificate needs none.
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
			return string(how), err
		})
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// endlessToken makes a token that does not end, and waits until the cluster has issued it. Since Kubernetes 1.24 none is made by
// itself. Deleting its Secret revokes it.
func (a *Application) endlessToken(ctx context.Context, _ Holder) (Credentials, outcome, error) {
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

// authority is what Shipper is to trust, given the authority that came with the token. That one has signed the API server's
// own certificate, but what answers may be a front end with another. The connection that just worked knows better.
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
func (a *Application) tokenSecret(ctx context.Context) (*corev1.Secret, outcome, error) {
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

// awaitToken waits until the token is in the Secret.
func (a *Application) awaitToken(ctx context.Context, secret *corev1.Secret) (*corev1.Secret, error) {
	var filled *corev1.Secret
	ok, err := await(ctx, a.Client, secret, &corev1.SecretList{}, a.Patience, func(o runtime.Object) bool {
		s, is := o.(*corev1.Secret)
		if !is || !issued(s) {
			return false
		}
		filled = s
		return true
	})
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

// issued reports whether the token is there.
func issued(s *corev1.Secret) bool {
	return len(s.Data[corev1.ServiceAccountTokenKey]) > 0
}
