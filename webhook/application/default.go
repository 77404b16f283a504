// SPDX-License-Identifier: Apache-2.0

package application

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"shipper.dev/shipper/apis/rules/stamp"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart/index"
	"shipper.dev/shipper/webhook/blockcheck"
	"shipper.dev/shipper/webhook/protected"
	"shipper.dev/shipper/webhook/response"
	"shipper.dev/shipper/webhook/templatecheck"
)

// complete patches Shipper's decisions in this order: it restores protected metadata and normalises the override. If spec changes, it also
// applies rollbackTo, bounds the history limit, pins chart, values and Strategy, and records the requester and who chose the resources.
// Writes that keep spec must pass whatever is wrong with it; it only resolves a chart that never was.
func (w *Webhook) complete(
	ctx context.Context, req *admission.Request, a *response.Response, app, old *shipper.Application,
) error {
	if err := w.guard(ctx, req, a, app, old); err != nil {
		return err
	}
	blockcheck.Normalise(&app.ObjectMeta)
	if req.UserInfo.Username != w.Guard.Reconciler {
		if err := w.BlockCheck.Stamp(ctx, req.UserInfo.Username, &app.ObjectMeta, metaOf(old)); err != nil {
			return err
		}
	}
	carryDigests(app, old)
	carryStrategy(app, old)
	completeResources(app)
	if old != nil && !refreshes(app, old) && sameSpec(&app.Spec, &old.Spec) {
		w.noteRewriter(req, app)
		return w.correctOverride(ctx, req, a, app, old)
	}
	asked := app.Spec.RollbackTo != nil
	if asked {
		if err := w.rollBack(a, app, old); err != nil {
			return err
		}
	}
	if app.Spec.Template.Chart == (shipper.Chart{}) && app.Spec.Template.Resources == nil {
		return nil // the spec may be missing; the schema refuses that
	}
	limitHistory(a, app)
	if err := w.pinContent(ctx, req, a, app, old, asked); err != nil {
		return err
	}
	if err := w.pinStrategy(ctx, req, a, app, old, asked); err != nil {
		return err
	}
	if !asked {
		rollOn(app, old)
	}
	return w.noteUsers(ctx, req, a, app, old)
}

// refreshes reports whether the user requests that something is resolved or read again.
func refreshes(app, old *shipper.Application) bool {
	return refreshWanted(app, old) || valuesRefreshWanted(app, old) || resourcesRefreshWanted(app, old) || strategyRefreshWanted(app, old)
}

// pinContent pins chart and values. The reconciler pins resources.
func (w *Webhook) pinContent(
	ctx context.Context, req *admission.Request, a *response.Response, app, old *shipper.Application, wentBack bool,
) error {
	if app.Spec.Template.Resources != nil {
		return nil
	}
	if err := w.pin(ctx, req, a, app, old); err != nil {
		return err
	}
	return w.pinValues(ctx, req, app, old, wentBack)
}

// noteUsers prunes overrides and records whose write this is.
func (w *Webhook) noteUsers(
	ctx context.Context, req *admission.Request, a *response.Response, app, old *shipper.Application,
) error {
	if err := w.stampSelector(req, app, old); err != nil {
		return err
	}
	if old != nil && sameSpec(&app.Spec, &old.Spec) && !rollsBack(app, old) {
		w.noteRewriter(req, app)
		return nil
	}
	if old != nil && blockcheck.SameOverride(app.Annotations, old.Annotations) {
		if err := w.BlockCheck.Prune(ctx, a, &app.ObjectMeta); err != nil {
			return err
		}
	}
	if _, restored := app.Annotations[shipper.AppRequestedByAnnotation]; old == nil && restored {
		return nil // guard admits this annotation only from users who may stamp
	}
	if old == nil || !stamp.SameEnvironment(&app.Spec.Template, &old.Spec.Template) || rollsBack(app, old) {
		w.noteRequester(req, app)
		return w.dropClaim(ctx, req, app, old)
	}
	w.noteRewriter(req, app)
	return nil
}

