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

// Keys of the Secret, all PEM. The first four are where cert-manager and others have them, too.
const (
	certKey     = corev1.TLSCertKey       // what is served
	keyKey      = corev1.TLSPrivateKeyKey // its key
	caKey       = "ca.crt"                // the authority that signs
	caKeyKey    = "ca.key"                // its key
	nextKey     = "ca-next.crt"           // the authority that is to sign next, once it is trusted
	nextKeyKey  = "ca-next.key"           // its key
	previousKey = "ca-previous.crt"       // authorities that are still trusted
	outgoingKey = "tls-previous.crt"      // the certificates they are trusted for
)

// contents are what the Secret holds. What is missing or cannot be read is nil, for both are made anew.
type contents struct {
	// current signs; next will, once it is trusted everywhere.
	current, next *authority
	// serving is what every replica serves with.
	serving *tls.Certificate
	// previous are authorities that are trusted for what they have signed.
	previous []*x509.Certificate
	// outgoing is what they have signed and a replica may still serve with.
	outgoing []*x509.Certificate
}

// leaf is the certificate that is served, nil if there is none.
func (c contents) leaf() *x509.Certificate {
	if c.serving == nil {
		return nil
	}
	return c.serving.Leaf
}

// read reads the data of a Secret.
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

// readAuthority reads an authority; one whose key is not its own has none.
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

// certificates reads a bundle; one that cannot be read is empty.
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
