// SPDX-License-Identifier: Apache-2.0

// Package install writes to clusters the objects that Shipper needs there, and prints each step. Every step can be repeated:
// objects that are as wanted stay untouched.
package install

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/certs"
)

// fieldOwner is the field manager of shipperctl. It differs from the reconciler's, so that neither removes the other's fields.
const fieldOwner = "shipperctl"

// interval is the time between two reads of an object that a cluster is to complete.
const interval = 250 * time.Millisecond

// DefaultPatience bounds the wait for a cluster to serve a kind or to issue a token.
const DefaultPatience = 30 * time.Second

// Management is the management cluster: where Shipper runs and where users write Applications.
type Management struct {
	// Client writes to the cluster.
	Client client.WithWatch
	// Report prints each step.
	Report *Report
	// Namespace is where Shipper runs.
	Namespace string
	// GlobalBlocksNamespace is the namespace whose RolloutBlocks hold everywhere.
	GlobalBlocksNamespace string
	// ServiceAccount is the name of Shipper's account in this cluster.
	ServiceAccount string
	// WebhookURL is the base URL of a webhook outside the cluster; nil means the Service shipper-webhook.
	WebhookURL *url.URL
	// Certificates is the source of the webhook's certificate: certs.Self or certs.CertManager. Empty keeps the present source.
	Certificates certs.Mode
	// WebhookIgnore lets writes pass while the webhook does not answer, even where that was forbidden before.
	WebhookIgnore bool
	// Placements are namespaces whose objects Shipper may read, in order to place them, and where it may keep Secrets of what is placed.
	// AllPlaced lets it read all objects.
	Placements []string
	// Patience is how long to wait for the kinds to be served, and for cert-manager to issue the certificate.
	Patience time.Duration
	// Clock reports whether the renewal of the certificate is overdue.
	Clock clock.PassiveClock
}

// Setup writes everything but the Deployment.
func (m *Management) Setup(ctx context.Context) error {
	m.Report.Printf("Setting up management cluster:")
	steps := []func(context.Context) error{
		m.customResourceDefinitions,
		func(ctx context.Context) error { return m.namespace(ctx, shipper.SystemNamespace, m.Namespace) },
		func(ctx context.Context) error {
			return m.namespace(ctx, shipper.GlobalBlocksNamespace, m.GlobalBlocksNamespace)
		},
		m.account().write,
		m.bindPlacements,
		m.certificate,
		m.certificates,
		m.policies,
		m.fairness,
		m.webhooks,
		m.service,
		m.issued,
	}
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return err
		}
	}
	m.Report.Printf("Finished setting up management cluster")
	return m.remindOfMode(ctx)
}

func (m *Management) account() account {
	return account{client: m.Client, report: m.Report, domain: shipper.RBACManagement,
		namespace: m.Namespace, name: m.ServiceAccount, globalBlocks: m.GlobalBlocksNamespace}
}

// Application is an application cluster: where charts are installed. No software of Shipper runs there.
type Application struct {
	// Client writes to the cluster.
	Client client.WithWatch
	// Report prints each step.
	Report *Report
	// Name is the cluster's name in the management cluster.
	Name string
	// Namespace is where the account is, the same as Shipper's namespace in the management cluster.
	Namespace string
	// ServiceAccount is the name of Shipper's account in this cluster.
	ServiceAccount string
	// CA is the certificate authority, PEM, that the connection of Client trusts; empty when it names none. Then the one
	// that the cluster hands out with the token is used.
	CA []byte
	// Elsewhere is true when Shipper uses another address than Client does. The server there may have its certificate
	// from either authority.
	Elsewhere bool
	// TokenLifetime is how long the token is to live before Shipper has renewed it; 0 for one that does not end.
	TokenLifetime time.Duration
	// Clock reports whether a token is old.
	Clock clock.PassiveClock
	// Patience is how long to wait for a token that does not end.
	Patience time.Duration

	notes []string // to say in the end
}

// Credentials are those of Shipper for an application cluster.
type Credentials struct {
	// Token is the bearer token of the account; empty when the management cluster has a client certificate.
	Token []byte
	// Life is how long the next token is to live; 0 when this one does not end.
	Life time.Duration
	// CA is the certificate authority, PEM, of the cluster's API server; empty when the system's roots are meant.
	CA []byte
}

// Account makes the account with its rights, and returns its credentials for each holder.
func (a *Application) Account(ctx context.Context, holders []Holder) ([]Credentials, error) {
	a.Report.Printf("Creating application cluster accounts in cluster %s:", a.Name)
	who := account{client: a.Client, report: a.Report, domain: shipper.RBACApplication,
		namespace: a.Namespace, name: a.ServiceAccount}
	if err := namespace(ctx, a.Client, a.Report, unlabelled(a.Namespace)); err != nil {
		return nil, err
	}
	if err := who.write(ctx); err != nil {
		return nil, err
	}
	credentials, err := a.tokens(ctx, holders)
	if err != nil {
		return nil, err
	}
	if a.TokenLifetime > 0 {
		if err := a.endless(ctx); err != nil {
			return nil, err
		}
	}
	for _, note := range a.notes {
		a.Report.Printf("%s", note)
	}
	a.Report.Printf("Finished creating application cluster accounts in cluster %s\n", a.Name)
	return credentials, nil
}

// Report prints one line for each step.
type Report struct {
	out io.Writer
}

// NewReport returns a Report that writes to out.
func NewReport(out io.Writer) *Report {
	return &Report{out: out}
}

// Printf writes one line.
func (r *Report) Printf(format string, args ...any) {
	fmt.Fprintf(r.out, format+"\n", args...)
}

// Step prints a title, runs the step, and ends the line with its outcome. The title is in the error.
func (r *Report) Step(title string, do func() (string, error)) error {
	fmt.Fprintf(r.out, "%s... ", title)
	answer, err := do()
	if err != nil {
		fmt.Fprintln(r.out, "failed")
		return explain(title, err)
	}
	fmt.Fprintln(r.out, answer)
	return nil
}

// Outcomes of writing an object.
const (
	created   = "done"
	updated   = "already exists. Updating... done"
	unchanged = "already exists. Skipping"
)

// found words an outcome as the answer to whether something exists.
func found(outcome string) string {
	switch outcome {
	case created:
		return "no. Creating... done"
	case updated:
		return "yes. Updating... done"
	default:
		return "yes. Skipping"
	}
}

// explain adds the step that failed to err, and the remedy where one is known.
func explain(title string, err error) error {
	first, size := utf8.DecodeRuneInString(title)
	doing := string(unicode.ToLower(first)) + title[size:]
	if advice := advise(err); advice != "" {
		return fmt.Errorf("%s: %w\n%s", doing, err, advice)
	}
	return fmt.Errorf("%s: %w", doing, err)
}

// advise returns the remedy for err, or nothing.
func advise(err error) string {
	switch {
	case strings.Contains(err.Error(), "failed calling webhook") && strings.Contains(err.Error(), "."+shipper.GroupName+`"`):
		return "The webhook does not answer, and its failurePolicy is Fail. Start Shipper and run this again, or add " +
			"--webhook-ignore to let writes pass while it is down."
	case strings.Contains(err.Error(), "failed calling webhook"):
		return "That is the webhook of another program. Wait until it runs, and run this again."
	case apierrors.IsForbidden(err):
		return "Setting up a cluster needs the rights of its administrator. Ask for cluster-admin, for example: " +
			"kubectl create clusterrolebinding me --clusterrole cluster-admin --user YOU"
	default:
		return ""
	}
}
