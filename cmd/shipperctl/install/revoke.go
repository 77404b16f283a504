// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/cmd/shipperctl/cli"
	"shipper.dev/shipper/reconciler/fleet/credential"
)

// Revocation makes a token void in the cluster that has issued it.
type Revocation struct {
	// Client writes to that cluster.
	Client client.Client
	// Report prints each step.
	Report *Report
	// Credential is read from the token, which must name a ServiceAccount.
	Credential credential.Credential
	// Token is the token.
	Token string
	// Own is true when Client speaks with the token itself.
	Own bool
	// Account deletes the account with all its tokens, and not only the object that this one is bound to.
	Account bool
}

// alreadyGone is the outcome of deleting an object that does not exist.
const alreadyGone = "not there any more: it is void already"

// Delete deletes the object that the token is bound to, or the account. Later objects of the same name, and those of other clusters,
// have another UID and stay.
func (r *Revocation) Delete(ctx context.Context) error {
	a := r.Credential.Account
	key := metav1.ObjectMeta{Namespace: a.Namespace}
	if r.Account {
		key.Name = a.Name
		title := fmt.Sprintf("Deleting the account %s/%s, with all its tokens", a.Namespace, a.Name)
		return r.Report.Step(title, func() (string, error) {
			return r.delete(ctx, &corev1.ServiceAccount{ObjectMeta: key}, types.UID(a.UID))
		})
	}
	key.Name = a.Secret
	title := fmt.Sprintf("Deleting the Secret %s/%s, which it is bound to", a.Namespace, a.Secret)
	return r.Report.Step(title, func() (string, error) {
		secret := &corev1.Secret{ObjectMeta: key}
		if a.SecretUID != "" {
			return r.delete(ctx, secret, types.UID(a.SecretUID))
		}
		// A token that does not end has no UID of its Secret, but the Secret has the token.
		err := r.Client.Get(ctx, client.ObjectKeyFromObject(secret), secret)
		if apierrors.IsNotFound(err) || r.Own && apierrors.IsUnauthorized(err) ||
			err == nil && string(secret.Data[credential.TokenKey]) != r.Token {
			return alreadyGone, nil
		}
		if err != nil {
			return "", err
		}
		return r.delete(ctx, secret, secret.UID)
	})
}

func (r *Revocation) delete(ctx context.Context, o client.Object, uid types.UID) (string, error) {
	err := r.Client.Delete(ctx, o, client.Preconditions{UID: &uid})
	switch {
	case apierrors.IsNotFound(err), apierrors.IsConflict(err), r.Own && apierrors.IsUnauthorized(err):
		return alreadyGone, nil
	case err != nil:
		return "", err
	}
	return created, nil
}

// AwaitRefusal waits until the cluster refuses the token: API servers cache authentications for some seconds.
func (r *Revocation) AwaitRefusal(ctx context.Context, config *rest.Config, clock clock.WithTicker, patience time.Duration) error {
	token := rest.AnonymousClientConfig(config)
	token.BearerToken = r.Token
	c, err := NewClient(token)
	if err != nil {
		return err
	}
	return r.Report.Step("Waiting until the cluster refuses it", func() (string, error) {
		began := clock.Now()
		tick := clock.NewTicker(interval)
		defer tick.Stop()
		for {
			err := c.Create(ctx, &authenticationv1.SelfSubjectReview{})
			took := clock.Since(began)
			switch {
			case apierrors.IsUnauthorized(err):
				return fmt.Sprintf("done, after %s", took.Round(100*time.Millisecond)), nil
			case took > patience:
				return "", cli.WithCode(cli.TimedOut, fmt.Errorf("it is not refused after %s (%v): what it was bound to is gone, so look "+
					"whether the cluster that was asked is the one of the token", patience, err))
			}
			select {
			case <-ctx.Done():
				return "", ctx.Err()
			case <-tick.C():
			}
		}
	})
}

// Revoked removes the token from a cluster's Secret, and notes the time.
func Revoked(secret *corev1.Secret, when string) {
	delete(secret.Data, credential.TokenKey)
	metav1.SetMetaDataAnnotation(&secret.ObjectMeta, shipper.SecretRevokedAnnotation, when)
}
