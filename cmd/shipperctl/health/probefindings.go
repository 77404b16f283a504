// SPDX-License-Identifier: Apache-2.0

package health

import (
	"slices"
	"strings"
)

// probeFindings has one finding for each reason for which webhooks did not answer as expected. It is pure.
func probeFindings(failures []ProbeFailure, namespace string) []Finding {
	var out []Finding
	for _, reason := range []ProbeReason{Unreachable, Unasked, Unknown, Unauthorized} {
		all := slices.DeleteFunc(slices.Clone(failures), func(f ProbeFailure) bool { return f.Reason != reason })
		if len(all) == 0 {
			continue
		}
		f := Finding{Level: Broken, What: sentence(reason, kindsOf(all), all[0].Cause)}
		switch reason {
		case Unreachable:
			f.Why = "the API server refuses every write to these kinds: failurePolicy is Fail"
			f.Do = remedy(all[0].Cause, namespace) + ". To let writes pass, unjudged, until then: " + setUp + " --webhook-ignore"
		case Unasked:
			f.Why = "writes to these kinds are stored unjudged; blocks are held by the policy alone"
			f.Do = "look whether the webhook runs and answers: " + podsOf(namespace) +
				". With failurePolicy Ignore the API server does not report why it gets no answer"
		case Unauthorized:
			f.Denied = []string{"create " + kindsOf(all)}
			f.Why, f.Do = unknown, asAdministrator
		default:
			f.Why = "it is not known whether writes to these kinds are judged"
			f.Do = "look what else answers for these kinds: kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations"
		}
		out = append(out, f)
	}
	return out
}

// remedy is what to do about the API server's reason for not reaching a webhook.
func remedy(cause, namespace string) string {
	has := func(parts ...string) bool {
		return slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(cause, part) })
	}
	switch {
	case has("x509", "tls:", "certificate"):
		return "the caBundle of the configuration does not accept the webhook's certificate: see docs/certificates.md, " +
			"or restart the webhook, which writes its caBundle"
	case has("no endpoints available", "connection refused", "EOF", "connection reset"):
		return "start the webhook: " + podsOf(namespace)
	case has("no such host", " not found"):
		return "make the Service, or correct the address of the webhook: " + setUp
	case has("deadline exceeded", "Timeout", "timeout", "no route to host"):
		return "let the API server connect to the webhook: look for a firewall or a NetworkPolicy between the control plane and its port"
	default:
		return "look at the webhook's log and at " + podsOf(namespace)
	}
}

func podsOf(namespace string) string {
	return "kubectl get pods -n " + namespace + " -l app.kubernetes.io/name=shipper"
}
