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
	"shipper.dev/shipper/chart/repository"
	"shipper.dev/shipper/webhook/response"
)

var rollbackPath = field.NewPath("spec", "rollbackTo")

// rollBack copies the environment of the Release that rollbackTo selects into the template, with the annotations of its chart,
// and removes rollbackTo.
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
	if to.Strategy == shipper.RollbackImmediate && !strategy.Complete(goal) {
		return response.Invalidate(kind, app.Name, field.ErrorList{field.Invalid(rollbackPath.Child("strategy"), to.Strategy,
			"Release "+goal.Name+" was never complete: leave strategy out, and go through its steps")})
	}
	if edited(app, old) {
		a.Warn("spec.template was edited, too: that is not taken, the environment of Release %s is", goal.Name)
	}
	app.Spec.RollbackTo = nil
	naming := app.Spec.Template.Chart.Naming
	app.Spec.Template = stamp.Template(*goal.Spec.Environment.DeepCopy())
	if app.Spec.Template.Resources == nil {
		app.Spec.Template.Chart.Naming = naming // the user's alone
		write(app, app.Spec.Template.Chart, repository.Resolution{
			Version: app.Spec.Template.Chart.Version, Digest: goal.Annotations[shipper.ReleaseChartDigestAnnotation],
		})
	}
	newest := rels[len(rels)-1]
	if stamp.SameEnvironment(&newest.Spec.Environment, &goal.Spec.Environment) {
		if old != nil && !stamp.SameTemplate(&old.Spec.Template, &newest.Spec.Environment) {
			a.Warn("of the template there was no Release yet: none is made, and that of Release %s, the newest, is back", newest.Name)
		} else {
			a.Warn("Release %s, the newest, has this environment already: there is nothing to roll back", newest.Name)
		}
		note(app, newest.Annotations[shipper.ReleaseRollbackOfAnnotation], "")
		return nil
	}
	a.Warn("this rolls back from Release %s to the environment of %s", newest.Name, goal.Name)
	note(app, goal.Name, to.Strategy)
	return nil
}

// restored reports whether a write restores app as the reconciler does on abort, by any user: template, archive and highest
// observed generation (which only users who may stamp change) are those of one of its Releases. It installs nothing that was
// not admitted when that Release was created.
func (w *Webhook) restored(app, old *shipper.Application) bool {
	if old == nil || refreshes(app, old) ||
		stamp.SameEnvironment(&app.Spec.Template, &old.Spec.Template) {
		return false
	}
	rels, err := w.releases(app)
	return err == nil && slices.ContainsFunc(rels, func(rel *shipper.Release) bool {
		generation := rel.Annotations[shipper.ReleaseGenerationAnnotation]
		return generation != "" && generation == app.Annotations[shipper.AppHighestObservedGenerationAnnotation] &&
			rel.Annotations[shipper.ReleaseChartDigestAnnotation] == app.Annotations[shipper.AppChartDigestAnnotation] &&
			stamp.SameTemplate(&app.Spec.Template, &rel.Spec.Environment)
	})
}

// rolledBack reports whether rollbackTo was already applied, without a rollout since. A manifest with rollbackTo is applied
// repeatedly, and the stored object lacks it. Without this check a manifest without a name would alternate between two
// Releases, and one with a name would fail after the Release is trimmed.
func rolledBack(old *shipper.Application, to *shipper.RollbackTo) bool {
	if old == nil {
		return false
	}
	back := old.Annotations[shipper.AppRolledBackToAnnotation]
	return back != "" && (to.Release == back || (to.Release == "" && to.Generation == 0))
}

// rollOn removes the records of the last rollback when the template changes: the next rollout goes through its steps again.
func rollOn(app, old *shipper.Application) {
	if old != nil && !stamp.SameEnvironment(&app.Spec.Template, &old.Spec.Template) {
		note(app, "", "")
	}
}

// stay keeps app as the rollback left it, and says how to go elsewhere.
func stay(a *response.Response, app, old *shipper.Application, rels []*shipper.Release) {
	if edited(app, old) {
		a.Warn("spec.template was edited, too: that is not taken while spec.rollbackTo is there")
	}
	app.Spec.RollbackTo = nil
	if !equality.Semantic.DeepEqual(app.Spec.Template, old.Spec.Template) {
		app.Spec.Template = *old.Spec.Template.DeepCopy()
	}
	elsewhere := ""
	if len(rels) > 0 {
		elsewhere = ", as " + listed(rels)
	}
	a.Warn("this was rolled back to Release %s already: nothing is done; to go on from there, take spec.rollbackTo out, "+
		"or name a Release in it%s", old.Annotations[shipper.AppRolledBackToAnnotation], elsewhere)
}

// edited reports whether a write changes the template besides a rollback. Repeating the constraint of the version is not a
// change.
func edited(app, old *shipper.Application) bool {
	if old == nil {
		return false
	}
	app = app.DeepCopy()
	kept(app, old)
	return !stamp.SameEnvironment(&app.Spec.Template, &old.Spec.Template)
}

// note records which Release the template was copied from, and how to roll it out; empty values remove the records.
func note(app *shipper.Application, release string, how shipper.RollbackStrategy) {
	if how != shipper.RollbackImmediate {
		how = ""
	}
	for key, value := range map[string]string{
		shipper.AppRolledBackToAnnotation: release, shipper.AppRollbackStrategyAnnotation: string(how),
	} {
		if value == "" {
			delete(app.Annotations, key)
		} else if app.Annotations[key] != value {
			response.Annotate(&app.ObjectMeta, key, value)
		}
	}
}

// goalOf is the Release that rollbackTo selects, of all in their order, given the stored Application; or an error.
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

// missing is the error when no Release is selected, with the possible ones.
func missing(path *field.Path, value any, rels []*shipper.Release) *field.Error {
	known := listed(rels)
	err := field.NotFound(path, value)
	err.Detail = "the application has no such release; it has " + known
	if value == "{}" {
		err = field.Invalid(path, value, "no release before the newest has completed; there are "+known)
	}
	return err
}

// listed are the names of the newest of rels.
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
