// SPDX-License-Identifier: Apache-2.0

package application

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"shipper.dev/shipper/apis/rules/stamp"
	"shipper.dev/shipper/apis/rules/strategy"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart"
	"shipper.dev/shipper/webhook/answer"
)

var rollbackPath = field.NewPath("spec", "rollbackTo")

// rollBack puts the environment of the Release that rollbackTo means into the template, with all that is known of its
// chart, and takes rollbackTo away. An edit of the template by itself ends what was said of the last rollback.
func (w *Webhook) rollBack(a *answer.Answer, app, old *shipper.Application) error {
	to := app.Spec.RollbackTo
	if to == nil {
		if old != nil && !stamp.SameEnvironment(&app.Spec.Template, &old.Spec.Template) {
			a.Unannotate(&app.ObjectMeta, shipper.AppRolledBackToAnnotation)
			a.Unannotate(&app.ObjectMeta, shipper.AppRollbackStrategyAnnotation)
		}
		return nil
	}
	ordered, err := w.releases(app)
	if err != nil {
		return err
	}
	goal, problem := goalOf(to, ordered)
	if problem != nil {
		return answer.Invalidate(kind, app.Name, field.ErrorList{problem})
	}
	newest := ordered[len(ordered)-1]
	if old != nil && !stamp.SameEnvironment(&app.Spec.Template, &old.Spec.Template) && !kept(&answer.Answer{}, app.DeepCopy(), old) {
		a.Warn("spec.template was edited, too: that is not taken, the environment of Release %s is", goal.Name)
	}
	app.Spec.RollbackTo = nil
	a.Remove("spec", "rollbackTo")
	app.Spec.Template = *goal.Spec.Environment.DeepCopy()
	a.Set(app.Spec.Template, "spec", "template")
	write(a, app, app.Spec.Template.Chart, chart.Resolution{
		Version: app.Spec.Template.Chart.Version, Digest: goal.Annotations[shipper.ReleaseChartDigestAnnotation],
	})
	if stamp.SameEnvironment(&newest.Spec.Environment, &goal.Spec.Environment) {
		a.Warn("Release %s, the newest, has this environment already: there is nothing to roll back", newest.Name)
		return nil
	}
	a.Warn("this rolls back from Release %s to the environment of %s", newest.Name, goal.Name)
	a.Annotate(&app.ObjectMeta, shipper.AppRolledBackToAnnotation, goal.Name)
	if to.Strategy == shipper.RollbackImmediate {
		a.Annotate(&app.ObjectMeta, shipper.AppRollbackStrategyAnnotation, string(to.Strategy))
	} else {
		a.Unannotate(&app.ObjectMeta, shipper.AppRollbackStrategyAnnotation)
	}
	return nil
}

// goalOf is the Release that is meant, of all in their order; or why there is none.
func goalOf(to *shipper.RollbackTo, rels []*shipper.Release) (*shipper.Release, *field.Error) {
	if len(rels) == 0 {
		return nil, field.Invalid(rollbackPath, "{}", "the application has no releases yet: there is nothing to go back to")
	}
	if to.Release == "" && to.Generation == 0 {
		if rel := strategy.LastComplete(rels[:len(rels)-1]); rel != nil {
			return rel, nil
		}
		return nil, missing(rollbackPath, "{}", rels)
	}
	for _, rel := range slices.Backward(rels) {
		generation, err := stamp.Generation(rel)
		if rel.Name == to.Release || (to.Release == "" && err == nil && int64(generation) == to.Generation) {
			return rel, nil
		}
	}
	if to.Release != "" {
		return nil, missing(rollbackPath.Child("release"), to.Release, rels)
	}
	return nil, missing(rollbackPath.Child("generation"), to.Generation, rels)
}

// missing says that no Release is meant, and which could be.
func missing(path *field.Path, value any, rels []*shipper.Release) *field.Error {
	var known []string
	for _, rel := range slices.Backward(rels) {
		if len(known) == 10 {
			known = append(known, "…")
			break
		}
		generation, _ := stamp.Generation(rel)
		known = append(known, fmt.Sprintf("%s (generation %d)", rel.Name, generation))
	}
	err := field.NotFound(path, value)
	err.Detail = "the application has no such release; it has " + strings.Join(known, ", ")
	if value == "{}" {
		err = field.Invalid(path, value, "no release before the newest has completed; there are "+strings.Join(known, ", "))
	}
	return err
}
