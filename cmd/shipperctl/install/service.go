// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"fmt"

	"shipper.dev/shipper/manifests"
)

// webhookService and webhookCertificate are the names of the webhook's Service and Secret.
const (
	webhookService     = "shipper-webhook"
	webhookCertificate = "shipper-webhook-cert"
)

// service makes the Service by which API servers reach the webhook; a webhook outside the cluster needs none.
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
		how, err := apply(ctx, m.Client, want)
		return string(how), err
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
		return how.found(), err
	})
}
