// SPDX-License-Identifier: Apache-2.0

package stamp

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"shipper.dev/shipper/apis/rules/position"
	"shipper.dev/shipper/apis/rules/tracking"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

const applicationKind = "Application"

// Next returns the Release that app's template needs: the newest of existing, with isNew false, when it has the template's
// environment; otherwise a new one. existing are the Releases in app's namespace that carry its label; the names and
// generations of those being deleted are not reused, nor are the names in use.
func Next(
	app *shipper.Application, existing []*shipper.Release, inUse ...string,
) (rel *shipper.Release, isNew bool, err error) {
	if newest := Newest(app, existing); newest != nil && SameEnvironment(&newest.Spec.Environment, &app.Spec.Template) {
		return newest, false, nil
	}
	rel, err = Release(app, existing, inUse...)
	return rel, true, err
}

// Newest is app's Release of the highest generation that is not being deleted; nil when there is none.
func Newest(app *shipper.Application, existing []*shipper.Release) *shipper.Release {
	return NewestOf(Own(app, existing))
}

// NewestOf is Newest of Releases that are all of one Application.
func NewestOf(rels []*shipper.Release) *shipper.Release {
	ordered, _ := SortByGeneration(rels)
	for i := len(ordered) - 1; i >= 0; i-- {
		if ordered[i].DeletionTimestamp.IsZero() {
			return ordered[i]
		}
	}
	return nil
}

// Release returns a new Release of app's template, fully stamped but for chart.naming where that is Undecided. Its generation is one more
// than the highest of app's; its iteration is one more than the highest of all names in use and of all Releases with its hash, whichever
// Application owns them.
// It gets the labels of the Application, but for those by which tools know it; labels of Shipper win over them.
func Release(app *shipper.Application, existing []*shipper.Release, inUse ...string) (*shipper.Release, error) {
	hash, err := Hash(app.Spec.Template)
	if err != nil {
		return nil, fmt.Errorf("stamping release of application %q: %w", app.Name, err)
	}
	iteration := nextIteration(app.Name, hash, existing, inUse)
	name := releaseName(app.Name, hash, iteration)
	if len(name) > validation.LabelValueMaxLength { // a long name has room for one digit: one of a Release that is gone is given again
		iteration = freeIteration(app.Name, hash, existing, inUse)
		name = releaseName(app.Name, hash, iteration)
	}
	if errs := validation.IsValidLabelValue(name); len(errs) > 0 {
		return nil, fmt.Errorf("stamping release of application %q: %q cannot be the name of a release: %s",
			app.Name, name, strings.Join(errs, "; "))
	}
	rel := &shipper.Release{
		ObjectMeta: metav1.ObjectMeta{
			Name:            name,
			Namespace:       app.Namespace,
			Labels:          labels(app, name, hash),
			Annotations:     annotations(app, nextGeneration(app, existing), iteration),
			OwnerReferences: []metav1.OwnerReference{OwnerReference(app)},
			Finalizers:      []string{shipper.RolloutFinalizer},
		},
		Spec: shipper.ReleaseSpec{Environment: *app.Spec.Template.DeepCopy()},
	}
	first(app, existing).Set(rel)
	if rel.Spec.Environment.Chart.Naming, err = naming(app, existing); err != nil {
		return nil, fmt.Errorf("stamping release of application %q: %w", app.Name, err)
	}
	if claim := ClaimOf(rel.Annotations[shipper.ReleaseRunAnnotation]); claim.Hold {
		rel.Spec.Hold = HoldOf(claim)
	}
	return rel, nil
}

// first is the position of a new Release: the first, or the last one for an immediate rollback and, where the strategy says so, for the
// first Release of an Application. Whether it is the first is known by what was observed, never by what a cluster has.
func first(app *shipper.Application, existing []*shipper.Release) position.Position {
	s := app.Spec.Template.Strategy
	if s == nil {
		return position.Position{}
	}
	_, known := app.Annotations[shipper.AppHighestObservedGenerationAnnotation]
	if s.FirstRelease == shipper.FirstReleaseImmediate && !known || immediate(app, existing) {
		return position.Last(s)
	}
	return position.Position{}
}

// immediate reports whether the template is that of an immediate rollback. Only a Release that was complete has passed its gates: the
// annotations alone, which users can write while no webhook is called, do not open them.
func immediate(app *shipper.Application, existing []*shipper.Release) bool {
	goal := app.Annotations[shipper.AppRolledBackToAnnotation]
	return app.Annotations[shipper.AppRollbackStrategyAnnotation] == string(shipper.RollbackImmediate) &&
		slices.ContainsFunc(Own(app, existing), func(rel *shipper.Release) bool {
			return rel.Name == goal && shipper.ConditionTrue(rel.Status.Conditions, shipper.ReleaseComplete) &&
				SameEnvironment(&rel.Spec.Environment, &app.Spec.Template)
		})
}

