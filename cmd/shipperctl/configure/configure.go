// SPDX-License-Identifier: Apache-2.0

// Package configure writes to clusters what Shipper needs there, and tells each step. Every step can be repeated:
// what is already so is left alone.
package configure

import (
	"context"
	"net/url"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// fieldOwner is the name under which the command line owns what it applies. It differs from the running system's, so
// that neither takes out the fields of the other.
const fieldOwner = "shipperctl"

// DefaultPatience is how long to wait for what a cluster does by itself.
const DefaultPatience = 30 * time.Second

// Management is the management cluster: where Shipper runs and where users write Applications.
type Management struct {
	// Client writes to the cluster.
	Client client.WithWatch
	// Report is told each step.
	Report *Report
	// Namespace is where Shipper runs.
	Namespace string
	// GlobalBlocksNamespace is the namespace whose RolloutBlocks hold everywhere.
	GlobalBlocksNamespace string
	// ServiceAccount is who Shipper is in this cluster.
	ServiceAccount string
	// WebhookURL is the base URL of a webhook outside the cluster; nil means the Service shipper-webhook.
	WebhookURL *url.URL
	// WebhookIgnore lets writes pass while the webhook does not answer, even where that was forbidden before.
	WebhookIgnore bool
	// Patience is how long to wait for the kinds to be served.
	Patience time.Duration
}

// Setup writes everything but the Deployment.
func (m *Management) Setup(ctx context.Context) error {
	m.Report.Say("Setting up management cluster:")
	steps := []func(context.Context) error{
		m.customResourceDefinitions,
		func(ctx context.Context) error { return namespace(ctx, m.Client, m.Report, m.Namespace) },
		func(ctx context.Context) error { return namespace(ctx, m.Client, m.Report, m.GlobalBlocksNamespace) },
		m.account().serviceAccount,
		m.account().rules,
		m.certificate,
		m.policies,
		m.webhooks,
		m.service,
	}
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return err
		}
	}
	m.Report.Say("Finished setting up management cluster")
	return nil
}

// account is who Shipper is in the management cluster.
func (m *Management) account() account {
	return account{client: m.Client, report: m.Report, domain: shipper.RBACManagement,
		namespace: m.Namespace, name: m.ServiceAccount}
}

// Application is an application cluster: where charts are installed. No software of Shipper runs there.
type Application struct {
	// Client writes to the cluster.
	Client client.WithWatch
	// Report is told each step.
	Report *Report
	// Name is the cluster's name in the management cluster.
	Name string
	// Namespace is where the account is, the same as Shipper's namespace in the management cluster.
	Namespace string
	// ServiceAccount is who Shipper is in this cluster.
	ServiceAccount string
	// CA is used when the cluster does not hand out its certificate authority with the token.
	CA []byte
	// Patience is how long to wait for the token.
	Patience time.Duration
}

// Credentials are what Shipper needs to speak to an application cluster.
type Credentials struct {
	// Token is the bearer token of the account. It does not expire.
	Token []byte
	// CA is the certificate authority, PEM, of the cluster's API server; empty when the system's roots are meant.
	CA []byte
}

// Account makes the account with its rights, and returns its credentials.
func (a *Application) Account(ctx context.Context) (Credentials, error) {
	a.Report.Say("Creating application cluster accounts in cluster %s:", a.Name)
	who := account{client: a.Client, report: a.Report, domain: shipper.RBACApplication,
		namespace: a.Namespace, name: a.ServiceAccount}
	if err := namespace(ctx, a.Client, a.Report, a.Namespace); err != nil {
		return Credentials{}, err
	}
	if err := who.serviceAccount(ctx); err != nil {
		return Credentials{}, err
	}
	if err := who.rules(ctx); err != nil {
		return Credentials{}, err
	}
	credentials, err := a.token(ctx)
	if err != nil {
		return Credentials{}, err
	}
	a.Report.Say("Finished creating application cluster accounts in cluster %s\n", a.Name)
	return credentials, nil
}
