// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"

	"github.com/open-policy-agent/cert-controller/pkg/rotator"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// Names in the certificates that are made here.
const (
	caName         = "shipper-ca"
	caOrganization = "shipper"
)

// fieldOwner owns the CA bundle in the webhook configurations.
const fieldOwner = "shipper-certs"

var errNotTrusted = errors.New("the CA is not in the webhook configurations yet")

// self serves what a rotator puts into the Secret.
type self struct {
	*secret
	trusted chan struct{} // closed when the CA was written
}

// Ready is nil once there is a certificate and the API server was told to trust it.
func (s *self) Ready(r *http.Request) error {
	if err := s.secret.Ready(r); err != nil {
		return err
	}
	select {
	case <-s.trusted:
		return nil
	default:
		return errNotTrusted
	}
}

func setupSelf(ctx context.Context, mgr manager.Manager, o Options) (Source, error) {
	if len(o.DNSNames) == 0 {
		return nil, errors.New("no DNS name to make a certificate for")
	}
	direct, err := client.New(mgr.GetConfig(), client.Options{Scheme: mgr.GetScheme(), HTTPClient: mgr.GetHTTPClient()})
	if err != nil {
		return nil, fmt.Errorf("building client for certificates: %w", err)
	}
	if err := prepare(ctx, direct, o); err != nil {
		return nil, err
	}
	sign, err := newSign(o.Scratch)
	if err != nil {
		return nil, err
	}
	s := &self{
		secret:  &secret{log: mgr.GetLogger().WithName("certs"), loaded: sign.raise},
		trusted: make(chan struct{}),
	}
	if err := s.watch(ctx, mgr, o); err != nil {
		return nil, err
	}
	err = rotator.AddRotator(mgr, &rotator.CertRotator{
		SecretKey:      o.Secret,
		CertDir:        sign.dir,
		CAName:         caName,
		CAOrganization: caOrganization,
		DNSName:        o.DNSNames[0],
		ExtraDNSNames:  o.DNSNames[1:],
		IsReady:        s.trusted,
		FieldOwner:     fieldOwner,
		Webhooks: []rotator.WebhookInfo{
			{Name: o.Configurations, Type: rotator.Validating},
			{Name: o.Configurations, Type: rotator.Mutating},
		},
	})
	if err != nil {
		return nil, fmt.Errorf("adding rotation of certificates: %w", err)
	}
	return s, nil
}

// prepare makes sure that the Secret exists and that its certificate, if there is one, is for all of the names: the
// rotator looks at the first name only, and would go on with a certificate that lacks a name that was added to the
// flags.
func prepare(ctx context.Context, c client.Client, o Options) error {
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		found := &corev1.Secret{}
		if err := c.Get(ctx, o.Secret, found); apierrors.IsNotFound(err) {
			made := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: o.Secret.Namespace, Name: o.Secret.Name}}
			return client.IgnoreAlreadyExists(c.Create(ctx, made))
		} else if err != nil {
			return err
		}
		if len(found.Data[certKey]) == 0 || covers(found.Data[certKey], o.DNSNames) {
			return nil
		}
		delete(found.Data, certKey)
		delete(found.Data, keyKey)
		return c.Update(ctx, found)
	})
	if err != nil {
		return fmt.Errorf("preparing secret %s for certificates: %w", o.Secret, err)
	}
	return nil
}

// covers tells whether the certificate is for all names.
func covers(certPEM []byte, names []string) bool {
	block, _ := pem.Decode(certPEM)
	if block == nil {
		return false
	}
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return false
	}
	for _, name := range names {
		if certificate.VerifyHostname(name) != nil {
			return false
		}
	}
	return true
}

// sign is a file that the rotator takes for the certificate mounted by a kubelet. It is empty, and there as soon as the
// certificate is served.
type sign struct{ dir string }

// newSign takes down a sign that an earlier process left.
func newSign(scratch string) (*sign, error) {
	s := &sign{filepath.Join(scratch, "certificate-is-served")}
	if err := errors.Join(os.RemoveAll(s.dir), os.MkdirAll(s.dir, 0o700)); err != nil {
		return nil, fmt.Errorf("making a folder to tell of certificates: %w", err)
	}
	return s, nil
}

func (s *sign) raise() {
	// When it cannot be written the rotator gives up after a while and says so.
	_ = os.WriteFile(filepath.Join(s.dir, certKey), nil, 0o600)
}
