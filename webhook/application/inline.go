// SPDX-License-Identifier: Apache-2.0

package application

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart/render"
	"shipper.dev/shipper/chart/repository"
	"shipper.dev/shipper/webhook/response"
)

// pinArchive opens the archive in the template and pins the template to its name and version, which must agree if they are
// given, and to its digest.
func pinArchive(a *response.Response, app, old *shipper.Application) error {
	want := app.Spec.Template.Chart
	if want.RepoURL != "" || old != nil && old.Spec.Template.Chart.Same(want) && pinned(app) {
		return nil // validation refuses both together; an archive is opened once
	}
	opened, err := render.OpenInline(want.Archive)
	if err != nil {
		return refuseArchive(app, "archive", fmt.Sprintf("(%d bytes)", len(want.Archive)), err.Error())
	}
	if want.Version != "" && followed(app, old) {
		want.Version = ""
	}
	if want.Name != "" && want.Name != opened.Name() {
		return refuseArchive(app, "name", want.Name, fmt.Sprintf("the archive holds chart %q: name it so, or leave the name out", opened.Name()))
	}
	if want.Version != "" && want.Version != opened.Version() {
		return refuseArchive(app, "version", want.Version,
			fmt.Sprintf("the archive holds version %q: name it so, or leave the version out", opened.Version()))
	}
	if want.Name == "" {
		want.Name = opened.Name()
		app.Spec.Template.Chart.Name = want.Name
	}
	write(app, want, repository.Resolution{Version: opened.Version(), Digest: opened.Digest()})
	audit(a, app)
	return nil
}

// followed reports whether app's version is that of the previous archive and the user did not set it: clients that merge send
// it with the new archive.
func followed(app, old *shipper.Application) bool {
	if old == nil || !pinned(old) || old.Spec.Template.Chart.Archive == "" {
		return false
	}
	return old.Annotations[shipper.AppChartVersionRawAnnotation] == "" && app.Spec.Template.Chart.Version == old.Spec.Template.Chart.Version
}

func refuseArchive(app *shipper.Application, child, value, why string) error {
	return response.Invalidate(kind, app.Name, field.ErrorList{field.Invalid(chartPath.Child(child), value, why)})
}
