// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

// authority signs the certificates of one cluster.
type authority struct {
	cert *x509.Certificate
	key  crypto.Signer
}

// newAuthority creates a certificate authority for a cluster.
func newAuthority(name string) (*authority, error) {
	key, err := newKey()
	if err != nil {
		return nil, err
	}
	ca, err := cert.NewSelfSignedCACert(cert.Config{CommonName: name}, key)
	if err != nil {
		return nil, fmt.Errorf("making the certificate authority of %s: %w", name, err)
	}
	return &authority{cert: ca, key: key}, nil
}

// newKey creates a private key on an elliptic curve, which is fast.
func newKey() (*ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("making a private key: %w", err)
	}
	return key, nil
}

// issue creates a certificate and its key, both in PEM: for a server if there are names, for a client otherwise.
func (a *authority) issue(subject pkix.Name, names ...string) (certificate, key []byte, err error) {
	signer, err := newKey()
	if err != nil {
		return nil, nil, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, nil, fmt.Errorf("choosing a serial number: %w", err)
	}
	template := &x509.Certificate{
		SerialNumber: serial,
		Subject:      subject,
		NotBefore:    a.cert.NotBefore,
		NotAfter:     a.cert.NotBefore.Add(365 * 24 * time.Hour),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	for _, name := range names {
		template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
		if ip := net.ParseIP(name); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, name)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, signer.Public(), a.key)
	if err != nil {
		return nil, nil, fmt.Errorf("signing the certificate of %s: %w", subject.CommonName, err)
	}
	key, err = keyutil.MarshalPrivateKeyToPEM(signer)
	if err != nil {
		return nil, nil, fmt.Errorf("encoding the key of %s: %w", subject.CommonName, err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: cert.CertificateBlockType, Bytes: der}), key, nil
}

// bundle is the authority's own certificate in PEM.
func (a *authority) bundle() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: cert.CertificateBlockType, Bytes: a.cert.Raw})
}

// credentials are the certificates and keys of a cluster's programs and of its administrator.
type credentials struct {
	ca, serverCert, serverKey, accountKey string // files
	caPEM, adminCert, adminKey            []byte
	programs                              map[string]keyPair // client certificate of each program
	next                                  *authority         // of the API server after Recertify
}

// trusted returns the authorities that the administrator and the programs of the cluster trust, in PEM.
func (c *credentials) trusted() []byte { return append(bytes.Clone(c.caPEM), c.next.bundle()...) }

// serverNames are the names in an API server's certificate.
var serverNames = []string{"localhost", "127.0.0.1", "::1",
	"kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"}

// serve creates the API server's certificate, which the API server reads when it starts.
func (c *credentials) serve(by *authority) error {
	cert, key, err := by.issue(pkix.Name{CommonName: "kube-apiserver"}, serverNames...)
	if err != nil {
		return err
	}
	return c.write(map[string][]byte{c.serverCert: cert, c.serverKey: key})
}

// write writes files.
func (c *credentials) write(files map[string][]byte) error {
	for path, content := range files {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			return fmt.Errorf("writing credentials: %w", err)
		}
	}
	return nil
}

// keyPair is a client's certificate and its key, both in PEM.
type keyPair struct{ cert, key []byte }

// identities are the user names of a cluster's programs, as kubeadm assigns them. The program that simulates all kubelets has
// the rights of all.
var identities = map[string]pkix.Name{
	"kube-controller-manager": {CommonName: "system:kube-controller-manager"},
	"kube-scheduler":          {CommonName: "system:kube-scheduler"},
	"kwok":                    {CommonName: "system:node:fleet", Organization: []string{"system:nodes", "system:masters"}},
}

// newCredentials creates all certificates and keys of a cluster and writes those that its programs read into a folder.
func newCredentials(name, folder string) (*credentials, error) {
	a, err := newAuthority(name)
	if err != nil {
		return nil, err
	}
	c := &credentials{
		ca:         filepath.Join(folder, "ca.crt"),
		serverCert: filepath.Join(folder, "server.crt"),
		serverKey:  filepath.Join(folder, "server.key"),
		accountKey: filepath.Join(folder, "service-account.key"),
		caPEM:      a.bundle(),
	}
	if c.next, err = newAuthority(name + "-next"); err != nil {
		return nil, err
	}
	if err := c.serve(a); err != nil {
		return nil, err
	}
	c.adminCert, c.adminKey, err = a.issue(pkix.Name{CommonName: "admin", Organization: []string{"system:masters"}})
	if err != nil {
		return nil, err
	}
	c.programs = map[string]keyPair{}
	for program, identity := range identities {
		cert, key, err := a.issue(identity)
		if err != nil {
			return nil, err
		}
		c.programs[program] = keyPair{cert, key}
	}
	signer, err := newKey()
	if err != nil {
		return nil, err
	}
	accountKey, err := keyutil.MarshalPrivateKeyToPEM(signer)
	if err != nil {
		return nil, fmt.Errorf("encoding the service account key of %s: %w", name, err)
	}
	return c, c.write(map[string][]byte{c.ca: c.caPEM, c.accountKey: accountKey})
}
