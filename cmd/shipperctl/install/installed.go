// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"net/url"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/manifests"
)

// managementRole is the name of the ClusterRole of Shipper's account in the management cluster, and of its binding.
const managementRole = "shipper:management-cluster"

// Named says which settings of a Management the user has named. The others are those of the installation.
type Named struct {
	Namespace, ServiceAccount, GlobalBlocksNamespace, WebhookURL bool
}

// KeepInstalled replaces the settings that the user has not named by those of the installation that is there, if one is.
func (m *Management) KeepInstalled(ctx context.Context, named Named) error {
	binding := &rbacv1.ClusterRoleBinding{}
	err := m.Client.Get(ctx, client.ObjectKey{Name: managementRole}, binding)
	if client.IgnoreNotFound(err) != nil {
		return explain("reading which installation is there", err)
	}
	before := *m
	if !apierrors.IsNotFound(err) {
		m.keepAccount(binding.Subjects, named)
	}
	if !named.GlobalBlocksNamespace {
		live, err := m.installed(ctx, manifests.Policy, policyBinding, "global-blocks."+shipper.GroupName)
		if err != nil {
			return err
		}
		if namespace, found, _ := unstructured.NestedString(live.Object, "spec", "paramRef", "namespace"); found {
			m.GlobalBlocksNamespace = namespace
		}
	}
	if !named.WebhookURL {
		live, err := m.installed(ctx, manifests.Webhook, validating, shipper.GroupName)
		if err != nil {
			return err
		}
		m.WebhookURL = baseURL(live)
	}
	if m.Namespace != before.Namespace || m.ServiceAccount != before.ServiceAccount ||
		m.GlobalBlocksNamespace != before.GlobalBlocksNamespace || m.WebhookURL != before.WebhookURL {
		m.Report.Printf("Keeping the settings of the installation: %s", m.flags())
	}
	return nil
}

// keepAccount takes over the account of the installation; the usual one if that has the rights.
func (m *Management) keepAccount(subjects []rbacv1.Subject, named Named) {
	fits := func(s rbacv1.Subject) bool {
		return (!named.Namespace || s.Namespace == m.Namespace) && (!named.ServiceAccount || s.Name == m.ServiceAccount)
	}
	usual := func(s rbacv1.Subject) bool { return s.Namespace == m.Namespace && s.Name == m.ServiceAccount }
	if slices.ContainsFunc(subjects, usual) {
		return
	}
	if i := slices.IndexFunc(subjects, fits); i >= 0 {
		m.Namespace, m.ServiceAccount = subjects[i].Namespace, subjects[i].Name
	}
}

// installed is an object of the manifests as it is stored; an empty one if it is not there.
func (m *Management) installed(ctx context.Context, folder, kind, name string) (*unstructured.Unstructured, error) {
	want, err := manifests.Object(folder, kind, name)
	if err != nil {
		return nil, err
	}
	live, err := current(ctx, m.Client, want)
	if err != nil {
		return nil, explain("reading which installation is there", err)
	}
	if live == nil {
		live = &unstructured.Unstructured{}
	}
	return live, nil
}

// baseURL is what --webhook-url was when a configuration was written; nil if its webhooks are called through a Service.
func baseURL(configuration *unstructured.Unstructured) *url.URL {
	webhooks, _, _ := unstructured.NestedSlice(configuration.Object, "webhooks")
	for _, w := range webhooks {
		webhook, _ := w.(map[string]any)
		text, found, _ := unstructured.NestedString(webhook, "clientConfig", "url")
		base, err := ParseWebhookURL(text)
		if !found || err != nil || base == nil {
			continue
		}
		base.Path = base.Path[:max(strings.LastIndex(base.Path, "/"), 0)] // the last element is the webhook's own
		return base
	}
	return nil
}

// flags are those that name the settings of m.
func (m *Management) flags() string {
	out := "-n " + m.Namespace + " --management-cluster-service-account " + m.ServiceAccount + " -g " + m.GlobalBlocksNamespace
	if m.WebhookURL != nil {
		out += " --webhook-url " + m.WebhookURL.String()
	}
	return out
}
