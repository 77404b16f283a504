// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"fmt"
	"net/url"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/manifests"
)

// The kinds of webhook configurations, and the values of failurePolicy.
const (
	validating = "ValidatingWebhookConfiguration"
	mutating   = "MutatingWebhookConfiguration"

	policyFail   = "Fail"
	policyIgnore = "Ignore"
)

// webhooks writes the two webhook configurations.
func (m *Management) webhooks(ctx context.Context) error {
	for _, kind := range []string{validating, mutating} {
		title := fmt.Sprintf("Creating the %s in %s namespace", kind, m.Namespace)
		err := m.Report.Step(title, func() (string, error) {
			var how outcome
			err := retry.RetryOnConflict(retry.DefaultRetry, func() (err error) {
				how, err = m.webhookConfiguration(ctx, kind)
				return err
			})
			return string(how), err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// webhookConfiguration writes one configuration. The list of webhooks is replaced as a whole and not applied:
// server-side apply would leave the rest of a webhook that is no more, because the CA bundle in it is another
// writer's.
func (m *Management) webhookConfiguration(ctx context.Context, kind string) (outcome, error) {
	want, err := manifests.Object(manifests.Webhook, kind, shipper.GroupName)
	if err != nil {
		return "", err
	}
	live, err := current(ctx, m.Client, want)
	if err != nil {
		return "", err
	}
	if live == nil {
		m.inject(want)
		if err := m.address(want, policyIgnore); err != nil {
			return "", err
		}
		return created, m.Client.Create(ctx, want, client.FieldOwner(fieldOwner))
	}
	policy := policyIgnore
	if !m.WebhookIgnore && fails(live) {
		policy = policyFail
	}
	if err := m.address(want, policy); err != nil {
		return "", err
	}
	if err := m.keep(live, want); err != nil {
		return "", err
	}
	before := live.GetResourceVersion()
	live.Object["webhooks"] = want.Object["webhooks"]
	m.inject(live)
	// Nothing is stored when nothing differs once the API server has filled in its defaults.
	if err := m.Client.Update(ctx, live, client.FieldOwner(fieldOwner)); err != nil {
		return "", err
	}
	if live.GetResourceVersion() == before {
		return unchanged, nil
	}
	return updated, nil
}

// keep gives the webhooks of want what those of live have that the manifests do not decide: the CA bundle, which the holder of
// the certificate wrote, the failurePolicy, and the name and the port of the Service.
func (m *Management) keep(live, want *unstructured.Unstructured) error {
	var bundle string
	before := map[any]map[string]any{} // by name
	err := eachWebhook(live, func(webhook map[string]any) error {
		before[webhook["name"]] = webhook
		found, _, err := unstructured.NestedString(webhook, "clientConfig", "caBundle")
		if found != "" {
			bundle = found
		}
		return err
	})
	if err != nil {
		return err
	}
	return eachWebhook(want, func(webhook map[string]any) error {
		if bundle != "" {
			if err := unstructured.SetNestedField(webhook, bundle, "clientConfig", "caBundle"); err != nil {
				return err
			}
		}
		was := before[webhook["name"]]
		if was == nil {
			return nil
		}
		if webhook["failurePolicy"] == policyFail && was["failurePolicy"] == policyIgnore {
			webhook["failurePolicy"] = policyIgnore
		}
		service, byService, err := unstructured.NestedMap(was, "clientConfig", "service")
		if err != nil || !byService || m.WebhookURL != nil {
			return err
		}
		for _, field := range []string{"name", "port"} {
			if service[field] == nil {
				continue
			}
			if err := unstructured.SetNestedField(webhook, service[field], "clientConfig", "service", field); err != nil {
				return err
			}
		}
		return nil
	})
}

// address points every webhook of a configuration, as it is in the manifests, to where Shipper's is, and sets its
// failurePolicy. One that never refuses when it does not answer stays so.
func (m *Management) address(configuration *unstructured.Unstructured, policy string) error {
	return eachWebhook(configuration, func(webhook map[string]any) error {
		if webhook["failurePolicy"] == policyFail {
			webhook["failurePolicy"] = policy
		}
		path, _, err := unstructured.NestedString(webhook, "clientConfig", "service", "path")
		if err != nil {
			return err
		}
		if m.WebhookURL != nil {
			webhook["clientConfig"] = map[string]any{"url": m.WebhookURL.JoinPath(path).String()}
			return exempt(webhook, m.Namespace)
		}
		if err := unstructured.SetNestedField(webhook, m.Namespace, "clientConfig", "service", "namespace"); err != nil {
			return err
		}
		return exempt(webhook, m.Namespace)
	})
}

// exempt replaces the default namespace by namespace wherever the webhook's namespaceSelector leaves it out.
func exempt(webhook map[string]any, namespace string) error {
	expressions, found, err := unstructured.NestedSlice(webhook, "namespaceSelector", "matchExpressions")
	if err != nil || !found {
		return err
	}
	for _, e := range expressions {
		expression, is := e.(map[string]any)
		if !is {
			continue
		}
		values, _, err := unstructured.NestedStringSlice(expression, "values")
		if err != nil {
			return err
		}
		if i := slices.Index(values, shipper.SystemNamespace); i >= 0 {
			values[i] = namespace
			if err := unstructured.SetNestedStringSlice(expression, values, "values"); err != nil {
				return err
			}
		}
	}
	return unstructured.SetNestedSlice(webhook, expressions, "namespaceSelector", "matchExpressions")
}

// eachWebhook calls do for every webhook of a configuration; changes are kept.
func eachWebhook(configuration *unstructured.Unstructured, do func(map[string]any) error) error {
	webhooks, _ := configuration.Object["webhooks"].([]any)
	for _, w := range webhooks {
		webhook, is := w.(map[string]any)
		if !is {
			return fmt.Errorf("%s %s is malformed", configuration.GetKind(), configuration.GetName())
		}
		if err := do(webhook); err != nil {
			return fmt.Errorf("%s %s: %w", configuration.GetKind(), configuration.GetName(), err)
		}
	}
	return nil
}

// ParseWebhookURL reads the base URL of a webhook that runs outside the cluster; empty means that it runs inside.
func ParseWebhookURL(text string) (*url.URL, error) {
	if text == "" {
		return nil, nil
	}
	u, err := url.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("the URL of the webhook: %w", err)
	}
	if u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return nil, fmt.Errorf("the URL of the webhook is %q: API servers need one like https://host:port, "+
			"without user, query or fragment", text)
	}
	return u, nil
}
