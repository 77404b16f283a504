// SPDX-License-Identifier: Apache-2.0

package stamp

import (
	"maps"
	"slices"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// Template is the template that the environment of a Release was made of: without what Shipper adds, which is the digest of the content
// of resources, chart.naming, and what was taken from a Strategy.
func Template(env shipper.ReleaseEnvironment) shipper.ReleaseEnvironment {
	env.ResourcesDigest, env.Chart.Naming, env.Strategy = "", "", withoutTaken(env.Strategy)
	return env
}

// Mark is a hash of the template of an environment that is equal for templates that are the same.
func Mark(env shipper.ReleaseEnvironment) (string, error) {
	env = Template(env)
	env.ClusterRequirements = requirements(&env)
	return Hash(env)
}

// SameTemplate is SameEnvironment without the digest of the content of resources, which a template does not have.
func SameTemplate(a, b *shipper.ReleaseEnvironment) bool {
	if a == nil || b == nil {
		return a == b
	}
	x, y := Template(*a), Template(*b)
	return SameEnvironment(&x, &y)
}

// RestoredBy is the one of the Application's own Releases that rel restores by a rollback; nil for none. The annotation alone decides
// nothing: users can write it while no webhook is called.
func RestoredBy(own []*shipper.Release, rel *shipper.Release) *shipper.Release {
	name := rel.Annotations[shipper.ReleaseRollbackOfAnnotation]
	if name == "" {
		return nil
	}
	for _, old := range own {
		if old.Name == name && SameTemplate(&old.Spec.Environment, &rel.Spec.Environment) {
			return old
		}
	}
	return nil
}

// NextContent is the digest of the content that app's template places unless content is taken again: that of the Release that a rollback
// restores, and otherwise that of the newest Release with the same selectors. It is empty if there is none. rollback is true while the
// Release of a rollback has to be created. existing are those of Next.
func NextContent(app *shipper.Application, existing []*shipper.Release) (digest string, rollback bool) {
	newest := Newest(app, existing)
	if app.Spec.Template.Resources == nil || newest == nil {
		return "", false
	}
	if goal := rollbackGoal(app, newest, existing); goal != nil {
		return goal.Spec.Environment.ResourcesDigest, true
	}
	if SameSelectors(newest.Spec.Environment.Resources, app.Spec.Template.Resources) {
		return newest.Spec.Environment.ResourcesDigest, false
	}
	return "", false
}

// rollbackGoal is the Release whose content a rollback places; nil if there is no rollback, or if its Release was created.
func rollbackGoal(app *shipper.Application, newest *shipper.Release, existing []*shipper.Release) *shipper.Release {
	name := app.Annotations[shipper.AppRolledBackToAnnotation]
	if name == "" || name == newest.Annotations[shipper.ReleaseRollbackOfAnnotation] || abortedRollback(app, newest, existing) {
		return nil
	}
	for _, rel := range Own(app, existing) {
		if rel.Name == name && SameTemplate(&rel.Spec.Environment, &app.Spec.Template) {
			return rel
		}
	}
	return nil
}

// abortedRollback reports whether a Release newer than newest was deleted and made the rollback that the annotation of app names. One that
// is gone is taken for it.
func abortedRollback(app *shipper.Application, newest *shipper.Release, existing []*shipper.Release) bool {
	at, _ := Generation(newest)
	newer := slices.DeleteFunc(Own(app, existing), func(rel *shipper.Release) bool {
		generation, err := Generation(rel)
		return err != nil || generation <= at
	})
	if len(newer) == 0 {
		highest, known, err := HighestObserved(app)
		return err == nil && known && at < highest
	}
	return slices.ContainsFunc(newer, func(rel *shipper.Release) bool {
		return rel.Annotations[shipper.ReleaseRollbackOfAnnotation] == app.Annotations[shipper.AppRolledBackToAnnotation]
	})
}

// WithContent is app with the digest of the content that its next Release places, for Next, Release and comparisons with Releases; it is
// never stored. Content that is taken again ends a rollback. app itself is not changed, and is returned if it has no resources.
func WithContent(app *shipper.Application, existing []*shipper.Release, digest string) *shipper.Application {
	if app.Spec.Template.Resources == nil {
		return app
	}
	out := *app
	out.Spec.Template.ResourcesDigest = digest
	if kept, _ := NextContent(app, existing); kept != digest {
		out.Annotations = maps.Clone(app.Annotations)
		delete(out.Annotations, shipper.AppRolledBackToAnnotation)
		delete(out.Annotations, shipper.AppRollbackStrategyAnnotation)
	}
	return &out
}
