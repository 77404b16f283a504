// SPDX-License-Identifier: Apache-2.0

package health

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestMissingRightsAreReportedOnce(t *testing.T) {
	forbidden := func(resource, why string) error {
		return apierrors.NewForbidden(schema.GroupResource{Group: "apps", Resource: resource}, "x", errors.New(why))
	}
	deployments := forbidden("deployments",
		`User "ann" cannot get resource "deployments" in API group "apps" in the namespace "ship"`)
	got := mergeDenied([]Check{
		{"kinds", nil},
		{"pods", []Finding{unreadable("the Deployment", deployments)}},
		{"webhooks", []Finding{
			unreadable("the Deployment", deployments),
			probeFindings([]ProbeFailure{{Kind: "Release", Reason: unauthorized}}, "ship")[0],
		}},
		{"reconciler", []Finding{unreadable("the Lease", forbidden("leases", "a webhook says no"))}},
	})
	want := []Check{
		{"kinds", nil},
		{"reconciler", []Finding{unreadable("the Lease", forbidden("leases", "a webhook says no"))}},
		{"your rights", []Finding{{
			Level: levelBroken, What: "you may not:\ncreate Release\nget deployments.apps in ship",
			Why: "what needs these rights could not be looked at", Do: asAdministrator,
		}}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

func TestProbeFindingsSayWhatMendsTheCause(t *testing.T) {
	const start = "start the webhook: kubectl get pods -n ship -l app.kubernetes.io/name=shipper"
	for cause, want := range map[string]string{
		`Post "https://x": dial tcp 127.0.0.1:1: connect: connection refused`: start,
		`no endpoints available for service "shipper-webhook"`:                start,
		`tls: failed to verify certificate: x509: unknown authority`: "the caBundle of the configuration does not accept the webhook's " +
			"certificate: see docs/certificates.md, or restart the webhook, which writes its caBundle",
		`service "shipper-webhook" not found`: "make the Service, or correct the address of the webhook: " + setUp,
		`context deadline exceeded`: "let the API server connect to the webhook: look for a firewall or a NetworkPolicy between the control " +
			"plane and its port",
	} {
		got := probeFindings([]ProbeFailure{{Kind: "Cluster", Reason: unreachable, Cause: cause}}, "ship")
		if diff := cmp.Diff(want+". To let writes pass, unjudged, until then: "+setUp+" --webhook-ignore", got[0].Do); diff != "" {
			t.Errorf("%s (-want +got)\n%s", cause, diff)
		}
	}
}
