// SPDX-License-Identifier: Apache-2.0

// Package resourceoverride records the author of ResourceOverrides and validates them: each operation may be carried out, and the author
// may change the Applications whose objects differ by it.
package resourceoverride

import (
	"context"
	"fmt"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"shipper.dev/shipper/apis/rules/override"
	"shipper.dev/shipper/apis/rules/rights"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart/values"
	"shipper.dev/shipper/webhook/authz"
	"shipper.dev/shipper/webhook/protected"
	"shipper.dev/shipper/webhook/response"
)

const (
	kind     = "ResourceOverride"
	resource = "resourceoverrides"
	// maxAsked bounds the Applications of which a review asks for a right each. More need the right to all of the namespace. The policy
	// overrides.shipper.booking.com has the same bound.
	maxAsked = 5
)

// Webhook completes and validates ResourceOverrides.
type Webhook struct {
	Authz authz.Authorizer
	// GlobalNamespace is the one whose ResourceOverrides bear on all namespaces.
	GlobalNamespace string
	// State and Charts are for trying rules.
	State  State
	Charts Charts
}

// Validate validates an object before it is stored or deleted. Labels mean nothing here, but an owner would delete it.
func (w *Webhook) Validate(ctx context.Context, req *admission.Request, a *response.Response) error {
	now, old, err := response.Decode[shipper.ResourceOverride](req)
	if err != nil {
		return err
	}
	if req.Operation == admissionv1.Delete {
		if protected.IsController(req.UserInfo.Username) {
			return nil
		}
		return w.permit(ctx, req, &old.Spec)
	}
	if err := w.checkAuthor(ctx, req, now, old); err != nil {
		return err
	}
	same := old != nil && sameSpec(now, old)
	if same && !protected.OwnerAdded(&old.ObjectMeta, &now.ObjectMeta) {
		return nil
	}
	global := req.Namespace == w.GlobalNamespace
	if err := response.Invalidate(kind, req.Name, validate(&now.Spec, global)); err != nil {
		return err
	}
	specs := []*shipper.ResourceOverrideSpec{&now.Spec}
	if old != nil {
		specs = append(specs, &old.Spec)
	}
	if err := w.permit(ctx, req, specs...); err != nil {
		return err
	}
	if same {
		return nil
	}
	now.Namespace = req.Namespace
	if err := w.compare(ctx, now, old == nil, a); err != nil {
		return err
	}
	a.Warn("it takes effect with the next Release of each Application that it bears on; Releases that exist stay as they are")
	return nil
}

// compare refuses what does not fit the other ResourceOverrides, or the Applications of the namespace. Those of all namespaces are too many
// for a review.
func (w *Webhook) compare(ctx context.Context, o *shipper.ResourceOverride, created bool, a *response.Response) error {
	others, err := w.count(ctx, o, created, a)
	if err != nil {
		return err
	}
	if o.Namespace == w.GlobalNamespace {
		a.Warn("not tried: a ResourceOverride in the global namespace may bear on the Applications of all namespaces; a rule that does not " +
			"apply fails in the clusters then")
		return response.Invalidate(kind, o.Name, w.checkMandatory(o, others))
	}
	errs := w.checkRoom(ctx, o, others, a)
	if len(errs) == 0 {
		errs = w.try(ctx, o, a)
	}
	return response.Invalidate(kind, o.Name, errs)
}

// validate returns what is wrong with a spec.
func validate(spec *shipper.ResourceOverrideSpec, global bool) field.ErrorList {
	path := field.NewPath("spec")
	errs := override.Validate(spec, path, global)
	for i := range spec.Rules {
		if bad, why := values.CheckPatch(spec.Rules[i].Patch); why != "" {
			errs = append(errs, field.Invalid(path.Child("rules").Index(i).Child("patch").Index(bad), "", "the operation "+why))
		}
	}
	return errs
}

// need is a right, and the field that needs it.
type need struct {
	rights.Action
	path *field.Path
}

// permit refuses a user who may not change what the ResourceOverride changes.
func (w *Webhook) permit(ctx context.Context, req *admission.Request, specs ...*shipper.ResourceOverrideSpec) error {
	for _, spec := range specs {
		for _, n := range w.needs(req.Namespace) {
			allowed, err := w.may(ctx, req.UserInfo, spec, n)
			if err != nil {
				return response.Later(err.Error(), authz.RetryAfter)
			}
			if !allowed {
				return forbid(req, n)
			}
		}
	}
	return nil
}

// needs are the rights that a spec needs. In the global namespace it changes objects of all namespaces, and those without one. Elsewhere it
// needs the right to read what valuesFrom of an Application may name, now or later: a patch can copy a rendered value to a field that more
// users read, and a test operation shows whether it is equal.
func (w *Webhook) needs(namespace string) []need {
	path := field.NewPath("spec")
	if namespace == w.GlobalNamespace {
		return []need{
			{authz.On("update", "applications", types.NamespacedName{}), path},
			{rights.PlaceEverything, path},
		}
	}
	return []need{
		{authz.On("update", "applications", types.NamespacedName{Namespace: namespace}), path.Child("applicationNames")},
		{rights.Action{Verb: "list", Resource: "secrets", Namespace: namespace}, path},
		{rights.Action{Verb: "list", Resource: "configmaps", Namespace: namespace}, path},
	}
}

// may asks for a right. One who may not update all Applications may update those that are named.
func (w *Webhook) may(
	ctx context.Context, who authenticationv1.UserInfo, spec *shipper.ResourceOverrideSpec, n need,
) (bool, error) {
	allowed, err := w.Authz.May(ctx, who, n.Action)
	named := n.Resource == "applications" && n.Namespace != "" && len(spec.ApplicationNames) > 0
	if err != nil || allowed || !named || len(spec.ApplicationNames) > maxAsked {
		return allowed, err
	}
	for _, name := range spec.ApplicationNames {
		one := n.Action
		one.Name = name
		if allowed, err = w.Authz.May(ctx, who, one); err != nil || !allowed {
			return false, err
		}
	}
	return true, nil
}

func forbid(req *admission.Request, n need) error {
	where := "in all namespaces"
	if n.Namespace != "" {
		where = "in namespace " + n.Namespace
	}
	why := "a ResourceOverride changes what Applications install"
	if n.Verb == "list" {
		why = "a patch can disclose what a chart renders with valuesFrom"
	}
	return response.Forbid(resource, req.Name, fmt.Sprintf("%s: %s: user %q may not %s %s %s; %s", n.path, why, req.UserInfo.Username,
		n.Verb, n.Object(), where, rights.Remedy(n.Action, req.UserInfo.Username)))
}
