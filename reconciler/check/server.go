// SPDX-License-Identifier: Apache-2.0

package check

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/outward"
	"shipper.dev/shipper/reconciler/check/measurement"
)

// server is the server that a check is measured by in a cluster, with a client for it.
func (r *Reconciler) server(ctx context.Context, c *one, cluster *shipper.Cluster) (measurement.Input, error) {
	out, spec := measurement.Input{}, &c.run.Check
	switch {
	case spec.HTTP != nil:
		return r.own(ctx, c, spec.HTTP.URL, spec.HTTP.SecretName)
	case spec.Prometheus.Address != "":
		return r.own(ctx, c, spec.Prometheus.Address, spec.Prometheus.SecretName)
	case cluster.Spec.Metrics == nil:
		return out, unavailablef("Cluster %q has no spec.metrics: its administrator can add it, or the Check names prometheus.address",
			cluster.Name)
	}
	metrics := cluster.Spec.Metrics
	credentials, err := r.credentials(ctx, r.client, types.NamespacedName{Namespace: r.Namespace, Name: metrics.SecretName})
	if err != nil {
		return out, err
	}
	// An administrator names the server of a cluster: any https URL that is not of the machine's surroundings, and those that are listed.
	var policy outward.Policy
	if u, err := url.Parse(metrics.Address); err == nil && r.URLs != nil && r.URLs.Check(u) == nil {
		policy = *r.URLs
	}
	out.Address, out.TenantLabel, out.Tenant = metrics.Address, metrics.TenantLabel, c.key.Namespace
	out.Client, err = r.connect(policy, metrics.Address, credentials)
	return out, err
}

// own is a server that the Check itself names.
func (r *Reconciler) own(ctx context.Context, c *one, address, secret string) (measurement.Input, error) {
	if r.URLs == nil {
		return measurement.Input{}, unavailablef("--outgoing-urls lists no URL: Checks by http and addresses of your own are off here")
	}
	namespace, _, _ := strings.Cut(c.run.From, "/")
	if namespace != c.key.Namespace && namespace != r.SharedNamespace {
		return measurement.Input{}, unavailablef("Check %s is of another namespace", c.run.From)
	}
	switch cluster, err := r.measuredWithTenant(ctx, address); {
	case err != nil:
		return measurement.Input{}, err
	case cluster != "":
		return measurement.Input{}, unavailablef("%s is the server of Cluster %q, which is asked for the series of one namespace alone: leave "+
			"prometheus.address out", address, cluster)
	}
	credentials, err := r.credentials(ctx, r.secrets, types.NamespacedName{Namespace: namespace, Name: secret})
	if err != nil {
		return measurement.Input{}, err
	}
	to, err := r.connect(*r.URLs, address, credentials)
	return measurement.Input{Address: address, Client: to}, err
}

// measuredWithTenant is the name of a Cluster whose metrics are at the host of an address, and are restricted to one namespace; empty if
// there is none.
func (r *Reconciler) measuredWithTenant(ctx context.Context, address string) (string, error) {
	u, err := url.Parse(address)
	if err != nil {
		return "", unavailablef("%q is not a URL", address)
	}
	var all shipper.ClusterList
	if err := r.client.List(ctx, &all, client.UnsafeDisableDeepCopy); err != nil {
		return "", fmt.Errorf("listing clusters: %w", err)
	}
	for i := range all.Items {
		m := all.Items[i].Spec.Metrics
		if m == nil || m.TenantLabel == "" {
			continue
		}
		theirs, err := url.Parse(m.Address)
		if err == nil && outward.HostOf(theirs) == outward.HostOf(u) && outward.PortOf(theirs) == outward.PortOf(u) {
			return all.Items[i].Name, nil
		}
	}
	return "", nil
}

// credentials reads a Secret; nil without a name.
func (r *Reconciler) credentials(ctx context.Context, from client.Reader, key types.NamespacedName) (*corev1.Secret, error) {
	if key.Name == "" {
		return nil, nil
	}
	secret := &corev1.Secret{}
	err := from.Get(ctx, key, secret)
	switch {
	case apierrors.IsNotFound(err):
		return nil, unavailablef("there is no Secret %s", key)
	case apierrors.IsForbidden(err):
		return nil, unavailablef("Shipper may not read Secret %s: %s", key, shipper.BindCommand(shipper.NamespaceReader, key.Namespace))
	case err != nil:
		return nil, fmt.Errorf("reading Secret %s: %w", key, err)
	}
	return secret, nil
}

// newClients keeps the clients of servers, of which the least used ones are closed.
func newClients() *lru.Cache {
	return lru.NewWithEvictionFunc(maxClients, func(_ lru.Key, value any) {
		if c, ok := value.(*http.Client); ok {
			c.CloseIdleConnections()
		}
	})
}

// connect is the client for a server and its credentials. It is kept, so that measurements do not make a connection each.
func (r *Reconciler) connect(policy outward.Policy, address string, secret *corev1.Secret) (*http.Client, error) {
	if r.Transport != nil {
		return &http.Client{Transport: r.Transport, CheckRedirect: outward.NoRedirects}, nil
	}
	key, credentials := policy.String()+" "+address, outward.Credentials{}
	if secret != nil {
		key += " " + digest(secret.Data)
		credentials = outward.CredentialsOf(secret.Data)
	}
	if known, ok := r.clients.Get(key); ok {
		if to, ok := known.(*http.Client); ok {
			return to, nil
		}
	}
	to, err := outward.NewClient(policy, credentials)
	if err != nil {
		return nil, unavailablef("Secret %s/%s %s", secret.Namespace, secret.Name, err)
	}
	r.clients.Add(key, to)
	return to, nil
}

// digest identifies the content of a Secret.
func digest(data map[string][]byte) string {
	sum := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(data)) {
		fmt.Fprintf(sum, "%q %d ", name, len(data[name]))
		sum.Write(data[name])
	}
	return hex.EncodeToString(sum.Sum(nil))
}
