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
	"shipper.dev/shipper/reconciler/fleet/credential"
)

// UserAgent is how Shipper names itself to application clusters.
const UserAgent = "shipper-reconciler"

// Access is how to reach a cluster.
type Access struct {
	// Config is for clients.
	Config *rest.Config
	// Fingerprint differs when anything about the access differs, but two tokens of one account.
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
	if when, revoked := secret.Annotations[shipper.SecretRevokedAnnotation]; revoked && len(secret.Data[credential.TokenKey]) == 0 {
		return refuse(shipper.CredentialsRevoked,
			"the token in Secret %q was revoked at %s; `shipperctl clusters join` makes another", secretName, when)
	}
	config := &rest.Config{Host: host, UserAgent: UserAgent, QPS: -1}
	if problem := credentials(config, secret); problem != "" {
		return refuse(shipper.SecretInvalid, "Secret %q %s", secretName, problem)
	}
	return &Access{Config: config, Fingerprint: fingerprint(config)}, nil
}

// credentials fills config from the Secret; the error says what is wrong with it.
func credentials(config *rest.Config, secret *corev1.Secret) string {
	ca := secret.Data[credential.TokenCAKey]
	if token, ok := secret.Data[credential.TokenKey]; ok {
		if config.BearerToken = strings.TrimSpace(string(token)); config.BearerToken == "" {
			return fmt.Sprintf("has an empty %q", credential.TokenKey)
		}
	} else {
		config.CertData, config.KeyData = secret.Data[credential.CertificateKey], secret.Data[credential.PrivateKeyKey]
		ca = secret.Data[credential.CertificateCAsKey]
		if len(config.CertData) == 0 || len(config.KeyData) == 0 {
			return fmt.Sprintf("has neither %q nor both of %q and %q", credential.TokenKey, credential.CertificateKey, credential.PrivateKeyKey)
		}
		if _, err := tls.X509KeyPair(config.CertData, config.KeyData); err != nil {
			return fmt.Sprintf("has a %q and %q that do not work: %v", credential.CertificateKey, credential.PrivateKeyKey, err)
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

// fingerprint hashes what makes a connection. A token is as good as another of the same account: which is whose is said by
// themselves, and the API server will judge them.
func fingerprint(c *rest.Config) string {
	who := c.BearerToken
	if account := credential.ReadToken(c.BearerToken).Account; account.UID != "" {
		who = "account " + account.Namespace + "/" + account.Name + "/" + account.UID
	}
	raw, err := json.Marshal([]any{c.Host, who, c.CAData, c.CertData, c.KeyData, c.Insecure})
	if err != nil { // strings, bytes and a bool can always be written
		return err.Error()
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])
}
