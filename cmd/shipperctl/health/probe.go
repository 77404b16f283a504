// SPDX-License-Identifier: Apache-2.0

package health

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// probeReason is why a call proves nothing.
type probeReason string

// The reasons.
const (
	// unreachable: the API server called the webhook and got no answer; writes are refused.
	unreachable probeReason = "Unreachable"
	// unasked: the API server admits an object that the webhook refuses: it did not call it, or ignored its failure.
	unasked probeReason = "Unasked"
	// unauthorized: the user of this command may not create the kind.
	unauthorized probeReason = "Unauthorized"
	// unknownAnswer: another answer, such as that of another webhook.
	unknownAnswer probeReason = "Unknown"
)

// ProbeFailure is a kind of object whose webhook was not proved to answer.
type ProbeFailure struct {
	Kind   string
	Reason probeReason
	// Cause is the API server's; empty if it admitted the object.
	Cause string
}

// ProbeWebhooks calls the webhooks of every kind, all at the same time, and returns those that did not answer as expected, in the
// order of the kinds. Nothing is stored.
func ProbeWebhooks(ctx context.Context, c client.Client) []ProbeFailure {
	all := probeRequests()
	found := make([]*ProbeFailure, len(all))
	var group errgroup.Group
	for i, r := range all {
		group.Go(func() error {
			found[i] = classify(r, c.Create(ctx, r.object, client.DryRunAll))
			return nil
		})
	}
	_ = group.Wait() // no call returns an error
	var out []ProbeFailure
	for _, f := range found {
		if f != nil {
			out = append(out, *f)
		}
	}
	return out
}

// The API server's own words about webhooks; k8s.io/apiserver/pkg/admission/plugin/webhook/errors.
const (
	unreachedText = "failed calling webhook"
	refusedText   = "denied the request"
	byPolicyText  = "ValidatingAdmissionPolicy "
)

// classify is pure: nil means that the webhook has answered.
func classify(r probeRequest, err error) *ProbeFailure {
	out := &ProbeFailure{Kind: r.object.GetKind()}
	if err == nil {
		out.Reason = unasked
		return out
	}
	text := err.Error()
	by := func(webhook string) bool {
		return strings.Contains(text, fmt.Sprintf("admission webhook %q %s", webhook, refusedText))
	}
	switch {
	case slices.ContainsFunc(r.webhooks, by):
		return nil
	case strings.Contains(text, unreachedText):
		_, cause, _ := strings.Cut(text, unreachedText+" ")
		out.Reason, out.Cause = unreachable, cause
	case strings.Contains(text, byPolicyText) && r.policyFirst:
		return nil
	case strings.Contains(text, byPolicyText): // the mutating webhook answers before it
		out.Reason = unasked
	case apierrors.IsForbidden(err) && strings.Contains(text, " cannot create resource "):
		out.Reason, out.Cause = unauthorized, text
	default:
		out.Reason, out.Cause = unknownAnswer, text
	}
	return out
}

// ProbeError sums failures up in one error; nil if there is none.
func ProbeError(all []ProbeFailure) error {
	if len(all) == 0 {
		return nil
	}
	text := sentence(all[0].Reason, kindsOf(all[:1]), all[0].Cause)
	if more := len(all) - 1; more > 0 {
		text += fmt.Sprintf("; and %d more kinds", more)
	}
	return errors.New(text)
}

// kindsOf are the names of the kinds of failures.
func kindsOf(all []ProbeFailure) string {
	var out []string
	for _, f := range all {
		out = append(out, f.Kind)
	}
	return strings.Join(out, ", ")
}

// sentence words a failure for several kinds.
func sentence(reason probeReason, kinds, cause string) string {
	switch reason {
	case unreachable:
		return "the API server cannot call the webhook for " + kinds + ": " + cause
	case unasked:
		return "the API server admits, without an answer of the webhook: " + kinds
	case unauthorized:
		return "you may not create " + kinds + ", so that the webhook cannot be tested"
	default:
		return "the webhook was not proved to answer for " + kinds + ": " + cause
	}
}

