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
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ProbeReason is why a call proves nothing.
type ProbeReason string

// The reasons.
const (
	// Unreachable: the API server called the webhook and got no answer; writes are refused.
	Unreachable ProbeReason = "Unreachable"
	// Unasked: the API server admits what the webhook refuses: it did not call it, or ignored that it did not answer.
	Unasked ProbeReason = "Unasked"
	// Unauthorized: the user of this command may not create the kind.
	Unauthorized ProbeReason = "Unauthorized"
	// Unknown: another answer, such as that of another webhook.
	Unknown ProbeReason = "Unknown"
)

// ProbeFailure is a kind of object whose webhook was not proved to answer.
type ProbeFailure struct {
	Kind   string
	Reason ProbeReason
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
		out.Reason = Unasked
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
		out.Reason, out.Cause = Unreachable, cause
	case strings.Contains(text, byPolicyText) && r.policyFirst:
		return nil
	case strings.Contains(text, byPolicyText): // the mutating webhook answers before it
		out.Reason = Unasked
	case apierrors.IsForbidden(err) && strings.Contains(text, " cannot create resource "):
		out.Reason, out.Cause = Unauthorized, text
	default:
		out.Reason, out.Cause = Unknown, text
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

// sentence says what happened to kinds.
func sentence(reason ProbeReason, kinds, cause string) string {
	switch reason {
	case Unreachable:
		return "the API server cannot call the webhook for " + kinds + ": " + cause
	case Unasked:
		return "the API server admits, without an answer of the webhook: " + kinds
	case Unauthorized:
		return "you may not create " + kinds + ", so that the webhook cannot be tested"
	default:
		return "the webhook was not proved to answer for " + kinds + ": " + cause
	}
}
