// SPDX-License-Identifier: Apache-2.0

// Package strategy validates Strategies, and warns of the Applications that take them.
package strategy

import (
	"context"
	"fmt"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/webhook/protected"
	"shipper.dev/shipper/webhook/response"
	"shipper.dev/shipper/webhook/templatecheck"
)

const (
	kind = "Strategy"
	// maxListed bounds the Applications that a warning lists.
	maxListed = 5
)

// State has the objects related to a Strategy.
type State interface {
	// TakingStrategy are the Releases that are the newest of their Application and have taken the Strategy, sorted by namespace and
	// Application.
	TakingStrategy(key types.NamespacedName) ([]*shipper.Release, error)
	NamespaceTerminating(namespace string) bool
}

// Webhook validates Strategies.
type Webhook struct {
	State State
}

// Validate validates an object before it is stored or deleted.
func (w *Webhook) Validate(_ context.Context, req *admission.Request, a *response.Response) error {
	now, old, err := response.Decode[shipper.Strategy](req)
	if err != nil {
		return err
	}
	if req.Operation == admissionv1.Delete {
		return w.warnOfDeletion(req, a, old)
	}
	if old != nil && protected.OwnerAdded(&old.ObjectMeta, &now.ObjectMeta) {
		if err := w.warnOfDeletion(req, a, old); err != nil { // the garbage collector deletes it with the owner
			return err
		}
	}
	if old != nil && equality.Semantic.DeepEqual(now.Spec, old.Spec) {
		return nil
	}
	errs := templatecheck.ValidateShared(&now.Spec, field.NewPath("spec"))
	if err := response.Invalidate(kind, now.Name, errs); err != nil {
		return err
	}
	response.WarnOfNulls(a, now, old, response.NullGate, "spec")
	for _, warning := range templatecheck.WarningsOfStrategy(&now.Spec) {
		a.Warn("%s", warning)
	}
	if old == nil {
		return nil
	}
	taking, err := w.State.TakingStrategy(keyOf(now))
	if err != nil || len(taking) == 0 {
		return err
	}
	a.Warn("%s it: the Releases that exist keep what they took, the next edit of an Application takes this", naming(taking, "takes", "take"))
	return nil
}

// warnOfDeletion warns of the Applications whose next edit would be refused.
func (w *Webhook) warnOfDeletion(req *admission.Request, a *response.Response, old *shipper.Strategy) error {
	if w.State.NamespaceTerminating(old.Namespace) || protected.IsController(req.UserInfo.Username) {
		return nil
	}
	taking, err := w.State.TakingStrategy(keyOf(old))
	if err != nil || len(taking) == 0 {
		return err
	}
	a.Warn("%s it: the Releases that exist keep what they took, and the next edit of an Application is refused until there is a Strategy %s",
		naming(taking, "takes", "take"), keyOf(old))
	return nil
}

func keyOf(s *shipper.Strategy) types.NamespacedName {
	return types.NamespacedName{Namespace: s.Namespace, Name: s.Name}
}

// naming names the Applications of Releases, with a verb.
func naming(newest []*shipper.Release, one, several string) string {
	names := make([]string, len(newest))
	for i, rel := range newest {
		names[i] = rel.Namespace + "/" + rel.Labels[shipper.AppLabel]
	}
	switch more := len(names) - maxListed; {
	case len(names) == 1:
		return fmt.Sprintf("Application %s %s", names[0], one)
	case more > 0:
		return fmt.Sprintf("Applications %s and %d more %s", strings.Join(names[:maxListed], ", "), more, several)
	}
	return fmt.Sprintf("Applications %s %s", strings.Join(names, ", "), several)
}
