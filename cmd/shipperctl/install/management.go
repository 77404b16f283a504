// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/cmd/shipperctl/cli"
	"shipper.dev/shipper/cmd/shipperctl/health"
	"shipper.dev/shipper/manifests"
)

// customResourceDefinitions registers the kinds and waits until they are served.
func (m *Management) customResourceDefinitions(ctx context.Context) error {
	return m.Report.Step("Registering or updating custom resource definitions", func() (string, error) {
		definitions, err := manifests.Objects(manifests.CRD)
		if err != nil {
			return "", err
		}
		answer := "already exist. Skipping"
		for _, crd := range definitions {
			// Kinds registered by the original kept unknown fields, which cannot stay so in apiextensions.k8s.io/v1.
			if err := unstructured.SetNestedField(crd.Object, false, "spec", "preserveUnknownFields"); err != nil {
				return "", err
			}
			how, err := apply(ctx, m.Client, crd)
			if err != nil {
				return "", fmt.Errorf("applying %s: %w", crd.GetName(), err)
			}
			if how != unchanged {
				answer = "done"
			}
		}
		for _, crd := range definitions {
			if err := m.served(ctx, crd.GetName()); err != nil {
				return "", err
			}
		}
		return answer, nil
	})
}

func (m *Management) served(ctx context.Context, name string) error {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	ok, err := cli.Await(ctx, m.Client, client.ObjectKey{Name: name}, crd, interval, m.Patience, func() bool { return established(crd) })
	if err != nil {
		return fmt.Errorf("waiting for %s: %w", name, err)
	}
	if !ok {
		return cli.WithCode(cli.TimedOut, fmt.Errorf("%s is not served after %s: %s", name, m.Patience, whyNot(crd)))
	}
	return nil
}

func established(crd *apiextensionsv1.CustomResourceDefinition) bool {
	for _, c := range crd.Status.Conditions {
		if c.Type == apiextensionsv1.Established {
			return c.Status == apiextensionsv1.ConditionTrue
		}
	}
	return false
}

// whyNot is the reason in the conditions of a kind that is not served.
func whyNot(crd *apiextensionsv1.CustomResourceDefinition) string {
	for _, c := range crd.Status.Conditions {
		if c.Status == apiextensionsv1.ConditionFalse && c.Message != "" {
			return fmt.Sprintf("%s: %s", c.Reason, c.Message)
		}
	}
	return "the cluster gives no reason; look at kubectl get crd -o yaml"
}

// namespace makes a namespace by the name, with the labels that manifests/deploy has for like.
func (m *Management) namespace(ctx context.Context, like, name string) error {
	want, err := manifests.Object(manifests.Deploy, "Namespace", like)
	if err != nil {
		return err
	}
	want.SetName(name)
	return namespace(ctx, m.Client, m.Report, want)
}

// unlabelled is a namespace without labels.
func unlabelled(name string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetAPIVersion("v1")
	o.SetKind("Namespace")
	o.SetName(name)
	return o
}

// namespace makes a namespace. An existing one stays as it is: its labels belong to its creator.
func namespace(ctx context.Context, c client.Client, r *Report, want *unstructured.Unstructured) error {
	return r.Step("Creating a namespace called "+want.GetName(), func() (string, error) {
		live, err := current(ctx, c, want)
		if err != nil {
			return "", err
		}
		if live != nil && live.GetDeletionTimestamp() != nil {
			return "", errors.New("it exists and is being deleted; wait until it is gone and run this again")
		}
		how, err := ensure(ctx, c, want)
		if err != nil {
			return "", fmt.Errorf("creating it: %w", err)
		}
		return how, nil
	})
}

// reconcilerVariable is the variable of the policy with the name of Shipper's account.
const reconcilerVariable = "reconciler"

