// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// UserAgent is how Shipper names itself to application clusters.
const UserAgent = "shipper-reconciler"

// Keys of a cluster's Secret. A token with the CA it came with, as in the Secrets of ServiceAccounts, or a client
// certificate.
const (
	tokenKey   = "token"
	tokenCAKey = "ca.crt"
	certKey    = "tls.crt"
	certKeyKey = "tls.key"
	certCAKey  = "tls.ca"
)

// Access is how to reach a cluster.
type Access struct {
	// Config is for clients.
	Config *rest.Config
	// Fingerprint differs when anything about the access differs.
	Fingerprint string
}

// NewAccess reads a cluster's URL and its Secret, nil when there is none. The error is an *Error.
func NewAccess(cluster *shipper.Cluster, secret *corev1.Secret, secretName string) (*Access, error) {
	refuse := func(reason, format string, args ...any) (*Access, error) {
		return nil, &Error{Cluster: cluster.Name, Reason: reason, Message: fmt.Sprintf(format, args...)}
	}
	if secret == nil {
		return refuse(shipper.SecretMissing,
			"there is no Secret %q with its credentials; `shipperctl clusters join` makes it", secretName)
	}
	host := cluster.Spec.APIMaster
	if u, err := url.Parse(host); err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return refuse(shipper.TargetClusterClientError, "spec.apiMaster %q is not the URL of an API server", host)
	}
	config := &rest.Config{Host: host, UserAgent: UserAgent, QPS: -1}
	if problem := credentials(config, secret); problem != "" {
		return refuse(shipper.SecretInvalid, "Secret %q %s", secretName, problem)
	}
	return &Access{Config: config, Fingerprint: fingerprint(config)}, nil
}

// credentials fills config from the Secret, or tells what is wrong with it.
func credentials(config *rest.Config, secret *corev1.Secret) string {
	ca := secret.Data[tokenCAKey]
	if token, ok := secret.Data[tokenKey]; ok {
		if config.BearerToken = strings.TrimSpace(string(token)); config.BearerToken == "" {
			return fmt.Sprintf("has an empty %q", tokenKey)
		}
	} else {
		config.CertData, config.KeyData, ca = secret.Data[certKey], secret.Data[certKeyKey], secret.Data[certCAKey]
		if len(config.CertData) == 0 || len(config.KeyData) == 0 {
			return fmt.Sprintf("has neither %q nor both of %q and %q", tokenKey, certKey, certKeyKey)
		}
		if _, err := tls.X509KeyPair(config.CertData, config.KeyData); err != nil {
			return fmt.Sprintf("has a %q and %q that do not work: %v", certKey, certKeyKey, err)
		}
	}
	if secret.Annotations[shipper.SecretSkipTLSVerifyAnnotation] == "true" {
		config.Insecure = true
		return ""
	}
	if len(ca) > 0 && !x509.NewCertPool().AppendCertsFromPEM(ca) {
		return "has a CA that is not a PEM certificate"
	}
	config.CAData = ca
	return ""
}

// fingerprint hashes what makes a connection.
func fingerprint(c *rest.Config) string {
	raw, err := json.Marshal([]any{c.Host, c.BearerToken, c.CAData, c.CertData, c.KeyData, c.Insecure})
	if err != nil { // strings, bytes and a bool can always be written
		return err.Error()
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])
}
