// SPDX-License-Identifier: Apache-2.0

package application

import (
	"context"
	"errors"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"shipper.dev/shipper/apis/rules/block"
	"shipper.dev/shipper/apis/rules/stamp"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart"
	"shipper.dev/shipper/webhook/response"
)

var chartPath = field.NewPath("spec", "template", "chart")

// pin makes sure that the template's chart has an exact version and that the annotations say where it comes from. A pin
// is kept as long as the user asks for the same; what is asked for anew is resolved anew.
func (w *Webhook) pin(
	ctx context.Context, req *admission.Request, a *response.Response, app, old *shipper.Application,
) error {
	want := app.Spec.Template.Chart
	if want.Archive != "" {
		return pinArchive(a, app, old)
	}
	if want.Name == "" || want.RepoURL == "" {
		return nil // the schema refuses it
	}
	refresh := old != nil && refreshWanted(app, old)
	if !refresh && kept(a, app, old) {
		audit(a, app)
		return nil
	}
	if err := w.permitCredentials(ctx, req, app, old); err != nil {
		return err
	}
	if err := w.judgeUnresolved(ctx, req, a, app, old); err != nil {
		return err
	}
	if refresh {
		if pinned(app) {
			want.Version = app.Annotations[shipper.AppChartVersionRawAnnotation]
		}
		if err := w.Charts.Refresh(ctx, app.Namespace, want); err != nil {
			a.Warn("repository %s could not be asked for newer versions: %v", want.RepoURL, err)
		}
	}
	found, ok := w.released(app, want)
	if refresh || !ok {
		var err error
		if found, err = w.resolve(ctx, a, app, want); err != nil {
			return err
		}
	}
	write(a, app, want, found)
	audit(a, app)
	return nil
}

// pinned reports whether app's annotations speak of the very chart that its template names.
func pinned(app *shipper.Application) bool {
	c := app.Spec.Template.Chart
	return c.Version != "" && app.Annotations[shipper.AppChartVersionResolvedAnnotation] == c.Version && sameChart(app, c)
}

// sameChart reports whether c is of the name and repository that was last resolved. The original did not note the
// repository.
func sameChart(app *shipper.Application, c shipper.Chart) bool {
	repo, noted := app.Annotations[shipper.AppChartRepoAnnotation]
	return app.Annotations[shipper.AppChartNameAnnotation] == c.Name && (!noted || repo == c.RepoURL)
}

// kept reports whether app goes on with the version it has: it names it, or it repeats the constraint that gave it. The
// version is put in the constraint's place.
func kept(a *response.Response, app, old *shipper.Application) bool {
	c := app.Spec.Template.Chart
	_, noted := app.Annotations[shipper.AppChartRepoAnnotation]
	if !noted && old != nil && c.RepoURL != old.Spec.Template.Chart.RepoURL {
		return false
	}
	if pinned(app) {
		return true
	}
	raw, there := app.Annotations[shipper.AppChartVersionRawAnnotation]
	if old == nil || !pinned(old) || !there || raw != c.Version || !sameChart(app, c) {
		return false
	}
	version := app.Annotations[shipper.AppChartVersionResolvedAnnotation]
	if ok, err := chart.Satisfies(c.Version, version); err != nil || !ok {
		return false
	}
	setVersion(a, app, version)
	return true
}

// judgeUnresolved refuses what will be refused whatever its chart is resolved to: no repository need be asked for it. Warnings are
// left to validating: said twice they are heard twice when the age of a block moves on in between.
func (w *Webhook) judgeUnresolved(
	ctx context.Context, req *admission.Request, a *response.Response, app, old *shipper.Application,
) error {
	c, err := w.unresolved(ctx, req, app, old)
	if err != nil {
		return err
	}
	return w.BlockCheck.Early(a, app.Namespace, func(a *response.Response) error {
		return w.BlockCheck.Judge(a, resource, app.Name, subject(app, old == nil), block.Overrides(app.Annotations), c)
	})
}

// released is what an exact version was when the newest Release was made of it: it is kept, so that going back to it needs
// no repository, and takes nothing else that was published under its name since.
func (w *Webhook) released(app *shipper.Application, want shipper.Chart) (found chart.Resolution, ok bool) {
	releases, err := w.State.Releases(client.ObjectKeyFromObject(app))
	if err != nil || !chart.IsExact(want.Version) {
		return found, false
	}
	ordered, _ := stamp.SortByGeneration(releases)
	for _, rel := range slices.Backward(ordered) {
		digest := rel.Annotations[shipper.ReleaseChartDigestAnnotation]
		if digest != "" && rel.Spec.Environment.Chart == want {
			return chart.Resolution{Version: want.Version, Digest: digest}, true
		}
	}
	return found, false
}

