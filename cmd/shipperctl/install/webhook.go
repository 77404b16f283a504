// SPDX-License-Identifier: Apache-2.0

package install

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/certs/reviewpath"
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

// strict are the webhooks that always have failurePolicy Fail: what they admit is placed on clusters without a further check, and Shipper
// can be set up without it.
var strict = []any{"envelope." + shipper.GroupName, "resourcesnapshot." + shipper.GroupName}

func (m *Management) webhooks(ctx context.Context) error {
	for _, kind := range []string{validating, mutating} {
		title := fmt.Sprintf("Creating the %s in %s namespace", kind, m.Namespace)
		err := m.Report.Step(title, func() (string, error) {
			var how string
			err := retry.RetryOnConflict(retry.DefaultRetry, func() (err error) {
				how, err = m.webhookConfiguration(ctx, kind)
				return err
			})
			return how, err
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
func (m *Management) webhookConfiguration(ctx context.Context, kind string) (string, error) {
	want, live, err := m.configuration(ctx, kind)
	if err != nil {
		return "", err
	}
	if live == nil {
		m.setInjection(want)
		if err := m.address(want, policyIgnore); err != nil {
			return "", err
		}
		if m.WebhookURL != nil { // a URL needs a path; the webhook replaces one with a token at once
			for name, webhook := range webhooksOf(want) {
				if err := setToken(webhook, fmt.Sprint(name), reviewpath.NewToken()); err != nil {
					return "", err
				}
			}
		}
		return created, m.Client.Create(ctx, want, client.FieldOwner(fieldOwner))
	}
	policy := policyIgnore
	if !m.WebhookIgnore && failsClosed(live) {
		policy = policyFail
	}
	if err := errors.Join(m.address(want, policy), m.keepLiveSettings(live, want)); err != nil {
		return "", err
	}
	before := live.GetResourceVersion()
	live.Object["webhooks"] = want.Object["webhooks"]
	m.setInjection(live)
	// Nothing is stored when nothing differs once the API server has filled in its defaults.
	if err := m.Client.Update(ctx, live, client.FieldOwner(fieldOwner)); err != nil {
		return "", err
	}
	if live.GetResourceVersion() == before {
		return unchanged, nil
	}
	return updated, nil
}

// configuration returns a webhook configuration of the manifests, and the live one, or nil.
func (m *Management) configuration(ctx context.Context, kind string) (want, live *unstructured.Unstructured, err error) {
	want, err = manifests.Object(manifests.Webhook, kind, shipper.GroupName)
	if err == nil {
		live, err = current(ctx, m.Client, want)
	}
	return want, live, err
}

// keepLiveSettings copies settings from live to want that the manifests do not decide: the CA bundle and the token in the path,
// which the webhook or the holder of the certificate wrote, the failurePolicy, and the name and the port of the Service.
func (m *Management) keepLiveSettings(live, want *unstructured.Unstructured) error {
	bundle, token, before := "", "", webhooksOf(live)
	for _, webhook := range before {
		if found, _, _ := unstructured.NestedString(webhook, "clientConfig", "caBundle"); found != "" {
			bundle = found
		}
		for _, at := range pathFields {
			path, _, _ := unstructured.NestedString(webhook, at...)
			if _, found, _ := reviewpath.Split(path); found != "" {
				token = found
			}
		}
	}
	for name, webhook := range webhooksOf(want) {
		its := token
		if its == "" && m.WebhookURL != nil && before[name] == nil { // as when it is created; no older version answers for it
			its = reviewpath.NewToken()
		}
		if err := setToken(webhook, fmt.Sprint(name), its); err != nil {
			return err
		}
		if bundle != "" {
			if err := unstructured.SetNestedField(webhook, bundle, "clientConfig", "caBundle"); err != nil {
				return err
			}
		}
		was := before[name]
		if webhook["failurePolicy"] == policyFail && was["failurePolicy"] == policyIgnore && !slices.Contains(strict, name) {
			webhook["failurePolicy"] = policyIgnore
		}
		service, byService, err := unstructured.NestedMap(was, "clientConfig", "service")
		if err != nil {
			return err
		}
		if !byService || m.WebhookURL != nil {
			continue
		}
		fields := []string{"name", "port"}
		if token == "" {
			fields = append(fields, "path") // of an older version, whose webhook answers at no other
		}
		for _, field := range fields {
			if service[field] == nil {
				continue
			}
			if err := unstructured.SetNestedField(webhook, service[field], "clientConfig", "service", field); err != nil {
				return err
			}
		}
	}
	return nil
}

// pathFields are where the path of a webhook can be.
var pathFields = [][]string{{"clientConfig", "service", "path"}, {"clientConfig", "url"}}

// setToken puts a token, unless it is empty, into the path of a webhook.
func setToken(webhook map[string]any, name, token string) error {
	if token == "" {
		return nil // the webhook does it once it runs
	}
	at := pathFields[0]
	path, byURL, err := unstructured.NestedString(webhook, pathFields[1]...)
	if err != nil {
		return err
	}
	if byURL {
		at = pathFields[1]
	} else {
		path = reviewpath.HookOf(name)
	}
	return unstructured.SetNestedField(webhook, reviewpath.With(path, token), at...)
}

// address points every webhook of a configuration, as it is in the manifests, to where Shipper's is, and sets its
// failurePolicy. One that never refuses, or always refuses, when it does not answer stays so.
func (m *Management) address(configuration *unstructured.Unstructured, policy string) error {
	for name, webhook := range webhooksOf(configuration) {
		if webhook["failurePolicy"] == policyFail && !slices.Contains(strict, name) {
			webhook["failurePolicy"] = policy
		}
		if m.WebhookURL != nil {
			webhook["clientConfig"] = map[string]any{"url": m.WebhookURL.JoinPath(reviewpath.HookOf(fmt.Sprint(name))).String()}
		} else if err := unstructured.SetNestedField(webhook, m.Namespace, "clientConfig", "service", "namespace"); err != nil {
			return err
		}
		if err := exempt(webhook, m.Namespace); err != nil {
			return err
		}
	}
	return nil
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

// webhooksOf are the webhooks of a configuration by their names; changes to them are kept.
func webhooksOf(configuration *unstructured.Unstructured) map[any]map[string]any {
	out := map[any]map[string]any{}
	webhooks, _ := configuration.Object["webhooks"].([]any)
	for _, w := range webhooks {
		if webhook, is := w.(map[string]any); is {
			out[webhook["name"]] = webhook
		}
	}
	return out
}

func failsClosed(configuration *unstructured.Unstructured) bool {
	for name, webhook := range webhooksOf(configuration) {
		if webhook["failurePolicy"] == policyFail && !slices.Contains(strict, name) {
			return true
		}
	}
	return false
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

// EnforceWebhooks sets failurePolicy Fail if the API server reaches the webhook, and otherwise leaves it and prints the reason. With
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

// probeTimeout bounds the wait for an API server whose watch has not yet delivered the configuration of its webhooks.
const probeTimeout = 3 * time.Second

// webhooksAnswer calls the webhooks until they answer, for a short time.
func (m *Management) webhooksAnswer(ctx context.Context) error {
	var failure error
	err := wait.PollUntilContextTimeout(ctx, interval, probeTimeout, true, func(ctx context.Context) (bool, error) {
		if err := health.ProbeError(health.ProbeWebhooks(ctx, m.Client)); ctx.Err() == nil {
			failure = err
		}
		return failure == nil, nil
	})
	return cmp.Or(ctx.Err(), failure, err)
}

// closed reports whether every webhook that may fail closed does.
func (m *Management) closed(ctx context.Context) (bool, error) {
	for _, kind := range []string{validating, mutating} {
		want, live, err := m.configuration(ctx, kind)
		if err != nil {
			return false, err
		}
		if live == nil {
			return true, nil // SetFailurePolicy says what is missing
		}
		is := webhooksOf(live)
		for name, webhook := range webhooksOf(want) {
			if webhook["failurePolicy"] == policyFail && is[name]["failurePolicy"] != policyFail {
				return false, nil
			}
		}
	}
	return true, nil
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
		want, live, err := m.configuration(ctx, kind)
		if err != nil {
			return err
		}
		if live == nil {
			return fmt.Errorf("there is no %s %s: run `shipperctl clusters setup management` first", kind, shipper.GroupName)
		}
		changed = false
		wanted := webhooksOf(want)
		for name, webhook := range webhooksOf(live) {
			if wanted[name]["failurePolicy"] == policyIgnore {
				continue
			}
			to := policy
			if slices.Contains(strict, name) {
				to = policyFail
			}
			changed = changed || webhook["failurePolicy"] != to
			webhook["failurePolicy"] = to
		}
		if !changed {
			return nil
		}
		return m.Client.Update(ctx, live, client.FieldOwner(fieldOwner))
	})
	return changed, err
}
