// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"maps"
	"slices"
	"time"

	certutil "k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

// edit is a change of the Secret's data: new values, nil for a removed key. Other keys stay as they are.
type edit map[string][]byte

// editOf returns the change of the Secret for an act.
func editOf(a act, o observed, p policy, now time.Time) (edit, error) {
	e := edit{}
	switch a {
	case renew:
		return e, e.renew(o, p, now)
	case prepare:
		return e, e.prepare(o, p, now)
	case promote:
		return e, e.promote(o, p, now)
	case forget:
		e.retire(o.previous, o.outgoing, now)
	}
	return e, nil
}

// renew signs a certificate with the current authority. If only a name is missing, it keeps the existing names: a replica of
// another version may want them.
func (e edit) renew(o observed, p policy, now time.Time) error {
	names := p.names
	if leaf := o.leaf(); signed(leaf, o.current.certificate) && !covers(leaf, names) {
		for _, name := range namesOf(leaf) {
			if !slices.Contains(names, name) {
				names = append(slices.Clip(names), name)
			}
		}
	}
	pair, err := o.current.issue(names, p.end(o.current, now))
	if err != nil {
		return err
	}
	return e.setServing(pair)
}

// prepare creates the next authority.
func (e edit) prepare(o observed, p policy, now time.Time) error {
	made, err := newAuthority(now, p.Authority, o.current)
	if err != nil {
		return err
	}
	e.retire(o.known(), o.inUse(), now)
	return e.setAuthority(nextKey, nextKeyKey, made)
}

// promote makes the next authority the current one. This write removes the key of the one before.
func (e edit) promote(o observed, p policy, now time.Time) error {
	pair, err := o.next.issue(p.names, p.end(o.next, now))
	if err != nil {
		return err
	}
	e.retire(o.known(), o.inUse(), now)
	e[nextKey], e[nextKeyKey] = nil, nil
	if err := e.setAuthority(caKey, caKeyKey, o.next); err != nil {
		return err
	}
	return e.setServing(pair)
}

// known are all known authorities: those of the Secret and, since that may have been lost, those of the bundles.
func (o observed) known() []*x509.Certificate {
	all := slices.Clone(o.previous)
	if o.current != nil {
		all = append(all, o.current.certificate)
	}
	return append(all, slices.Concat(o.bundles...)...)
}

// inUse are the certificates that a replica may serve with.
func (o observed) inUse() []*x509.Certificate {
	all := slices.Clone(o.outgoing)
	for _, c := range []*x509.Certificate{o.leaf(), o.memory} {
		if c != nil && !contains(all, c) {
			all = append(all, c)
		}
	}
	return all
}

// retire keeps the authorities that have signed one of leaves, and these leaves, until they end.
func (e edit) retire(authorities, leaves []*x509.Certificate, now time.Time) {
	previous := signers(authorities, leaves, now)
	outgoing := slices.DeleteFunc(slices.Clone(leaves), func(c *x509.Certificate) bool {
		return len(signers(previous, []*x509.Certificate{c}, now)) == 0
	})
	e[previousKey], e[outgoingKey] = encode(previous...), encode(outgoing...)
}

// setAuthority stores an authority under two keys.
func (e edit) setAuthority(cert, key string, a *authority) error {
	keyPEM, err := keyutil.MarshalPrivateKeyToPEM(a.key)
	if err != nil {
		return fmt.Errorf("encoding the key of a certificate authority: %w", err)
	}
	e[cert], e[key] = encode(a.certificate), keyPEM
	return nil
}

// setServing stores the certificate to serve with.
func (e edit) setServing(pair *tls.Certificate) error {
	keyPEM, err := keyutil.MarshalPrivateKeyToPEM(pair.PrivateKey)
	if err != nil {
		return fmt.Errorf("encoding the key of a certificate: %w", err)
	}
	e[certKey], e[keyKey] = encode(pair.Leaf), keyPEM
	return nil
}

// applyTo returns data with e applied to it.
func (e edit) applyTo(data map[string][]byte) map[string][]byte {
	out := maps.Clone(data)
	if out == nil {
		out = map[string][]byte{}
	}
	for key, value := range e {
		if value == nil {
			delete(out, key)
		} else {
			out[key] = value
		}
	}
	return out
}

// encode encodes a bundle; nil if it is empty.
func encode(certificates ...*x509.Certificate) []byte {
	var out []byte
	for _, c := range certificates {
		out = append(out, pem.EncodeToMemory(&pem.Block{Type: certutil.CertificateBlockType, Bytes: c.Raw})...)
	}
	return out
}
