// SPDX-License-Identifier: Apache-2.0

package application

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"shipper.dev/shipper/apis/rules/stamp"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/webhook/answer"
	"shipper.dev/shipper/webhook/control"
	"shipper.dev/shipper/webhook/gate"
)

// complete patches what Shipper decides, in this order: control annotations come back, the override is normalised, and,
// when spec changes, its history limit is bounded, its chart pinned and its requester noted. Writes that leave spec
// alone are not touched otherwise: they must pass whatever is wrong with the rest.
func (w *Webhook) complete(
	ctx context.Context, req *admission.Request, a *answer.Answer, app, old *shipper.Application,
) error {
	if app.Namespace == "" {
		app.Namespace = req.Namespace
	}
	if err := w.guard(ctx, req, a, app, old); err != nil {
		return err
	}
	gate.Normalise(a, &app.ObjectMeta)
	if old != nil && !refreshWanted(app, old) && sameSpec(&app.Spec, &old.Spec) {
		return nil
	}
	if app.Spec.Template.Chart == (shipper.Chart{}) {
		return nil // there may be no spec to complete; the schema refuses it
	}
	limitHistory(a, app)
	if err := w.pin(ctx, a, app, old); err != nil {
		return err
	}
	if old != nil && sameSpec(&app.Spec, &old.Spec) {
		return nil
	}
	if old != nil && gate.SameOverride(app.Annotations, old.Annotations) {
		if err := w.Gate.Prune(ctx, a, &app.ObjectMeta); err != nil {
			return err
		}
	}
	requester := app.Annotations[shipper.AppRequestedByAnnotation]
	if user := req.UserInfo.Username; user != w.Guard.Reconciler && user != requester {
		a.Annotate(&app.ObjectMeta, shipper.AppRequestedByAnnotation, user)
	}
	return nil
}

func (w *Webhook) guard(
	ctx context.Context, req *admission.Request, a *answer.Answer, app, old *shipper.Application,
) error {
	if old == nil {
		return w.Guard.Ignore(ctx, req, a, control.Application, &app.ObjectMeta)
	}
	return w.Guard.Keep(ctx, req, a, control.Application, &old.ObjectMeta, &app.ObjectMeta)
}

// limitHistory gives revisionHistoryLimit its default and moves it into its bounds.
func limitHistory(a *answer.Answer, app *shipper.Application) {
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
	a.Set(limit, "spec", "revisionHistoryLimit")
}

// sameSpec tells whether two specs ask for the same.
func sameSpec(a, b *shipper.ApplicationSpec) bool {
	return equality.Semantic.DeepEqual(a.RevisionHistoryLimit, b.RevisionHistoryLimit) &&
		stamp.SameEnvironment(&a.Template, &b.Template)
}

// refreshWanted tells whether the user asks for the constraint to be resolved anew.
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
