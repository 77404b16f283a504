// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"net"
	"slices"
	"time"
)

// Names in the certificates that Shipper creates.
const (
	caName         = "shipper-ca"
	caOrganization = "shipper"
)

// tolerance is how far the clock of a verifier may be behind that of the replica that created the certificate.
const tolerance = time.Hour

// authority is a CA.
type authority struct {
	certificate *x509.Certificate
	// key is nil when it is lost. Such an authority can be trusted, but cannot sign any more.
	key crypto.Signer
}

// signs reports whether a can sign at now.
func (a *authority) signs(now time.Time) bool {
	return a != nil && a.key != nil && live(a.certificate, now)
}

// live reports whether a certificate has not ended. It ignores the start: every certificate starts before it is used, and a
// clock that is behind must not make a replica replace certificates.
func live(c *x509.Certificate, now time.Time) bool { return c != nil && now.Before(c.NotAfter) }

// signed reports whether parent has signed c.
func signed(c, parent *x509.Certificate) bool {
	return c != nil && parent != nil && c.CheckSignatureFrom(parent) == nil
}

// newAuthority creates an authority that ends lifetime after now. It starts when before does, if there is one, so that other
// clocks accept the authority of a replica whose clock is years ahead.
func newAuthority(now time.Time, lifetime time.Duration, before *authority) (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("making the key of a certificate authority: %w", err)
	}
	begin := now.Add(-tolerance)
	if before != nil && before.certificate.NotBefore.Before(begin) {
		begin = before.certificate.NotBefore
	}
	certificate, err := sign(&x509.Certificate{
		Subject:               pkix.Name{CommonName: caName, Organization: []string{caOrganization}},
		NotBefore:             begin,
		NotAfter:              now.Add(lifetime),
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageCRLSign | x509.KeyUsageDigitalSignature,
		BasicConstraintsValid: true,
		IsCA:                  true,
		MaxPathLenZero:        true,
	}, nil, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("making a certificate authority: %w", err)
	}
	return &authority{certificate: certificate, key: key}, nil
}

// issue creates a certificate for names that is valid until end and starts when its authority does.
func (a *authority) issue(names []string, end time.Time) (*tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("making the key of a certificate: %w", err)
	}
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: names[0], Organization: []string{caOrganization}},
		NotBefore:             a.certificate.NotBefore,
		NotAfter:              end,
		KeyUsage:              x509.KeyUsageDigitalSignature,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true,
	}
	if len(names[0]) > 64 { // the maximum length of a common name; verifiers ignore it if there are other names
		template.Subject.CommonName = ""
	}
	for _, name := range names {
		if ip := net.ParseIP(name); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, name)
		}
	}
	leaf, err := sign(template, a.certificate, key.Public(), a.key)
	if err != nil {
		return nil, fmt.Errorf("making a certificate for %v: %w", names, err)
	}
	return &tls.Certificate{Certificate: [][]byte{leaf.Raw}, PrivateKey: key, Leaf: leaf}, nil
}

// sign creates a certificate that is signed by parent, or by itself when parent is nil.
func sign(template, parent *x509.Certificate, public crypto.PublicKey, key crypto.Signer) (*x509.Certificate, error) {
	if parent == nil {
		parent = template
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, parent, public, key)
	if err != nil {
		return nil, err
	}
	return x509.ParseCertificate(raw)
}

// covers reports whether c is valid for all names.
func covers(c *x509.Certificate, names []string) bool {
	return !slices.ContainsFunc(names, func(name string) bool {
		if ip := net.ParseIP(name); ip != nil {
			return !slices.ContainsFunc(c.IPAddresses, ip.Equal)
		}
		return !slices.Contains(c.DNSNames, name)
	})
}

// namesOf are the names that c is valid for.
func namesOf(c *x509.Certificate) []string {
	names := slices.Clone(c.DNSNames)
	for _, ip := range c.IPAddresses {
		names = append(names, ip.String())
	}
	return names
}

// contains reports whether c is among certificates.
func contains(certificates []*x509.Certificate, c *x509.Certificate) bool {
	return slices.ContainsFunc(certificates, c.Equal)
}
