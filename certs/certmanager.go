// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"context"
	"fmt"
	"strings"
	"time"

	certmanagerv1 "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	cmmeta "github.com/cert-manager/cert-manager/pkg/apis/meta/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// CertificateName is the name of the cert-manager Certificate of the webhook, in Shipper's namespace.
const CertificateName = "shipper-webhook"

// renewalGrace is how long after its renewal time a Certificate may still be the old one.
const renewalGrace = 10 * time.Minute

// askTimeout bounds how long a readiness probe waits for the Certificate.
const askTimeout = 2 * time.Second

// ExplainCertificate says why cert-manager has not issued or renewed a Certificate, by its conditions, its failed attempts and its
// renewal time. It is empty if the Certificate is ready and not overdue.
func ExplainCertificate(c *certmanagerv1.Certificate, now time.Time) string {
	var out []string
	add := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	ready := conditionOf(c, certmanagerv1.CertificateConditionReady)
	issuing := conditionOf(c, certmanagerv1.CertificateConditionIssuing)
	switch {
	case ready == nil:
		add("cert-manager has not looked at it: check that cert-manager runs")
	case ready.Status != cmmeta.ConditionTrue:
		add("it is not ready (%s): %s", ready.Reason, ready.Message)
	case ready.ObservedGeneration < c.Generation:
		add("cert-manager has not looked at its last change: check that cert-manager runs")
	}
	switch {
	case issuing == nil:
	case issuing.Status == cmmeta.ConditionTrue && ready != nil && ready.Status != cmmeta.ConditionTrue:
		add("cert-manager is issuing it (%s)", issuing.Reason)
	case issuing.Status == cmmeta.ConditionFalse && issuing.Reason != "" && issuing.Message != "":
		add("the last attempt ended (%s): %s", issuing.Reason, issuing.Message)
	}
	if n := ptr.Deref(c.Status.FailedIssuanceAttempts, 0); n > 0 {
		last := ""
		if at := c.Status.LastFailureTime; at != nil {
			last = ", the last one at " + at.UTC().Format(time.RFC3339)
		}
		add("failed attempts in a row: %d%s", n, last)
	}
	if at := c.Status.RenewalTime; at != nil && now.Sub(at.Time) > renewalGrace {
		add("its renewal was due at %s", at.UTC().Format(time.RFC3339))
	}
	return strings.Join(out, "; ")
}

// conditionOf is the condition of that type; nil if there is none.
func conditionOf(c *certmanagerv1.Certificate, of certmanagerv1.CertificateConditionType) *certmanagerv1.CertificateCondition {
	for i := range c.Status.Conditions {
		if c.Status.Conditions[i].Type == of {
			return &c.Status.Conditions[i]
		}
	}
	return nil
}

// issuance reads the Certificate of the webhook from the API server.
type issuance struct {
	api       client.Reader
	namespace string
	clock     clock.PassiveClock
}

// explain says why there is no certificate to serve with; empty if the Certificate does not say.
func (c *issuance) explain(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	found := &certmanagerv1.Certificate{}
	key := types.NamespacedName{Namespace: c.namespace, Name: CertificateName}
	switch err := c.api.Get(ctx, key, found); {
	case apierrors.IsNotFound(err) || meta.IsNoMatchError(err):
		return fmt.Sprintf("there is no Certificate %s of cert-manager: shipperctl clusters setup management --certificates=cert-manager", key)
	case err != nil:
		return fmt.Sprintf("reading Certificate %s of cert-manager: %v", key, err)
	}
	if why := ExplainCertificate(found, c.clock.Now()); why != "" {
		return fmt.Sprintf("Certificate %s of cert-manager: %s", key, why)
	}
	return ""
}
