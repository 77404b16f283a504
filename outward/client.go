// SPDX-License-Identifier: Apache-2.0

package outward

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// Keys of a Secret with Credentials.
const (
	UsernameKey    = "username"
	PasswordKey    = "password"
	TokenKey       = "token"
	CAKey          = "ca.crt"
	CertificateKey = "tls.crt"
	PrivateKeyKey  = "tls.key"
)

// MaxAnswer bounds the answers to a client of Bounded, in bytes after decompression.
const MaxAnswer = 1 << 20

// ErrTooLong means that an answer has more than MaxAnswer bytes.
var ErrTooLong = errors.New("answers more than 1 MiB")

// Credentials are what a client shows to a server, and the authorities that it trusts besides those of the system. Each is optional.
type Credentials struct {
	// CA, Certificate and Key are PEM.
	CA, Certificate, Key []byte
	Username, Password   string
	// Token is sent as a bearer token.
	Token string
}

// CredentialsOf reads the data of a Secret.
func CredentialsOf(data map[string][]byte) Credentials {
	return Credentials{
		CA: data[CAKey], Certificate: data[CertificateKey], Key: data[PrivateKeyKey],
		Username: string(data[UsernameKey]), Password: string(data[PasswordKey]), Token: strings.TrimSpace(string(data[TokenKey])),
	}
}

// Check returns an error if the names and passwords contradict each other. The error follows the name of a Secret.
func (c Credentials) Check() error {
	switch {
	case c.Token != "" && c.Username != "":
		return fmt.Errorf("has both %s and %s: leave one of them out", TokenKey, UsernameKey)
	case c.Username == "" && c.Password != "":
		return fmt.Errorf("has %s without %s", PasswordKey, UsernameKey)
	default:
		return nil
	}
}

// TLS is nil without an authority or a certificate. Its error follows the name of a Secret, and quotes none of its content.
func (c Credentials) TLS() (*tls.Config, error) {
	if len(c.CA) == 0 && len(c.Certificate) == 0 {
		return nil, nil
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if len(c.CA) > 0 {
		pool, err := x509.SystemCertPool()
		if err != nil {
			pool = x509.NewCertPool()
		}
		if !pool.AppendCertsFromPEM(c.CA) {
			return nil, fmt.Errorf("has no certificate in PEM under %s", CAKey)
		}
		config.RootCAs = pool
	}
	if len(c.Certificate) > 0 {
		pair, err := tls.X509KeyPair(c.Certificate, c.Key)
		if err != nil {
			return nil, fmt.Errorf("has no certificate and its key, in PEM, under %s and %s", CertificateKey, PrivateKeyKey)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}

// Authorize returns a copy of request with the token, or the name and the password.
func (c Credentials) Authorize(request *http.Request) *http.Request {
	request = request.Clone(request.Context())
	switch {
	case c.Token != "":
		request.Header.Set("Authorization", "Bearer "+c.Token)
	case c.Username != "":
		request.SetBasicAuth(c.Username, c.Password)
	}
	return request
}

// NewClient returns a client that requests only URLs that policy allows, with the credentials, and follows no redirects. The context
// of a request bounds its time. CloseIdleConnections ends its connections. An error follows the name of the Secret of c.
func NewClient(policy Policy, c Credentials) (*http.Client, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	config, err := c.TLS()
	if err != nil {
		return nil, err
	}
	transport := NewTransport(policy)
	transport.TLSClientConfig, transport.ResponseHeaderTimeout = config, 0
	return &http.Client{Transport: &authenticated{policy, c, transport}, CheckRedirect: NoRedirects}, nil
}

// authenticated checks the URL of each request and adds credentials to it.
type authenticated struct {
	policy      Policy
	credentials Credentials
	next        *http.Transport
}

// RoundTrip implements http.RoundTripper.
func (a *authenticated) RoundTrip(request *http.Request) (*http.Response, error) {
	if err := a.policy.Check(request.URL); err != nil {
		if request.Body != nil {
			request.Body.Close()
		}
		return nil, err
	}
	return a.next.RoundTrip(a.credentials.Authorize(request))
}

// CloseIdleConnections is called by that of http.Client.
func (a *authenticated) CloseIdleConnections() { a.next.CloseIdleConnections() }

// Bounded is a copy of client that follows no redirects and fails to read more than MaxAnswer bytes of an answer with ErrTooLong.
func Bounded(client *http.Client) *http.Client {
	bounded := *client
	next := client.Transport
	if next == nil {
		next = http.DefaultTransport
	}
	bounded.Transport, bounded.CheckRedirect = limited{next}, NoRedirects
	return &bounded
}

type limited struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (l limited) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := l.next.RoundTrip(request)
	if err == nil {
		response.Body = &limitedBody{ReadCloser: response.Body, left: MaxAnswer}
	}
	return response, err
}

type limitedBody struct {
	io.ReadCloser
	left int
}

// Read reads one byte more than is left, to distinguish an answer of that length from a longer one.
func (b *limitedBody) Read(into []byte) (int, error) {
	if len(into) > b.left+1 {
		into = into[:b.left+1]
	}
	n, err := b.ReadCloser.Read(into)
	if n > b.left {
		return b.left, ErrTooLong
	}
	b.left -= n
	return n, err
}