// OwnerReference is the reference by which a Release is owned by its Application.
func OwnerReference(app *shipper.Application) metav1.OwnerReference {
	return metav1.OwnerReference{
		APIVersion: shipper.GroupVersion.String(), Kind: applicationKind, Name: app.Name, UID: app.UID,
	}
}

// ReleaseReference is the reference by which what is made for a Release is owned by it.
func ReleaseReference(rel *shipper.Release) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: shipper.GroupVersion.String(), Kind: "Release", Name: rel.Name, UID: rel.UID}
}

func labels(app *shipper.Application, name, hash string) map[string]string {
	out := tracking.Without(app.Labels)
	if out == nil {
		out = map[string]string{}
	}
	out[shipper.AppLabel] = app.Name
	out[shipper.ReleaseLabel] = name
	out[shipper.ReleaseHashLabel] = hash
	return out
}

func annotations(app *shipper.Application, generation, iteration int) map[string]string {
	out := map[string]string{
		shipper.ReleaseGenerationAnnotation:        strconv.Itoa(generation),
		shipper.ReleaseTemplateIterationAnnotation: strconv.Itoa(iteration),
	}
	copyAnnotation(out, shipper.RolloutBlockOverrideAnnotation, app, shipper.RolloutBlockOverrideAnnotation)
	copyAnnotation(out, shipper.RolloutBlockOverrideReasonAnnotation, app, shipper.RolloutBlockOverrideReasonAnnotation)
	copyAnnotation(out, shipper.RolloutBlockOverrideStampAnnotation, app, shipper.RolloutBlockOverrideStampAnnotation)
	copyAnnotation(out, shipper.ReleaseRollbackOfAnnotation, app, shipper.AppRolledBackToAnnotation)
	copyAnnotation(out, shipper.ReleaseRequestedByAnnotation, app, shipper.AppRequestedByAnnotation)
	copyAnnotation(out, shipper.ReleaseRunAnnotation, app, shipper.AppRunAnnotation)
	if app.Spec.Template.Resources == nil {
		out[shipper.ReleaseLabelPrecedenceAnnotation] = shipper.LabelsOfChart
	}
	if pinned(app) {
		copyAnnotation(out, shipper.ReleaseChartDigestAnnotation, app, shipper.AppChartDigestAnnotation)
	}
	return out
}

func copyAnnotation(out map[string]string, key string, app *shipper.Application, from string) {
	if v := app.Annotations[from]; v != "" {
		out[key] = v
	}
}

// pinned reports whether the annotations describe the template's chart.
func pinned(app *shipper.Application) bool {
	chart := app.Spec.Template.Chart
	return app.Annotations[shipper.AppChartVersionResolvedAnnotation] == chart.Version &&
		app.Annotations[shipper.AppChartNameAnnotation] == chart.Name &&
		app.Annotations[shipper.AppChartRepoAnnotation] == chart.RepoURL
}

func nextGeneration(app *shipper.Application, existing []*shipper.Release) int {
	ordered, _ := SortByGeneration(Own(app, existing))
	if len(ordered) == 0 {
		return 0
	}
	newest, _ := Generation(ordered[len(ordered)-1]) // it was sorted by it
	return newest + 1
}

// nextIteration checks names as well as labels: a label may have been edited, and a name in use cannot be given.
func nextIteration(app, hash string, existing []*shipper.Release, inUse []string) int {
	next := 0
	for _, rel := range existing {
		if rel.Labels[shipper.ReleaseHashLabel] == hash {
			if n, err := Iteration(rel); err == nil {
				next = max(next, n+1)
			}
		}
		next = max(next, after(app, hash, rel.Name))
	}
	for _, name := range inUse {
		next = max(next, after(app, hash, name))
	}
	return next
}

// ApplicationName is the name of the Application that a Release of this name belongs to; the name itself if it is not a
// Release's name.
func ApplicationName(release string) string {
	for range 2 { // the iteration, and the hash
		if i := strings.LastIndexByte(release, '-'); i > 0 {
			release = release[:i]
		}
	}
	return release
}

// freeIteration is the lowest that no Release has.
func freeIteration(app, hash string, existing []*shipper.Release, inUse []string) int {
	taken := map[string]bool{}
	for _, rel := range existing {
		taken[rel.Name] = true
		if n, err := Iteration(rel); err == nil && rel.Labels[shipper.ReleaseHashLabel] == hash {
			taken[releaseName(app, hash, n)] = true
		}
	}
	for _, name := range inUse {
		taken[name] = true
	}
	n := 0
	for taken[releaseName(app, hash, n)] {
		n++
	}
	return n
}

func releaseName(app, hash string, iteration int) string {
	return fmt.Sprintf("%s-%s-%d", app, hash, iteration)
}

// after is the first iteration after the one in this name; 0 if the name is not of that form.
func after(app, hash, name string) int {
	if suffix, ok := strings.CutPrefix(name, app+"-"+hash+"-"); ok {
		if n, err := parseCounter(suffix); err == nil {
			return n + 1
		}
	}
	return 0
}
