// SPDX-License-Identifier: Apache-2.0

package repository

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"maps"
	"net/url"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart"
	"shipper.dev/shipper/outward"
)

// Keys of a Secret with credentials for a repository. All are optional.
const (
	// usernameKey and passwordKey are sent to the repository's server, and to tokenHostKey.
	usernameKey = outward.UsernameKey
	passwordKey = outward.PasswordKey
	// tokenKey is sent as a bearer token, in place of user name and password.
	tokenKey = outward.TokenKey
	// tokenHostKey is the host, if it is another one, that issues a registry's tokens for a user name and password.
	tokenHostKey = "tokenHost"
	// caKey has PEM certificates of authorities to trust for the server besides the system's.
	caKey = outward.CAKey
	// certificateKey is the client certificate, if the server requests one.
	certificateKey = outward.CertificateKey
)

// Secrets reads a Secret. Its errors are those of the API server.
type Secrets func(ctx context.Context, namespace, name string) (*corev1.Secret, error)

// SecretsOf reads Secrets from an API server each time; reader must not cache them.
func SecretsOf(reader client.Reader) Secrets {
	return func(ctx context.Context, namespace, name string) (*corev1.Secret, error) {
		var secret corev1.Secret
		err := reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &secret)
		return &secret, err
	}
}

// access holds the credentials of a repository. They must never be shown.
type access struct {
	// secret is the name of their Secret, namespace/name, for messages.
	secret string
	// scope differs between Secrets, between contents of a Secret, and between the URLs that it is for.
	scope string
	// to is the only URL, with the paths below it, that gets any of this.
	to                                   prefix
	username, password, token, tokenHost string
	// tls is nil without certificates.
	tls *tls.Config
}

// header is the Authorization header, unless another one is negotiated; may be empty.
func (a *access) header() string {
	switch {
	case a == nil:
		return ""
	case a.token != "":
		return "Bearer " + a.token
	case a.username != "":
		return "Basic " + base64.StdEncoding.EncodeToString([]byte(a.username+":"+a.password))
	}
	return ""
}

// opens is the scope in which an archive fetched with credentials may be used again; empty without credentials.
func opens(namespace string, of shipper.Chart) string {
	if of.Credentials.SecretName == "" {
		return ""
	}
	return namespace + "/" + of.Credentials.SecretName
}

// access reads the credentials for a chart of an Application in a namespace, whose repository is u; nil when it names none.
func (c *Catalog) access(ctx context.Context, namespace string, of shipper.Chart, u *url.URL) (*access, error) {
	name := of.Credentials.SecretName
	if name == "" {
		return nil, nil
	}
	secret, where, err := c.secret(ctx, namespace, name, chart.ErrCredentials)
	if err != nil {
		return nil, err
	}
	to, err := entitled(secret, u)
	if err != nil {
		return nil, chart.FetchFailure(chart.ErrCredentials, "Secret %s %s", where, err)
	}
	a, err := accessOf(secret.Data)
	if err != nil {
		return nil, chart.FetchFailure(chart.ErrCredentials, "Secret %s %s", where, err)
	}
	a.secret, a.to, a.scope = where, to, scopeOf(where+" "+to.String(), secret.Data)
	return a, nil
}

// secret reads a Secret that a chart names, and returns its full name. If only a change of the Secret helps, the error has that
// cause.
func (c *Catalog) secret(ctx context.Context, namespace, name string, cause error) (*corev1.Secret, string, error) {
	where := namespace + "/" + name
	switch {
	case c.options.Secrets == nil:
		return nil, where, chart.BrokenSpec(cause, "Secret %s is not read here", where)
	case namespace == c.options.SystemNamespace: // it has the credentials of clusters
		return nil, where, chart.BrokenSpec(cause, "Secret %s is not read: Secrets in Shipper's own namespace are never used for charts", where)
	}
	secret, err := c.options.Secrets(ctx, namespace, name)
	switch {
	case apierrors.IsNotFound(err):
		return nil, where, chart.FetchFailure(cause, "there is no Secret %s", where)
	case apierrors.IsForbidden(err):
		return nil, where, chart.FetchFailure(cause, "Shipper may not read Secret %s; who owns the namespace may let it read the Secrets there: "+
			"%s", where, shipper.BindCommand(shipper.NamespaceReader, namespace))
	case err != nil:
		return nil, where, chart.FetchFailure(err, "reading Secret %s: %s", where, err)
	}
	return secret, where, nil
}

// accessOf parses a Secret. Errors are phrases that follow its name and quote none of its content.
func accessOf(data map[string][]byte) (*access, error) {
	a := &access{
		username: string(data[usernameKey]), password: string(data[passwordKey]), token: string(data[tokenKey]),
		tokenHost: string(data[tokenHostKey]),
	}
	c := outward.Credentials{
		CA: data[caKey], Certificate: data[certificateKey], Key: data[outward.PrivateKeyKey],
		Username: a.username, Password: a.password, Token: a.token,
	}
	err := c.Check()
	if err != nil {
		return nil, err
	}
	if a.tls, err = c.TLS(); err != nil {
		return nil, err
	}
	if a.tls == nil && a.header() == "" {
		return nil, fmt.Errorf("has neither %s and %s, %s, %s nor %s", usernameKey, passwordKey, tokenKey, caKey, certificateKey)
	}
	return a, nil
}

// scopeOf differs for different Secrets and for different contents.
func scopeOf(where string, data map[string][]byte) string {
	sum := sha256.New()
	fmt.Fprintf(sum, "%q", where)
	for _, key := range slices.Sorted(maps.Keys(data)) {
		fmt.Fprintf(sum, "%q%q", key, data[key])
	}
	return hex.EncodeToString(sum.Sum(nil))
}
