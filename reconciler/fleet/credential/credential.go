// SPDX-License-Identifier: Apache-2.0

// Package credential reads what a cluster's Secret holds: whose credentials, until when, and whether Shipper is to renew them.
// It is pure. The claims of a token are not verified: they decide when to request another and what to report, and no more.
package credential

import (
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// Keys of a cluster's Secret. A token with the CA it came with, as in the Secrets of ServiceAccounts, or a client
// certificate.
const (
	TokenKey          = corev1.ServiceAccountTokenKey
	TokenCAKey        = corev1.ServiceAccountRootCAKey
	CertificateKey    = corev1.TLSCertKey
	PrivateKeyKey     = corev1.TLSPrivateKeyKey
	CertificateCAsKey = "tls.ca"
)

// ShortestLife is the shortest that API servers let a token live.
const ShortestLife = 10 * time.Minute

const (
	// renewPart is the part of a token's life after which it is renewed. A quarter of 24 h is 6 h: an outage of 18 h, of
	// Shipper or of the cluster, is survived, and it costs two writes a quarter.
	renewPart = 4
	// warnPart is the part of its life that is left when credentials that are not renewed cause a warning, if that is not more than
	// warnEarliest.
	warnPart     = 3
	warnEarliest = 30 * 24 * time.Hour
)

// Kind is what sort of credentials there are.
type Kind string

// The kinds. NoKind is an empty Secret.
const (
	NoKind      Kind = ""
	Token       Kind = "token"
	Certificate Kind = "client certificate"
)

// Credential is what a Secret says of itself.
type Credential struct {
	Kind Kind
	// NotBefore and NotAfter are its life. Zero: it does not end, or it is not known when.
	NotBefore, NotAfter time.Time
	// Account is whose token it is; empty of those that no API server gave to a ServiceAccount.
	Account Account
	// Life is how long the next token is to live. Zero: Shipper does not renew.
	Life time.Duration
	// Problem is why Shipper cannot renew credentials that it should renew.
	Problem string
}

// Account is a ServiceAccount of the cluster that the credentials are for.
type Account struct {
	Namespace, Name, UID string
	// Secret is what the token is bound to, or for a token that does not end what it is kept in.
	Secret string
	// SecretUID is empty for a token that does not end.
	SecretUID string
}

// Read reads a cluster's Secret.
func Read(secret *corev1.Secret) Credential {
	var c Credential
	switch token, ok := secret.Data[TokenKey]; {
	case ok:
		c = ReadToken(string(token))
	case len(secret.Data[CertificateKey]) > 0:
		c = readCertificate(secret.Data[CertificateKey])
	}
	if text, renewed := secret.Annotations[shipper.SecretRenewAnnotation]; renewed {
		c.Life, c.Problem = c.renewable(text)
	}
	return c
}

// renewable is how long the next token is to live, or why there is none.
func (c Credential) renewable(text string) (life time.Duration, problem string) {
	life, err := time.ParseDuration(text)
	switch {
	case err != nil || life < ShortestLife:
		return 0, fmt.Sprintf("the annotation %s is %q and must be a duration of %s at least", shipper.SecretRenewAnnotation, text, ShortestLife)
	case c.Kind == NoKind:
		return 0, ""
	case c.Account.SecretUID == "" || c.NotAfter.IsZero():
		return 0, fmt.Sprintf("the annotation %s is there, but the %s is none that is bound to a Secret of the cluster",
			shipper.SecretRenewAnnotation, c.Kind)
	}
	return life, ""
}

// claims are what tokens of ServiceAccounts say: those of a TokenRequest, and those in Secrets, which do not end.
type claims struct {
	Issued  float64 `json:"iat"`
	Expires float64 `json:"exp"`
	Bound   struct {
		Namespace      string `json:"namespace"`
		ServiceAccount object `json:"serviceaccount"`
		Secret         object `json:"secret"`
	} `json:"kubernetes.io"`
	Namespace  string `json:"kubernetes.io/serviceaccount/namespace"`
	Secret     string `json:"kubernetes.io/serviceaccount/secret.name"`
	Account    string `json:"kubernetes.io/serviceaccount/service-account.name"`
	AccountUID string `json:"kubernetes.io/serviceaccount/service-account.uid"`
}

// object names an object in claims.
type object struct {
	Name string `json:"name"`
	UID  string `json:"uid"`
}

// ReadToken reads a token. Of one that is no JSON web token nothing is known.
func ReadToken(token string) Credential {
	out := Credential{Kind: Token}
	parts := strings.Split(strings.TrimSpace(token), ".")
	if len(parts) != 3 {
		return out
	}
	raw, err := base64.RawURLEncoding.DecodeString(parts[1])
	var c claims
	if err != nil || json.Unmarshal(raw, &c) != nil {
		return out
	}
	if c.Expires > 0 {
		out.NotBefore, out.NotAfter = time.Unix(int64(c.Issued), 0).UTC(), time.Unix(int64(c.Expires), 0).UTC()
	}
	out.Account = Account{
		Namespace: c.Bound.Namespace, Name: c.Bound.ServiceAccount.Name, UID: c.Bound.ServiceAccount.UID,
		Secret: c.Bound.Secret.Name, SecretUID: c.Bound.Secret.UID,
	}
	if out.Account.Name == "" {
		out.Account = Account{Namespace: c.Namespace, Name: c.Account, UID: c.AccountUID, Secret: c.Secret}
	}
	return out
}

// readCertificate reads the first certificate of a PEM file.
func readCertificate(text []byte) Credential {
	out := Credential{Kind: Certificate}
	block, _ := pem.Decode(text)
	if block == nil {
		return out
	}
	if cert, err := x509.ParseCertificate(block.Bytes); err == nil {
		out.NotBefore, out.NotAfter = cert.NotBefore.UTC(), cert.NotAfter.UTC()
	}
	return out
}

// Ends reports whether the credentials end, as far as is known.
func (c Credential) Ends() bool { return !c.NotAfter.IsZero() }

// Ended reports whether they have ended.
func (c Credential) Ended(now time.Time) bool { return c.Ends() && !now.Before(c.NotAfter) }

// Renewed reports whether Shipper renews them.
func (c Credential) Renewed() bool { return c.Life > 0 }

// RenewAt is when Shipper renews them: after a quarter of their life.
func (c Credential) RenewAt() time.Time {
	return c.NotBefore.Add(c.Rest())
}

// Rest is how long they are used before Shipper renews them.
func (c Credential) Rest() time.Duration {
	return c.NotAfter.Sub(c.NotBefore) / renewPart
}

// WarnAt is from when a warning says that they end: for renewed credentials when half of their life has passed, which is a quarter
// of it too late, and for others in the last third, but 30 days before the end at the earliest.
func (c Credential) WarnAt() time.Time {
	life := c.NotAfter.Sub(c.NotBefore)
	if c.Renewed() {
		return c.NotBefore.Add(life / 2)
	}
	return c.NotAfter.Add(-min(life/warnPart, warnEarliest))
}

// Remedy is what brings other credentials.
func (c Credential) Remedy() string {
	if c.Kind == Certificate {
		return "put another into the Secret, or delete the Secret and let `shipperctl clusters join` make a token"
	}
	return "`shipperctl clusters join` makes another"
}
