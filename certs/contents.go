// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"bytes"
	"crypto"
	"crypto/tls"
	"crypto/x509"

	corev1 "k8s.io/api/core/v1"
	certutil "k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

// Keys of the Secret, all PEM. cert-manager and others use the first four, too.
const (
	certKey     = corev1.TLSCertKey       // the certificate to serve with
	keyKey      = corev1.TLSPrivateKeyKey // its key
	caKey       = "ca.crt"                // the authority that signs
	caKeyKey    = "ca.key"                // its key
	nextKey     = "ca-next.crt"           // the authority that will sign next, once it is trusted
	nextKeyKey  = "ca-next.key"           // its key
	previousKey = "ca-previous.crt"       // authorities that are still trusted
	outgoingKey = "tls-previous.crt"      // the certificates that these have signed
)

// contents is the parsed Secret. A missing or malformed entry is nil: either is replaced.
type contents struct {
	// current signs; next will sign once it is trusted everywhere.
	current, next *authority
	// serving is the certificate that every replica serves with.
	serving *tls.Certificate
	// previous are authorities that are trusted for the certificates that they have signed.
	previous []*x509.Certificate
	// outgoing are certificates of previous that a replica may still serve with.
	outgoing []*x509.Certificate
}

// leaf is the certificate to serve with, nil if there is none.
func (c contents) leaf() *x509.Certificate {
	if c.serving == nil {
		return nil
	}
	return c.serving.Leaf
}

// read parses the data of a Secret.
func read(data map[string][]byte) contents {
	c := contents{
		current:  readAuthority(data[caKey], data[caKeyKey]),
		next:     readAuthority(data[nextKey], data[nextKeyKey]),
		previous: certificates(data[previousKey]),
		outgoing: certificates(data[outgoingKey]),
	}
	if pair, err := tls.X509KeyPair(data[certKey], data[keyKey]); err == nil {
		c.serving = &pair
	}
	return c
}

// readAuthority parses an authority; a key that does not match its certificate is ignored.
func readAuthority(certPEM, keyPEM []byte) *authority {
	found := certificates(certPEM)
	if len(found) == 0 || !found[0].IsCA {
		return nil
	}
	a := &authority{certificate: found[0]}
	key, err := keyutil.ParsePrivateKeyPEM(keyPEM)
	if err != nil {
		return a
	}
	signer, ok := key.(crypto.Signer)
	if !ok {
		return a
	}
	if public, ok := signer.Public().(interface{ Equal(crypto.PublicKey) bool }); ok && public.Equal(a.certificate.PublicKey) {
		a.key = signer
	}
	return a
}

// certificates parses a bundle; a malformed one is empty.
func certificates(text []byte) []*x509.Certificate {
	if len(bytes.TrimSpace(text)) == 0 {
		return nil
	}
	found, err := certutil.ParseCertsPEM(text)
	if err != nil {
		return nil
	}
	return found
}
