// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"

	"shipper.dev/shipper/reconciler/fleet/credential"
)

// token is a bearer token that may be another from one request to the next, so that a session outlives it. Empty: a client
// certificate is used. Watches that are under way are not asked for it again.
type token struct{ value atomic.Pointer[string] }

// store takes another token from the next request on.
func (t *token) store(value string) { t.value.Store(&value) }

// load is the token in use.
func (t *token) load() string {
	if value := t.value.Load(); value != nil {
		return *value
	}
	return ""
}

// credential is what is known of the token, or of the certificate of config.
func (t *token) credential(config *rest.Config) credential.Credential {
	if value := t.load(); value != "" {
		return credential.ReadToken(value)
	}
	return credential.Read(&corev1.Secret{Data: map[string][]byte{credential.CertificateKey: config.CertData}})
}

// config is the access with the token that is in use at the time of each request, and guarded.
func (c *connection) config() *rest.Config {
	config := rest.CopyConfig(c.access.Config)
	config.Wrap(c.fleet.options.Guard)
	if config.BearerToken == "" {
		return config
	}
	config.BearerToken = ""
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &bearer{next: next, token: &c.token} })
	return config
}

// bearer is a transport that says who asks.
type bearer struct {
	next  http.RoundTripper
	token *token
}

// RoundTrip sends a request with the token. A request must not be written to, so it is a copy that has it.
func (b *bearer) RoundTrip(request *http.Request) (*http.Response, error) {
	request = request.Clone(request.Context())
	request.Header.Set("Authorization", "Bearer "+b.token.load())
	return b.next.RoundTrip(request)
}

// WrappedRoundTripper lets idle connections be closed.
func (b *bearer) WrappedRoundTripper() http.RoundTripper { return b.next }

var _ utilnet.RoundTripperWrapper = (*bearer)(nil)

// Refused words that an API server does not accept credentials, and what brings others.
func Refused(url string, c credential.Credential, now time.Time) string {
	what := "does not accept the credentials in the Secret"
	switch {
	case c.Ended(now):
		what = fmt.Sprintf("%s: the %s ended at %s", what, c.Kind, c.NotAfter.Format(time.RFC3339))
	case c.Account.Name != "":
		what += ": the token was revoked, or is for another cluster"
	}
	return fmt.Sprintf("the API server at %s %s; %s", url, what, c.Remedy())
}
