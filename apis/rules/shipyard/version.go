// SPDX-License-Identifier: Apache-2.0

package shipyard

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// VersionPath is the field with the version that a user requests.
var VersionPath = specPath.Child("data").Key(TaskDeployment).Child("version")

// WantedChart is the chart that a resolved run deploys to the Application of its stage, which is nil if there is none: with the version, or
// the constraint, that data.deployment.version has, or else the Application.
func WantedChart(run *shipper.SequenceRun, app *shipper.Application) (shipper.Chart, *Refusal) {
	refuse := func(why string) (shipper.Chart, *Refusal) {
		return shipper.Chart{}, invalid(field.Invalid(specPath.Child("service"), run.Spec.Service, why))
	}
	asked, refusal := RequestedVersion(run)
	switch {
	case refusal != nil:
		return shipper.Chart{}, refusal
	case app == nil:
		return refuse(fmt.Sprintf("Application %s has to exist: stage %s deploys the service to it", ApplicationOfRun(run), run.Spec.Stage))
	case app.Spec.Template.Chart.Name == "" || app.Spec.Template.Chart.RepoURL == "":
		return refuse(fmt.Sprintf("Application %s has no chart of a repository: a deployment has no version to write into it",
			ApplicationOfRun(run)))
	}
	want := app.Spec.Template.Chart
	want.Version = constraint(app)
	if asked != "" {
		want.Version = asked
	}
	return want, nil
}

// RequestedVersion is data.deployment.version; empty if it is absent.
func RequestedVersion(run *shipper.SequenceRun) (string, *Refusal) {
	space, _ := run.Spec.Data[TaskDeployment].(map[string]any)
	value, given := space["version"]
	if !given {
		return "", nil
	}
	text, isText := value.(string)
	if !isText || text == "" {
		return "", invalid(field.Invalid(VersionPath, value, `must be a text such as "1.4.2" or "~1.4"`))
	}
	return text, nil
}

// NoSuchVersion refuses a chart for which its repository has said so.
func NoSuchVersion(want *shipper.Chart, err error) *Refusal {
	return invalid(field.Invalid(VersionPath, want.Version, err.Error()))
}

// constraint is what the version of an Application was last resolved from.
func constraint(app *shipper.Application) string {
	c, noted := app.Spec.Template.Chart, app.Annotations
	raw, there := noted[shipper.AppChartVersionRawAnnotation]
	if there && noted[shipper.AppChartVersionResolvedAnnotation] == c.Version && noted[shipper.AppChartNameAnnotation] == c.Name &&
		noted[shipper.AppChartRepoAnnotation] == c.RepoURL {
		return raw
	}
	return c.Version
}
