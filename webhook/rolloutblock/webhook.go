// SPDX-License-Identifier: Apache-2.0

// Package rolloutblock validates RolloutBlocks: they have a reason and an author, their schedule and expressions are valid, and
// their removal or weakening is recorded.
package rolloutblock

import (
	"context"
	"time"

	"github.com/go-logr/logr"
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"shipper.dev/shipper/apis/rules/block"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/webhook/enumerated"
	"shipper.dev/shipper/webhook/response"
)

const kind = "RolloutBlock"

// Conditions validates expressions.
type Conditions interface {
	Validate(path *field.Path, conditions []shipper.RolloutBlockMatchCondition) field.ErrorList
}

// Webhook validates RolloutBlocks.
type Webhook struct {
	// GlobalNamespace is the namespace whose blocks stop rollouts everywhere.
	GlobalNamespace string
	Conditions      Conditions
	// Clusters are those that are known, none before they are. Scopes that name others are warned of.
	Clusters func() []shipper.Cluster
	Clock    clock.PassiveClock
	Log      logr.Logger
}

// Default stamps the author, and the user who created the block.
func (w *Webhook) Default(_ context.Context, req *admission.Request, a *response.Response) error {
	b, old, err := response.Decode[shipper.RolloutBlock](req)
	if err != nil || b == nil {
		return nil // the schema refuses it with a better message, and deletions are not completed
	}
	if err := enumerated.Check(kind, b.Name, b, old); err != nil {
		return err
	}
	if err := a.Complete(req.Object.Raw, b); err != nil {
		return err
	}
	stampAuthor(b, old, req.UserInfo.Username)
	stampCreator(b, old, req.UserInfo.Username)
	return nil
}

// Validate validates an object before it is stored, and records when one is lifted or weakened.
func (w *Webhook) Validate(_ context.Context, req *admission.Request, a *response.Response) error {
	b, old, err := response.Decode[shipper.RolloutBlock](req)
	if err != nil {
		return err
	}
	if req.Operation == admissionv1.Delete {
		w.recordLifted(req, a, old)
		return nil
	}
	if old != nil && equality.Semantic.DeepEqual(b.Spec, old.Spec) {
		return nil
	}
	if err := response.Invalidate(kind, b.Name, w.validate(b, old)); err != nil {
		return err
	}
	if old != nil {
		w.recordWeakened(req, a, b, old)
	}
	response.WarnOfNulls(a, b, old, response.NullGate, "spec")
	w.announce(a, b, old)
	return nil
}

// announce warns of surprising effects of the block.
func (w *Webhook) announce(a *response.Response, b, old *shipper.RolloutBlock) {
	if old == nil || !equality.Semantic.DeepEqual(b.Spec.Scope, old.Spec.Scope) {
		for _, text := range unknown(b.Spec.Scope, w.Clusters()) {
			a.Warn("%s", text)
		}
	}
	now := w.Clock.Now()
	t, err := block.When(b, now)
	if err != nil {
		return
	}
	switch {
	case !t.Active && t.NextStart.IsZero():
		a.Warn("this block is not in effect, and as it is it never will be again")
	case !t.Active:
		a.Warn("this block is not in effect now; it will be from %s on", t.NextStart.UTC().Format(time.RFC3339))
	case old == nil && b.Namespace == w.GlobalNamespace && b.Spec.Scope == nil && len(b.Spec.MatchConditions) == 0 &&
		(b.Spec.Enforcement == "" || b.Spec.Enforcement == shipper.RolloutBlockDeny):
		a.Warn("this stops rollouts in every namespace, at once")
	}
}