// ProbeName is that of the objects that are sent. They are never stored.
const ProbeName = "shipperctl-probe"

// probeRequest is an object that one of Shipper's webhooks refuses, in every state of the cluster.
type probeRequest struct {
	object *unstructured.Unstructured
	// webhooks are the names of those that may refuse it.
	webhooks []string
	// policyFirst is true where the API server's own policy refuses, while a block is in effect, what the mutating webhook lets
	// pass: then the other kinds have to prove that the webhook answers.
	policyFirst bool
}

// probeRequests has one for each kind that the webhooks judge. The schema of each kind admits its object.
func probeRequests() []probeRequest {
	environment := map[string]any{
		"chart":               map[string]any{"name": "probe", "version": "0.0.1", "repoUrl": "https://charts.invalid"},
		"clusterRequirements": map[string]any{"regions": []any{map[string]any{"name": "probe"}}},
		"strategy": map[string]any{"steps": []any{map[string]any{
			"name":     "full on",
			"capacity": map[string]any{"contender": int64(100), "incumbent": int64(0)},
			"traffic":  map[string]any{"contender": int64(100), "incumbent": int64(0)},
		}}},
		"values": map[string]any{},
	}
	none := map[string]any{"clusters": []any{}}
	release := probeObject("Release", map[string]any{"environment": environment, "targetStep": int64(0)}, "release", "mutate.release")
	release.policyFirst = true
	return []probeRequest{
		// It is refused before its chart is resolved: there is no Release to roll back to.
		probeObject("Application", map[string]any{
			"template": environment, "rollbackTo": map[string]any{"release": "none"},
		}, "mutate.application"),
		release,
		probeObject("InstallationTarget", map[string]any{"clusters": []any{}, "canOverride": true}, "installationtarget"),
		probeObject("CapacityTarget", none, "capacitytarget"),
		probeObject("TrafficTarget", none, "traffictarget"),
		probeObject("Cluster", map[string]any{"region": " "}, "cluster"),
		probeObject("RolloutBlock", map[string]any{"message": " "}, "rolloutblock"),
	}
}

func probeObject(kind string, spec map[string]any, webhooks ...string) probeRequest {
	o := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	o.SetGroupVersionKind(shipper.GroupVersion.WithKind(kind))
	o.SetName(ProbeName)
	if kind != "Cluster" {
		o.SetNamespace(metav1.NamespaceDefault) // Shipper's own namespace is exempt
	}
	for i := range webhooks {
		webhooks[i] += "." + shipper.GroupName
	}
	return probeRequest{object: o.DeepCopy(), webhooks: webhooks}
}

// probeFindings has one finding for each reason for which webhooks did not answer as expected. It is pure.
func probeFindings(failures []ProbeFailure, namespace string) []Finding {
	var out []Finding
	for _, reason := range []probeReason{unreachable, unasked, unknownAnswer, unauthorized} {
		all := slices.DeleteFunc(slices.Clone(failures), func(f ProbeFailure) bool { return f.Reason != reason })
		if len(all) == 0 {
			continue
		}
		f := Finding{Level: levelBroken, What: sentence(reason, kindsOf(all), all[0].Cause)}
		switch reason {
		case unreachable:
			f.Why = "the API server refuses every write to these kinds: failurePolicy is Fail"
			f.Do = remedy(all[0].Cause, namespace) + ". To let writes pass, unjudged, until then: " + setUp + " --webhook-ignore"
		case unasked:
			f.Why = "writes to these kinds are stored unjudged; blocks are held by the policy alone"
			f.Do = "look whether the webhook runs and answers: " + podsOf(namespace) +
				". With failurePolicy Ignore the API server does not report why it gets no answer"
		case unauthorized:
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

// remedy depends on why the API server does not reach a webhook.
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
