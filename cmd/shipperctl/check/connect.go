// SPDX-License-Identifier: Apache-2.0

package check

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/outward"
	"shipper.dev/shipper/reconciler/check/measurement"
)

// forward is what a user can do who does not reach a server, or may not read its credentials.
const forward = "run `kubectl port-forward` to the server, and give --address http://localhost:9090"

// server fills in where a Check is measured in a cluster.
func (a *attempt) server(ctx context.Context, cluster *shipper.Cluster, at *measurement.Input) error {
	spec := &a.run.Check
	address, secret := "", client.ObjectKey{Namespace: a.check.Namespace}
	switch metrics := cluster.Spec.Metrics; {
	case spec.HTTP != nil:
		address, secret.Name = spec.HTTP.URL, spec.HTTP.SecretName
	case spec.Prometheus.Address != "":
		address, secret.Name = spec.Prometheus.Address, spec.Prometheus.SecretName
	case metrics != nil:
		address, secret = metrics.Address, client.ObjectKey{Namespace: a.system, Name: metrics.SecretName}
		at.TenantLabel, at.Tenant = metrics.TenantLabel, a.target.Namespace
	case a.address == "":
		return fmt.Errorf("cluster %q has no spec.metrics, and the Check no prometheus.address: %s", cluster.Name, forward)
	}
	var credentials outward.Credentials
	if a.address != "" {
		address = a.address // gets no credentials: they are for another server
	} else if secret.Name != "" {
		var err error
		if credentials, err = a.credentials(ctx, secret); err != nil {
			return err
		}
	}
	at.Address = address
	var err error
	at.Client, err = connect(credentials)
	if err != nil {
		return fmt.Errorf("the Secret %s %w", secret, err)
	}
	return nil
}

// credentials reads a Secret with the user's rights.
func (a *attempt) credentials(ctx context.Context, key client.ObjectKey) (outward.Credentials, error) {
	secret := &corev1.Secret{}
	err := a.client.Get(ctx, key, secret)
	switch {
	case apierrors.IsForbidden(err):
		return outward.Credentials{}, fmt.Errorf("you may not read Secret %s, which has the credentials: %s", key, forward)
	case apierrors.IsNotFound(err):
		return outward.Credentials{}, fmt.Errorf("there is no Secret %s, which should have the credentials", key)
	case err != nil:
		return outward.Credentials{}, fmt.Errorf("reading Secret %s: %w", key, err)
	}
	return outward.CredentialsOf(secret.Data), nil
}

// connect is a client for any server: users name what they ask. It follows no redirects.
func connect(c outward.Credentials) (*http.Client, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	config, err := c.TLS()
	if err != nil {
		return nil, err
	}
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment, TLSClientConfig: config, ForceAttemptHTTP2: true, DisableKeepAlives: true}
	return &http.Client{Transport: &authenticated{c, transport}, CheckRedirect: outward.NoRedirects}, nil
}

// authenticated adds credentials to each request.
type authenticated struct {
	credentials outward.Credentials
	next        http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (a *authenticated) RoundTrip(request *http.Request) (*http.Response, error) {
	return a.next.RoundTrip(a.credentials.Authorize(request))
}

// checkAddress returns an error if an --address is not the URL of a server.
func checkAddress(address string) error {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return errors.New("--address is not the URL of a server: write it like http://localhost:9090")
	}
	return nil
}

// onServer is a URL with another server in place of its own. Arguments stay as they are written.
func onServer(text, address string) string {
	_, rest, _ := strings.Cut(text, "://")
	path := ""
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		path = rest[i:]
	}
	return strings.TrimRight(address, "/") + path
}
