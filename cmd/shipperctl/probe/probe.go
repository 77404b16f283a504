// SPDX-License-Identifier: Apache-2.0

// Package probe calls Shipper's webhooks through the API server. For each kind it sends a dry-run create of an object that
// the webhook refuses; the refusal proves that the API server reaches the webhook, and no other answer does.
package probe

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

// Reason is why a call proves nothing.
type Reason string

// The reasons.
const (
	// Unreachable: the API server called the webhook and got no answer; writes are refused.
	Unreachable Reason = "Unreachable"
	// Unasked: the API server admits what the webhook refuses: it did not call it, or ignored that it did not answer.
	Unasked Reason = "Unasked"
	// Unauthorized: the user of this command may not create the kind.
	Unauthorized Reason = "Unauthorized"
	// Unknown: another answer, such as that of another webhook.
	Unknown Reason = "Unknown"
)

// Failure is a kind of object whose webhook was not proved to answer.
type Failure struct {
	Kind   string
	Reason Reason
	// Cause is the API server's; empty if it admitted the object.
	Cause string
}

// Webhooks calls the webhooks of every kind, all at the same time, and returns those that did not answer as expected, in the
// order of the kinds. Nothing is stored.
func Webhooks(ctx context.Context, c client.Client) []Failure {
	all := requests()
	found := make([]*Failure, len(all))
	var group errgroup.Group
	for i, r := range all {
		group.Go(func() error {
			found[i] = judge(r, c.Create(ctx, r.object, client.DryRunAll))
			return nil
		})
	}
	_ = group.Wait() // no call returns an error
	var out []Failure
	for _, f := range found {
		if f != nil {
			out = append(out, *f)
		}
	}
	return out
}

// The API server's own words about webhooks; k8s.io/apiserver/pkg/admission/plugin/webhook/errors.
const (
	unreached = "failed calling webhook"
	refused   = "denied the request"
	byPolicy  = "ValidatingAdmissionPolicy "
)

// judge is pure: nil means that the webhook has answered.
func judge(r request, err error) *Failure {
	out := &Failure{Kind: r.object.GetKind()}
	if err == nil {
		out.Reason = Unasked
		return out
	}
	text := err.Error()
	by := func(webhook string) bool {
		return strings.Contains(text, fmt.Sprintf("admission webhook %q %s", webhook, refused))
	}
	switch {
	case slices.ContainsFunc(r.webhooks, by):
		return nil
	case strings.Contains(text, unreached):
		_, cause, _ := strings.Cut(text, unreached+" ")
		out.Reason, out.Cause = Unreachable, cause
	case strings.Contains(text, byPolicy) && r.policyFirst:
		return nil
	case strings.Contains(text, byPolicy): // the mutating webhook answers before it
		out.Reason = Unasked
	case apierrors.IsForbidden(err) && strings.Contains(text, " cannot create resource "):
		out.Reason, out.Cause = Unauthorized, text
	default:
		out.Reason, out.Cause = Unknown, text
	}
	return out
}

// Error sums failures up in one error; nil if there is none.
func Error(all []Failure) error {
	if len(all) == 0 {
		return nil
	}
	text := Sentence(all[0].Reason, Kinds(all[:1]), all[0].Cause)
	if more := len(all) - 1; more > 0 {
		text += fmt.Sprintf("; and %d more kinds", more)
	}
	return errors.New(text)
}

// Kinds are the names of the kinds of failures.
func Kinds(all []Failure) string {
	var out []string
	for _, f := range all {
		out = append(out, f.Kind)
	}
	return strings.Join(out, ", ")
}

// Sentence says what happened to kinds.
func Sentence(reason Reason, kinds, cause string) string {
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
