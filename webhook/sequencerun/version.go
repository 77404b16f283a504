// SPDX-License-Identifier: Apache-2.0

package sequencerun

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"shipper.dev/shipper/apis/rules/shipyard"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart"
	"shipper.dev/shipper/chart/index"
	"shipper.dev/shipper/webhook/authz"
	"shipper.dev/shipper/webhook/response"
)

// versionPath is the path of the version that a user asks for.
var versionPath = specPath.Child("data").Key(shipyard.TaskDeployment).Child("version")

// resolve writes the version that a run deploys: what data.deployment.version, or else the constraint of the stage's Application, stands
// for now. The chart is that of the Application.
func (w *Webhook) resolve(ctx context.Context, a *response.Response, run *shipper.SequenceRun) error {
	key := shipyard.ApplicationOfRun(run)
	asked, err := askedVersion(run)
	if err != nil {
		return err
	}
	app, err := w.State.WholeApplicationNow(ctx, key)
	refuse := func(why string) error {
		return response.Invalidate(kind, run.Name, field.ErrorList{field.Invalid(specPath.Child("service"), run.Spec.Service, why)})
	}
	switch {
	case err != nil:
		return response.Later(err.Error(), authz.RetryAfter)
	case app == nil:
		return refuse(fmt.Sprintf("Application %s has to exist: stage %s deploys the service to it", key, run.Spec.Stage))
	case app.Spec.Template.Chart.Name == "" || app.Spec.Template.Chart.RepoURL == "":
		return refuse(fmt.Sprintf("Application %s has no chart of a repository: a deployment has no version to write into it", key))
	}
	want := app.Spec.Template.Chart
	want.Version = constraint(app)
	if asked != "" {
		want.Version = asked
	}
	run.Spec.Version = shipper.RunVersion{Name: want.Name, Version: want.Version}
	found, err := w.Charts.Resolve(ctx, app.Namespace, want)
	if err != nil {
		return unresolved(a, run.Name, want, err)
	}
	run.Spec.Version.Version, run.Spec.Version.Digest = found.Version, found.Digest
	if found.Stale {
		a.Warn("repository %s could not be asked since %s; chart %s %q was resolved to %s by what was known then", want.RepoURL,
			found.StaleSince.UTC().Format(time.RFC3339), want.Name, want.Version, found.Version)
	} else if found.Version != want.Version {
		a.Warn("chart %s %q was resolved to %s", want.Name, want.Version, found.Version)
	}
	return nil
}

// askedVersion is data.deployment.version; empty if it is absent.
func askedVersion(run *shipper.SequenceRun) (string, error) {
	space, _ := run.Spec.Data[shipyard.TaskDeployment].(map[string]any)
	value, given := space["version"]
	if !given {
		return "", nil
	}
	text, isText := value.(string)
	if !isText || text == "" {
		problem := field.Invalid(versionPath, value, `must be a text such as "1.4.2" or "~1.4"`)
		return "", response.Invalidate(kind, run.Name, field.ErrorList{problem})
	}
	return text, nil
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

// permitRunner refuses a run with tasks about an Application that the runner may not write. It also keeps a user from learning, by the name
// of a namespace in a Shipyard, what Applications others have.
func (w *Webhook) permitRunner(ctx context.Context, run *shipper.SequenceRun) error {
	if !shipyard.IsAboutApplication(shipyard.SequenceOf(run.Spec.Snapshot, run.Spec.Stage, run.Spec.Sequence)) {
		return nil
	}
	account, key := run.Spec.Snapshot.ServiceAccountName, shipyard.ApplicationOfRun(run)
	allowed, err := w.Authz.Allowed(ctx, authz.ServiceAccount(run.Namespace, account), "patch", "applications", key)
	switch {
	case err != nil:
		return response.Later(err.Error(), authz.RetryAfter)
	case !allowed:
		return response.Forbid(resource, run.Name, fmt.Sprintf("ServiceAccount %s/%s, with whose rights runs of shipyard %s write, may not "+
			"patch applications/%s in %s: who owns that namespace allows it by: %s", run.Namespace, account, run.Spec.Shipyard, key.Name,
			key.Namespace, shipper.BindRunnerCommand(run.Namespace, account, key.Namespace)))
	}
	return nil
}

// unresolved admits an exact version that could not be looked up, and refuses constraints.
func unresolved(a *response.Response, run string, want shipper.Chart, err error) error {
	var known *chart.Error
	errors.As(err, &known)
	what := fmt.Sprintf("chart %s %q", want.Name, want.Version)
	switch {
	case errors.Is(err, chart.ErrNoChart), errors.Is(err, chart.ErrBadConstraint), errors.Is(err, chart.ErrNoMatch),
		errors.Is(err, chart.ErrNotRepository), errors.Is(err, chart.ErrNotAllowed), errors.Is(err, chart.ErrCredentials),
		known != nil && !known.Retry:
		return response.Invalidate(kind, run, field.ErrorList{field.Invalid(versionPath, want.Version, err.Error())})
	case index.IsExact(want.Version):
		a.Warn("%s was admitted unseen: %v", what, err)
		return nil
	}
	return response.Unable(what + " cannot be resolved to a version now: " + err.Error() + "; try again in a minute, or name an exact version")
}
