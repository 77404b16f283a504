// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/cmd/shipperctl/health"
	"shipper.dev/shipper/manifests"
)

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
