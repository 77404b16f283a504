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
	"shipper.dev/shipper/chart/index"
	"shipper.dev/shipper/chart/repository"
	"shipper.dev/shipper/webhook/response"
)

var chartPath = field.NewPath("spec", "template", "chart")

// pin sets the exact version of the template's chart and the annotations with its origin. It keeps a pin as long as the request
// is the same, and resolves a new request.
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
	if !refresh && kept(app, old) {
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
	write(app, want, found)
	audit(a, app)
	return nil
}

// pinned reports whether app's annotations are about the chart in its template.
func pinned(app *shipper.Application) bool {
	c := app.Spec.Template.Chart
	return c.Version != "" && app.Annotations[shipper.AppChartVersionResolvedAnnotation] == c.Version && sameChart(app, c)
}

// sameChart reports whether c has the name and repository that were last resolved. The original did not record the repository.
func sameChart(app *shipper.Application, c shipper.Chart) bool {
	repo, noted := app.Annotations[shipper.AppChartRepoAnnotation]
	return app.Annotations[shipper.AppChartNameAnnotation] == c.Name && (!noted || repo == c.RepoURL)
}

// kept reports whether app keeps its version: it names that version, or repeats the constraint that it was resolved from. It
// then replaces the constraint by the version.
func kept(app, old *shipper.Application) bool {
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
	if ok, err := index.Satisfies(c.Version, version); err != nil || !ok {
		return false
	}
	setVersion(app, version)
	return true
}

// judgeUnresolved refuses a write that would be refused for any version, before a request to the repository. Validation adds
// the warnings: if both did, the user would see a warning twice when a block's age changes in between.
func (w *Webhook) judgeUnresolved(
	ctx context.Context, req *admission.Request, a *response.Response, app, old *shipper.Application,
) error {
	c, err := w.unresolved(ctx, req, app, old)
	if err != nil {
		return err
	}
	return w.BlockCheck.Early(a, app.Namespace, false, func(a *response.Response) error {
		return w.BlockCheck.Judge(a, resource, app.Name, overrider(app, old == nil), block.Overrides(app.Annotations), c)
	})
}

// released is the resolution of an exact version when the newest Release was created. It is used again, so that a rollback
// needs no repository and never gets another chart under the same version.
func (w *Webhook) released(app *shipper.Application, want shipper.Chart) (found repository.Resolution, ok bool) {
	releases, err := w.State.Releases(client.ObjectKeyFromObject(app))
	if err != nil || !index.IsExact(want.Version) {
		return found, false
	}
	ordered, _ := stamp.SortByGeneration(releases)
	for _, rel := range slices.Backward(ordered) {
		digest := rel.Annotations[shipper.ReleaseChartDigestAnnotation]
		if digest != "" && rel.Spec.Environment.Chart.Same(want) {
			return repository.Resolution{Version: want.Version, Digest: digest}, true
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
	return w.BlockCheck.Judge(a, resource, app.Name, overrider(app, old == nil), block.Overrides(app.Annotations), c)
}

// resolve resolves the version of want, and handles repositories that do not answer.
func (w *Webhook) resolve(
	ctx context.Context, a *response.Response, app *shipper.Application, want shipper.Chart,
) (repository.Resolution, error) {
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

// unresolved admits an exact version that could not be looked up, and refuses constraints.
func unresolved(a *response.Response, app string, want shipper.Chart, err error) (repository.Resolution, error) {
	var known *chart.Error
	errors.As(err, &known)
	switch {
	case errors.Is(err, chart.ErrNoChart):
		return repository.Resolution{}, refuse(app, "name", want.Name, err)
	case errors.Is(err, chart.ErrCredentials):
		return repository.Resolution{}, response.Invalidate(kind, app, field.ErrorList{
			field.Invalid(secretPath, want.Credentials.SecretName, err.Error()),
		})
	case errors.Is(err, chart.ErrBadConstraint), errors.Is(err, chart.ErrNoMatch):
		return repository.Resolution{}, refuse(app, "version", want.Version, err)
	case errors.Is(err, chart.ErrNotRepository), errors.Is(err, chart.ErrNotAllowed):
		return repository.Resolution{}, refuse(app, "repoUrl", want.RepoURL, err)
	case known != nil && !known.Retry:
		return repository.Resolution{}, refuse(app, "name", want.Name, err)
	case index.IsExact(want.Version):
		a.Warn("%s was admitted unseen: %v", describe(want), err)
		return repository.Resolution{Version: want.Version}, nil
	}
	return repository.Resolution{}, response.Unable(describe(want) + " cannot be resolved to a version now: " + err.Error() +
		"; try again in a minute, or name an exact version")
}

func refuse(app, child, value string, err error) error {
	return response.Invalidate(kind, app, field.ErrorList{field.Invalid(chartPath.Child(child), value, err.Error())})
}

// write patches the pin: the version, and its origin in annotations.
func write(app *shipper.Application, want shipper.Chart, found repository.Resolution) {
	setVersion(app, found.Version)
	for key, value := range map[string]string{
		shipper.AppChartVersionRawAnnotation:      want.Version,
		shipper.AppChartVersionResolvedAnnotation: found.Version,
		shipper.AppChartNameAnnotation:            want.Name,
		shipper.AppChartRepoAnnotation:            want.RepoURL,
	} {
		if was, there := app.Annotations[key]; !there || was != value {
			response.Annotate(&app.ObjectMeta, key, value)
		}
	}
	switch {
	case found.Digest == "":
		delete(app.Annotations, shipper.AppChartDigestAnnotation)
	case app.Annotations[shipper.AppChartDigestAnnotation] != found.Digest:
		response.Annotate(&app.ObjectMeta, shipper.AppChartDigestAnnotation, found.Digest)
	}
}

func setVersion(app *shipper.Application, version string) {
	if app.Spec.Template.Chart.Version != version {
		app.Spec.Template.Chart.Version = version
	}
}

func audit(a *response.Response, app *shipper.Application) {
	a.Audit(response.AuditChartPinned, app.Spec.Template.Chart.Name+" "+app.Spec.Template.Chart.Version)
}