// noteRequester records the user whose write creates the next Release.
func (w *Webhook) noteRequester(req *admission.Request, app *shipper.Application) {
	requester := app.Annotations[shipper.AppRequestedByAnnotation]
	if user := req.UserInfo.Username; user != w.Guard.Reconciler && user != requester {
		response.Annotate(&app.ObjectMeta, shipper.AppRequestedByAnnotation, user)
	}
}

// correctOverride resolves a chart that was never resolved, because its Application was written without the webhook. It runs in
// a write that keeps spec; a failure does not refuse that write.
func (w *Webhook) correctOverride(
	ctx context.Context, req *admission.Request, a *response.Response, app, old *shipper.Application,
) error {
	want := app.Spec.Template.Chart
	switch {
	case want.Name == "" || want.RepoURL == "" || index.IsExact(want.Version) || pinned(old),
		req.UserInfo.Username == w.Guard.Reconciler,
		!app.DeletionTimestamp.IsZero(),
		want.Credentials.SecretName != "", len(app.Spec.Template.ValuesFrom) > 0, // this user may not be permitted to read them
		!validOnceResolved(app),
		w.judge(ctx, req, &response.Response{}, app, old) != nil:
		return nil
	}
	found, err := w.resolve(ctx, a, app, want)
	if err != nil {
		a.Warn("%s", err)
		return nil
	}
	write(app, want, found)
	audit(a, app)
	w.noteRequester(req, app)
	return nil
}

func (w *Webhook) guard(
	ctx context.Context, req *admission.Request, a *response.Response, app, old *shipper.Application,
) error {
	if old == nil {
		return w.Guard.Ignore(ctx, req, a, protected.Application, &app.ObjectMeta)
	}
	guarded, err := w.guarded(ctx, req, app, old)
	if err != nil {
		return err
	}
	return w.Guard.Keep(ctx, req, a, guarded, &old.ObjectMeta, &app.ObjectMeta)
}

// validOnceResolved reports whether app would be valid if its chart had a version.
func validOnceResolved(app *shipper.Application) bool {
	template := app.Spec.Template
	template.Chart.Version = "0.0.0"
	return len(validateName(app.Name))+len(templatecheck.Validate(&template, field.NewPath("spec", "template"))) == 0
}

// limitHistory sets the default of revisionHistoryLimit and applies its bounds.
func limitHistory(a *response.Response, app *shipper.Application) {
	limit := shipper.DefaultRevisionHistoryLimit
	if wanted := app.Spec.RevisionHistoryLimit; wanted != nil {
		limit = min(max(*wanted, shipper.MinRevisionHistoryLimit), shipper.MaxRevisionHistoryLimit)
		if limit == *wanted {
			return
		}
		a.Warn("spec.revisionHistoryLimit %d was set to %d: it is bounded by %d and %d",
			*wanted, limit, shipper.MinRevisionHistoryLimit, shipper.MaxRevisionHistoryLimit)
	}
	app.Spec.RevisionHistoryLimit = &limit
}

// sameSpec reports whether two specs are equal.
func sameSpec(a, b *shipper.ApplicationSpec) bool {
	return equality.Semantic.DeepEqual(a.RevisionHistoryLimit, b.RevisionHistoryLimit) &&
		equality.Semantic.DeepEqual(a.RollbackTo, b.RollbackTo) && a.DriftPolicy == b.DriftPolicy &&
		stamp.SameEnvironment(&a.Template, &b.Template)
}

// refreshWanted reports whether the user requests a new resolution of the constraint.
func refreshWanted(app, old *shipper.Application) bool {
	now := app.Annotations[shipper.AppChartVersionRefreshAnnotation]
	return now != "" && now != old.Annotations[shipper.AppChartVersionRefreshAnnotation]
}

// describe names a chart as users know it.
func describe(c shipper.Chart) string {
	if c.Version == "" {
		return fmt.Sprintf("chart %s, newest stable version,", c.Name)
	}
	return fmt.Sprintf("chart %s, version %q,", c.Name, c.Version)
}