// policies writes the admission policies that enforce RolloutBlocks without a webhook.
func (m *Management) policies(ctx context.Context) error {
	objects, err := manifests.Objects(manifests.Policy)
	if err != nil {
		return err
	}
	for _, o := range objects {
		if err := m.setNames(o); err != nil {
			return err
		}
		err := m.Report.Step("Creating a "+o.GetKind()+" called "+o.GetName(), func() (string, error) {
			return apply(ctx, m.Client, o)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// setNames replaces the usual names by those of this installation.
func (m *Management) setNames(o *unstructured.Unstructured) error {
	if o.GetKind() == policyBinding {
		ref, _, err := unstructured.NestedMap(o.Object, "spec", "paramRef")
		if err != nil || ref["namespace"] != shipper.GlobalBlocksNamespace {
			return err
		}
		return unstructured.SetNestedField(o.Object, m.GlobalBlocksNamespace, "spec", "paramRef", "namespace")
	}
	// Policies about users alone do not name the account.
	account := serviceaccount.MakeUsername(m.Namespace, m.ServiceAccount)
	if variable, err := field(o, "variables", reconcilerVariable); err == nil {
		variable["expression"] = quote(account)
	}
	if conditions, found, _ := unstructured.NestedSlice(o.Object, "spec", "matchConditions"); found {
		usual := serviceaccount.MakeUsername(shipper.SystemNamespace, shipper.ManagementServiceAccount)
		for _, c := range conditions {
			condition, _ := c.(map[string]any)
			text, _ := condition["expression"].(string)
			condition["expression"] = strings.ReplaceAll(text, "'"+usual+"'", "'"+account+"'")
		}
		if err := unstructured.SetNestedSlice(o.Object, conditions, "spec", "matchConditions"); err != nil {
			return fmt.Errorf("naming the account in policy %s: %w", o.GetName(), err)
		}
	}
	constraints, _, err := unstructured.NestedMap(o.Object, "spec", "matchConstraints")
	if err != nil {
		return fmt.Errorf("reading policy %s: %w", o.GetName(), err)
	}
	if err := exempt(constraints, m.Namespace); err != nil {
		return err
	}
	return unstructured.SetNestedMap(o.Object, constraints, "spec", "matchConstraints")
}

// webhookService and webhookCertificate are the names of the webhook's Service and Secret.
const (
	webhookService     = "shipper-webhook"
	webhookCertificate = "shipper-webhook-cert"
)

func (m *Management) service(ctx context.Context) error {
	if m.WebhookURL != nil {
		return nil
	}
	return m.Report.Step("Creating a Service object for the validating webhook", func() (string, error) {
		want, err := manifests.Object(manifests.Deploy, "Service", webhookService)
		if err != nil {
			return "", err
		}
		want.SetNamespace(m.Namespace)
		return apply(ctx, m.Client, want)
	})
}

// certificate makes the Secret that the webhook keeps its certificate in: empty, because the webhook may fill it but
// not make it.
func (m *Management) certificate(ctx context.Context) error {
	title := fmt.Sprintf("Checking if a secret already exists for the validating webhook in the %s namespace", m.Namespace)
	return m.Report.Step(title, func() (string, error) {
		want, err := manifests.Object(manifests.Deploy, "Secret", webhookCertificate)
		if err != nil {
			return "", err
		}
		want.SetNamespace(m.Namespace)
		how, err := ensure(ctx, m.Client, want)
		return found(how), err
	})
}

// managementRole is the name of the ClusterRole of Shipper's account in the management cluster, and of its binding.
const managementRole = "shipper:management-cluster"

// Named marks the settings of a Management that the user has named. The others are those of the installation.
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
		m.WebhookURL = health.WebhookURL(live)
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

// installed reads an object of the manifests; an empty one if there is none.
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

// flags are those that name the settings of m.
func (m *Management) flags() string {
	out := "-n " + m.Namespace + " --management-cluster-service-account " + m.ServiceAccount + " -g " + m.GlobalBlocksNamespace
	if m.WebhookURL != nil {
		out += " --webhook-url " + m.WebhookURL.String()
	}
	return out
}
