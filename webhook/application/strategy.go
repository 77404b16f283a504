// SPDX-License-Identifier: Apache-2.0

package application

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"shipper.dev/shipper/apis/rules/stamp"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/webhook/authz"
	"shipper.dev/shipper/webhook/protected"
	"shipper.dev/shipper/webhook/response"
	"shipper.dev/shipper/webhook/templatecheck"
)

// maxStrategiesNamed is how many Strategies a refusal offers.
const maxStrategiesNamed = 10

var fromPath = strategyPath.Child("from")

// strategyRefreshWanted reports whether the user requests that the Strategy is taken again.
func strategyRefreshWanted(app, old *shipper.Application) bool {
	now := app.Annotations[shipper.AppStrategyRefreshAnnotation]
	return stamp.From(&app.Spec.Template) != nil && now != "" && now != metaOf(old).Annotations[shipper.AppStrategyRefreshAnnotation]
}

// carryStrategy restores the digest of the Strategy that was taken, which manifests do not contain.
func carryStrategy(app, old *shipper.Application) {
	if old == nil || !stamp.SameFrom(&app.Spec.Template, &old.Spec.Template) || app.Spec.Template.Strategy.From.Digest != "" {
		return
	}
	setStrategyDigest(app, old.Spec.Template.Strategy.From.Digest)
}

// pinStrategy sets the digest of the Strategy that the template takes: as it is now, when the template is edited or the user requests it;
// otherwise it keeps the digest. It does not change a template that is restored by Shipper or by a user who may.
func (w *Webhook) pinStrategy(
	ctx context.Context, req *admission.Request, a *response.Response, app, old *shipper.Application, wentBack bool,
) error {
	from := stamp.From(&app.Spec.Template)
	if from == nil || wentBack || w.restored(app, old) {
		return nil
	}
	if err := response.Invalidate(kind, app.Name, w.validateFrom(app)); err != nil {
		return err
	}
	if kept, err := w.keepsStrategy(ctx, req, app, old); err != nil || kept {
		return err
	}
	key := strategyKey(app)
	found, err := w.State.StrategyNow(ctx, key)
	switch {
	case err != nil:
		return response.Later(err.Error(), authz.RetryAfter)
	case found == nil:
		return w.noStrategy(ctx, app)
	}
	digest, err := stamp.StrategyDigest(found.Spec)
	if err != nil {
		return err
	}
	if old != nil && stamp.SameFrom(&app.Spec.Template, &old.Spec.Template) && old.Spec.Template.Strategy.From.Digest != digest {
		a.Warn("Strategy %s has changed since this Application took it last: this takes it as it is now", key)
	}
	setStrategyDigest(app, digest)
	a.Audit(response.AuditStrategyTaken, fmt.Sprintf("%s resourceVersion %s sha256 %s", key, found.ResourceVersion, digest))
	return nil
}

// keepsStrategy reports whether app keeps the digest of its Strategy, and restores it if a user has changed it alone.
func (w *Webhook) keepsStrategy(ctx context.Context, req *admission.Request, app, old *shipper.Application) (bool, error) {
	from := stamp.From(&app.Spec.Template)
	switch {
	case old == nil && from.Digest == "":
		return false, nil
	case old == nil: // restored by a user who may
		return w.Guard.MayStamp(ctx, req, protected.Application)
	case strategyRefreshWanted(app, old), !stamp.SameFrom(&app.Spec.Template, &old.Spec.Template),
		old.Spec.Template.Strategy.From.Digest == "":
		return false, nil
	}
	same := *app
	setStrategyDigest(&same, old.Spec.Template.Strategy.From.Digest)
	if !stamp.SameEnvironment(&same.Spec.Template, &old.Spec.Template) {
		return false, nil
	}
	app.Spec.Template.Strategy = same.Spec.Template.Strategy
	return true, nil
}

// setStrategyDigest sets the digest in an Application that takes a Strategy. What it had before is not changed.
func setStrategyDigest(app *shipper.Application, digest string) {
	now := *app.Spec.Template.Strategy
	from := *now.From
	from.Digest = digest
	now.From = &from
	app.Spec.Template.Strategy = &now
}

// strategyKey is the Strategy that app takes.
func strategyKey(app *shipper.Application) types.NamespacedName {
	return stamp.StrategyKey(stamp.From(&app.Spec.Template), app.Namespace)
}