// judge refuses a change that is blocked.
func (w *Webhook) judge(
	ctx context.Context, req *admission.Request, a *response.Response, app, old *shipper.Application,
) error {
	c, err := w.change(ctx, req, app, old)
	if err != nil {
		return err
	}
	return w.BlockCheck.Judge(a, resource, app.Name, subject(app, old == nil), block.Overrides(app.Annotations), c)
}

// resolve asks for the version of want, and answers for a repository that does not.
func (w *Webhook) resolve(
	ctx context.Context, a *response.Response, app *shipper.Application, want shipper.Chart,
) (chart.Resolution, error) {
	found, err := w.Charts.Resolve(ctx, app.Namespace, want)
	if err != nil {
		return unresolved(a, app.Name, want, err)
	}
	if found.Stale {
		a.Warn("repository %s could not be asked since %s; %s was resolved to %s by what was known then",
			want.RepoURL, found.StaleSince.UTC().Format(time.RFC3339), describe(want), found.Version)
	} else if found.Version != want.Version {
		a.Warn("%s was resolved to %s", describe(want), found.Version)
	}
	return found, nil
}

// unresolved admits an exact version that could not be looked up, and refuses everything else.
func unresolved(a *response.Response, app string, want shipper.Chart, err error) (chart.Resolution, error) {
	var known *chart.Error
	errors.As(err, &known)
	switch {
	case errors.Is(err, chart.ErrNoChart):
		return chart.Resolution{}, refuse(app, "name", want.Name, err)
	case errors.Is(err, chart.ErrCredentials):
		return chart.Resolution{}, response.Invalidate(kind, app, field.ErrorList{
			field.Invalid(secretPath, want.Credentials.SecretName, err.Error()),
		})
	case errors.Is(err, chart.ErrBadConstraint), errors.Is(err, chart.ErrNoMatch):
		return chart.Resolution{}, refuse(app, "version", want.Version, err)
	case errors.Is(err, chart.ErrNotRepository), errors.Is(err, chart.ErrNotAllowed):
		return chart.Resolution{}, refuse(app, "repoUrl", want.RepoURL, err)
	case known != nil && !known.Retry:
		return chart.Resolution{}, refuse(app, "name", want.Name, err)
	case chart.IsExact(want.Version):
		a.Warn("%s was admitted unseen: %v", describe(want), err)
		return chart.Resolution{Version: want.Version}, nil
	}
	return chart.Resolution{}, response.Unable(describe(want) + " cannot be resolved to a version now: " + err.Error() +
		"; try again in a minute, or name an exact version")
}

func refuse(app, child, value string, err error) error {
	return response.Invalidate(kind, app, field.ErrorList{field.Invalid(chartPath.Child(child), value, err.Error())})
}

// write patches the pin: the version in its place, and where it comes from in annotations.
func write(a *response.Response, app *shipper.Application, want shipper.Chart, found chart.Resolution) {
	setVersion(a, app, found.Version)
	for key, value := range map[string]string{
		shipper.AppChartVersionRawAnnotation:      want.Version,
		shipper.AppChartVersionResolvedAnnotation: found.Version,
		shipper.AppChartNameAnnotation:            want.Name,
		shipper.AppChartRepoAnnotation:            want.RepoURL,
	} {
		if was, there := app.Annotations[key]; !there || was != value {
			a.Annotate(&app.ObjectMeta, key, value)
		}
	}
	switch {
	case found.Digest == "":
		a.Unannotate(&app.ObjectMeta, shipper.AppChartDigestAnnotation)
	case app.Annotations[shipper.AppChartDigestAnnotation] != found.Digest:
		a.Annotate(&app.ObjectMeta, shipper.AppChartDigestAnnotation, found.Digest)
	}
}

func setVersion(a *response.Response, app *shipper.Application, version string) {
	if app.Spec.Template.Chart.Version != version {
		app.Spec.Template.Chart.Version = version
		a.Set(version, "spec", "template", "chart", "version")
	}
}

func audit(a *response.Response, app *shipper.Application) {
	a.Audit(response.AuditChartPinned, app.Spec.Template.Chart.Name+" "+app.Spec.Template.Chart.Version)
}
