// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/cmd/shipperctl/health"
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

// EnforceWebhooks sets failurePolicy Fail if the API server reaches the webhook, and otherwise leaves it and says why. With
// WebhookIgnore it sets Ignore.
func (m *Management) EnforceWebhooks(ctx context.Context) error {
	if m.WebhookIgnore {
		return m.SetFailurePolicy(ctx)
	}
	closed, err := m.closed(ctx)
	if err != nil {
		return explain("reading the failurePolicy of the webhooks", err)
	}
	if closed {
		return m.SetFailurePolicy(ctx)
	}
	if err := m.webhooksAnswer(ctx); err != nil {
		if ctx.Err() != nil {
			return err
		}
		m.Report.Printf("Setting the failurePolicy of the webhooks to Fail... not done: %v", err)
		m.Report.Printf("Note: the failurePolicy stays Ignore: writes to Shipper's objects are not judged while the webhook does not answer.\n" +
			"Start Shipper, see what `shipperctl doctor` reports, then run `shipperctl clusters join` again.")
		return nil
	}
	return m.SetFailurePolicy(ctx)
}

// Bounds of the wait for an API server that has not yet heard of the configuration of its webhooks: it reads them by a watch.
const (
	probeTimeout  = 3 * time.Second
	probeInterval = 250 * time.Millisecond
)

// webhooksAnswer calls the webhooks until they answer, for a short time.
func (m *Management) webhooksAnswer(ctx context.Context) error {
	last := time.After(probeTimeout)
	for {
		err := health.ProbeError(health.ProbeWebhooks(ctx, m.Client))
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-last:
			return err
		case <-time.After(probeInterval):
		}
	}
}

// closed reports whether every webhook that may fail closed does.
func (m *Management) closed(ctx context.Context) (bool, error) {
	for _, kind := range []string{validating, mutating} {
		want, err := manifests.Object(manifests.Webhook, kind, shipper.GroupName)
		if err != nil {
			return false, err
		}
		live, err := current(ctx, m.Client, want)
		if err != nil {
			return false, err
		}
		if live == nil {
			return true, nil // SetFailurePolicy says what is missing
		}
		is := policiesOf(live)
		for name, policy := range policiesOf(want) {
			if policy == policyFail && is[name] != policyFail {
				return false, nil
			}
		}
	}
	return true, nil
}

// policiesOf are the failurePolicies of a configuration by the name of the webhook.
func policiesOf(configuration *unstructured.Unstructured) map[string]string {
	out := map[string]string{}
	webhooks, _ := configuration.Object["webhooks"].([]any)
	for _, w := range webhooks {
		webhook, _ := w.(map[string]any)
		name, _, _ := unstructured.NestedString(webhook, "name")
		out[name], _, _ = unstructured.NestedString(webhook, "failurePolicy")
	}
	return out
}

// SetFailurePolicy makes the webhooks refuse when they do not answer, or, with WebhookIgnore, let writes pass.
func (m *Management) SetFailurePolicy(ctx context.Context) error {
	policy := policyFail
	if m.WebhookIgnore {
		policy = policyIgnore
	}
	return m.Report.Step("Setting the failurePolicy of the webhooks to "+policy, func() (string, error) {
		answer := "already so. Skipping"
		for _, kind := range []string{validating, mutating} {
			changed, err := m.setPolicy(ctx, kind, policy)
			if err != nil {
				return "", err
			}
			if changed {
				answer = "done"
			}
		}
		return answer, nil
	})
}

// setPolicy changes the failurePolicy of every webhook in one configuration, and reports whether that was needed.
func (m *Management) setPolicy(ctx context.Context, kind, policy string) (changed bool, err error) {
	err = retry.RetryOnConflict(retry.DefaultRetry, func() error {
		want, err := manifests.Object(manifests.Webhook, kind, shipper.GroupName)
		if err != nil {
			return err
		}
		live, err := current(ctx, m.Client, want)
		if err != nil {
			return err
		}
		if live == nil {
			return fmt.Errorf("there is no %s %s: run `shipperctl clusters setup management` first", kind, shipper.GroupName)
		}
		lenient := map[any]bool{} // by name
		err = eachWebhook(want, func(webhook map[string]any) error {
			lenient[webhook["name"]] = webhook["failurePolicy"] == policyIgnore
			return nil
		})
		if err != nil {
			return err
		}
		changed = false
		err = eachWebhook(live, func(webhook map[string]any) error {
			if !lenient[webhook["name"]] {
				changed = changed || webhook["failurePolicy"] != policy
				webhook["failurePolicy"] = policy
			}
			return nil
		})
		if err != nil || !changed {
			return err
		}
		return m.Client.Update(ctx, live, client.FieldOwner(fieldOwner))
	})
	return changed, err
}

// fails reports whether any webhook of a configuration refuses when it does not answer.
func fails(configuration *unstructured.Unstructured) bool {
	failing := false
	err := eachWebhook(configuration, func(webhook map[string]any) error {
		failing = failing || webhook["failurePolicy"] == policyFail
		return nil
	})
	return err == nil && failing
}