// validateFrom returns the errors of the reference to a Strategy. One of another namespace is not read.
func (w *Webhook) validateFrom(app *shipper.Application) field.ErrorList {
	from, global := stamp.From(&app.Spec.Template), w.State.GlobalNamespace()
	switch wrong := validation.IsDNS1123Subdomain(from.Name); {
	case stamp.HasContent(app.Spec.Template.Strategy):
		return field.ErrorList{field.Forbidden(fromPath, "not beside other fields of strategy: keep from alone, or take it out")}
	case from.Name == "":
		return field.ErrorList{field.Required(fromPath.Child("name"), "name a Strategy")}
	case len(wrong) > 0:
		return field.ErrorList{field.Invalid(fromPath.Child("name"), from.Name, strings.Join(wrong, "; "))}
	case from.Namespace == "", from.Namespace == app.Namespace, global != "" && from.Namespace == global:
		return nil
	}
	fix := "leave it out for a Strategy of namespace " + app.Namespace
	if global != "" {
		fix += ", or name " + global + ", whose Strategies all namespaces share"
	}
	return field.ErrorList{field.Invalid(fromPath.Child("namespace"), from.Namespace, fix)}
}

// noStrategy refuses a Strategy that is not there, and offers those that are.
func (w *Webhook) noStrategy(ctx context.Context, app *shipper.Application) error {
	key, global := strategyKey(app), w.State.GlobalNamespace()
	there, err := w.State.StrategiesNow(ctx, key.Namespace, maxStrategiesNamed+1)
	if err != nil {
		return response.Later(err.Error(), authz.RetryAfter)
	}
	text := "there are none"
	if len(there) > maxStrategiesNamed {
		there = append(there[:maxStrategiesNamed], "…")
	}
	if len(there) > 0 {
		text = "there are: " + strings.Join(there, ", ")
	}
	text = fmt.Sprintf("there is no Strategy %s in %s; %s; apply the Strategy first", key.Name, key.Namespace, text)
	if global != "" && key.Namespace != global {
		text += fmt.Sprintf(", or name one that all namespaces share with namespace: %s", global)
	}
	return response.Invalidate(kind, app.Name, field.ErrorList{field.Invalid(fromPath.Child("name"), key.Name, text)})
}

// withStrategy is app with what it takes from its Strategy: from a Release that has taken the same, or from the Strategy. It refuses what
// is not for app, and returns app itself where that is lost and was admitted before.
func (w *Webhook) withStrategy(
	ctx context.Context, a *response.Response, app, old *shipper.Application,
) (*shipper.Application, error) {
	if stamp.From(&app.Spec.Template) == nil {
		return app, nil
	}
	rels, err := w.State.Releases(key(app))
	if err != nil {
		return nil, err
	}
	if known := stamp.KnownStrategy(app, rels); known != nil && !stamp.HasContent(app.Spec.Template.Strategy) {
		return filled(app, known)
	}
	name, digest := strategyKey(app), stamp.From(&app.Spec.Template).Digest
	if err := response.Invalidate(kind, app.Name, w.validateFrom(app)); err != nil {
		return nil, err
	}
	found, err := w.State.StrategyNow(ctx, name)
	if err != nil {
		return nil, response.Later(err.Error(), authz.RetryAfter)
	}
	if found != nil {
		if is, err := stamp.StrategyDigest(found.Spec); err != nil {
			return nil, err
		} else if is == digest {
			return filled(app, &found.Spec)
		}
	}
	switch {
	case old != nil && stamp.SameEnvironment(&app.Spec.Template, &old.Spec.Template):
		return app, nil
	case old == nil && app.Annotations[shipper.AppHighestObservedGenerationAnnotation] != "": // from a backup
		a.Warn("this was admitted with another Strategy %s than there is now: a Release of it restores what it took", name)
		return app, nil
	}
	return nil, response.Later(fmt.Sprintf("Strategy %s changes now; try again", name), authz.RetryAfter)
}

// filled is app with the content of its Strategy, unless that is not for app.
func filled(app *shipper.Application, content *shipper.RolloutStrategy) (*shipper.Application, error) {
	errs := ofStrategy(app, templatecheck.ValidateTaken(&app.Spec.Template, content))
	return stamp.WithStrategy(app, content), response.Invalidate(kind, app.Name, errs)
}

// ofStrategy are errors of a Strategy as errors of the Application that takes it.
func ofStrategy(app *shipper.Application, errs field.ErrorList) field.ErrorList {
	var out field.ErrorList
	for _, e := range errs {
		out = append(out, field.Invalid(fromPath, strategyKey(app).String(), fmt.Sprintf("its %s: %s", e.Field, e.ErrorBody())))
	}
	return out
}
