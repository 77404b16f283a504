// SPDX-License-Identifier: Apache-2.0

package application

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"shipper.dev/shipper/apis/rules/stamp"
	"shipper.dev/shipper/apis/rules/strategy"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart"
	"shipper.dev/shipper/webhook/response"
)

var rollbackPath = field.NewPath("spec", "rollbackTo")

// rollBack puts the environment of the Release that rollbackTo means into the template, with all that is known of its
// chart, and takes rollbackTo away.
func (w *Webhook) rollBack(a *response.Response, app, old *shipper.Application) error {
	to := app.Spec.RollbackTo
	rels, err := w.releases(app)
	if err != nil {
		return err
	}
	if rolledBack(old, to) {
		stay(a, app, old, rels)
		return nil
	}
	goal, problem := goalOf(to, rels, old)
	if problem != nil {
		return response.Invalidate(kind, app.Name, field.ErrorList{problem})
	}
	if edited(app, old) {
		a.Warn("spec.template was edited, too: that is not taken, the environment of Release %s is", goal.Name)
	}
	app.Spec.RollbackTo = nil
	a.Remove("spec", "rollbackTo")
	app.Spec.Template = *goal.Spec.Environment.DeepCopy()
	a.Set(app.Spec.Template, "spec", "template")
	write(a, app, app.Spec.Template.Chart, chart.Resolution{
		Version: app.Spec.Template.Chart.Version, Digest: goal.Annotations[shipper.ReleaseChartDigestAnnotation],
	})
	newest := rels[len(rels)-1]
	if stamp.SameEnvironment(&newest.Spec.Environment, &goal.Spec.Environment) {
		if old != nil && !stamp.SameEnvironment(&old.Spec.Template, &newest.Spec.Environment) {
			a.Warn("of the template there was no Release yet: none is made, and that of Release %s, the newest, is back", newest.Name)
		} else {
			a.Warn("Release %s, the newest, has this environment already: there is nothing to roll back", newest.Name)
		}
		note(a, app, newest.Annotations[shipper.ReleaseRollbackOfAnnotation], "")
		return nil
	}
	a.Warn("this rolls back from Release %s to the environment of %s", newest.Name, goal.Name)
	note(a, app, goal.Name, to.Strategy)
	return nil
}

// restored reports whether a write puts app back as the reconciler does on abort, whoever writes: the template becomes that of one of
// its Releases with the same archive, and the highest observed generation, which only those who may stamp change, is that Release's.
// It installs nothing that was not judged when that Release was made.
func (w *Webhook) restored(app, old *shipper.Application) bool {
	if old == nil || refreshWanted(app, old) || valuesRefreshWanted(app, old) ||
		stamp.SameEnvironment(&app.Spec.Template, &old.Spec.Template) {
		return false
	}
	rels, err := w.releases(app)
	return err == nil && slices.ContainsFunc(rels, func(rel *shipper.Release) bool {
		generation := rel.Annotations[shipper.ReleaseGenerationAnnotation]
		return generation != "" && generation == app.Annotations[shipper.AppHighestObservedGenerationAnnotation] &&
			rel.Annotations[shipper.ReleaseChartDigestAnnotation] == app.Annotations[shipper.AppChartDigestAnnotation] &&
			stamp.SameEnvironment(&app.Spec.Template, &rel.Spec.Environment)
	})
}

// rolledBack reports whether what rollbackTo asks for was done, and nothing was rolled out since. A manifest is applied again
// and again, and the rollbackTo in it, once done, is gone from what is stored: without this, one that names no Release would
// go back and forth, and one that names a Release would be refused once that is trimmed.
func rolledBack(old *shipper.Application, to *shipper.RollbackTo) bool {
	if old == nil {
		return false
	}
	back := old.Annotations[shipper.AppRolledBackToAnnotation]
	return back != "" && (to.Release == back || (to.Release == "" && to.Generation == 0))
}

// rollOn ends what was said of the last rollback when the template becomes another, by whatever: what is rolled out next goes
// through its steps again.
func rollOn(a *response.Response, app, old *shipper.Application) {
	if old != nil && !stamp.SameEnvironment(&app.Spec.Template, &old.Spec.Template) {
		note(a, app, "", "")
	}
}

// stay keeps app as it went back before, and says how to go elsewhere.
func stay(a *response.Response, app, old *shipper.Application, rels []*shipper.Release) {
	if edited(app, old) {
		a.Warn("spec.template was edited, too: that is not taken while spec.rollbackTo is there")
	}
	app.Spec.RollbackTo = nil
	a.Remove("spec", "rollbackTo")
	if !equality.Semantic.DeepEqual(app.Spec.Template, old.Spec.Template) {
		app.Spec.Template = *old.Spec.Template.DeepCopy()
		a.Set(app.Spec.Template, "spec", "template")
	}
	elsewhere := ""
	if len(rels) > 0 {
		elsewhere = ", as " + listed(rels)
	}
	a.Warn("this was rolled back to Release %s already: nothing is done; to go on from there, take spec.rollbackTo out, "+
		"or name a Release in it%s", old.Annotations[shipper.AppRolledBackToAnnotation], elsewhere)
}

// edited reports whether a write asks for another template beside a rollback. Repeating what the version was resolved from is
// no edit.
func edited(app, old *shipper.Application) bool {
	if old == nil {
		return false
	}
	app = app.DeepCopy()
	kept(&response.Response{}, app, old)
	return !stamp.SameEnvironment(&app.Spec.Template, &old.Spec.Template)
}

// note says of the template which Release it was taken from, and how it is to be rolled out; nothing when that is empty.
func note(a *response.Response, app *shipper.Application, release string, how shipper.RollbackStrategy) {
	if how != shipper.RollbackImmediate {
		how = ""
	}
	for key, value := range map[string]string{
		shipper.AppRolledBackToAnnotation: release, shipper.AppRollbackStrategyAnnotation: string(how),
	} {
		if value == "" {
			a.Unannotate(&app.ObjectMeta, key)
		} else if app.Annotations[key] != value {
			a.Annotate(&app.ObjectMeta, key, value)
		}
	}
}

// goalOf is the Release that is meant, of all in their order, when the Application is still as it was; or why there is none.
func goalOf(to *shipper.RollbackTo, rels []*shipper.Release, was *shipper.Application) (*shipper.Release, *field.Error) {
	if len(rels) == 0 {
		return nil, field.Invalid(rollbackPath, "{}", "the application has no releases yet: there is nothing to go back to")
	}
	if to.Release == "" && to.Generation == 0 {
		current := &rels[len(rels)-1].Spec.Environment
		if was != nil {
			current = &was.Spec.Template
		}
		if rel := strategy.Previous(rels, current); rel != nil {
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
	known := listed(rels)
	err := field.NotFound(path, value)
	err.Detail = "the application has no such release; it has " + known
	if value == "{}" {
		err = field.Invalid(path, value, "no release before the newest has completed; there are "+known)
	}
	return err
}

// listed are the newest of rels, as they can be named.
func listed(rels []*shipper.Release) string {
	var out []string
	for _, rel := range slices.Backward(rels) {
		if len(out) == 10 {
			out = append(out, "…")
			break
		}
		generation, _ := stamp.Generation(rel)
		out = append(out, fmt.Sprintf("%s (generation %d)", rel.Name, generation))
	}
	return strings.Join(out, ", ")
}
