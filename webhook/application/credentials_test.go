// SPDX-License-Identifier: Apache-2.0

package application_test

import (
	"errors"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart"
	"shipper.dev/shipper/test/admission/ask"
	"shipper.dev/shipper/webhook/response"
)

func TestCredentialsNeedTheRightToReadThem(t *testing.T) {
	opened := func(app *shipper.Application) { app.Spec.Template.Chart.Credentials.SecretName = "opener" }
	elsewhere := func(app *shipper.Application) { app.Spec.Template.Chart.RepoURL = "https://elsewhere.example.com" }
	before := func(app *shipper.Application) { app.Spec.Template.Chart.Name = "before" }
	released := ask.Release(ask.Application(opened, before), nil, ask.ReleaseAnnotated(shipper.ReleaseChartDigestAnnotation, "digest"))
	unseen := ask.Release(ask.Application(opened), []*shipper.Release{released})
	others := func(app *shipper.Application) { app.Spec.Template.Chart.Credentials.SecretName = "another" }
	probe := ask.Application()
	may := ask.Developer + " get secrets " + probe.Namespace + "/opener"
	message := `Application.shipper.booking.com "super-server" is invalid: spec.template.chart.credentials.secretName: ` +
		`Forbidden: ` + ask.Developer + ` may not get Secret ` + probe.Namespace + `/opener, ` +
		`and a chart is fetched only with credentials that its requester may read; ` +
		`ask the owner of the namespace to run: kubectl -n ` + probe.Namespace + ` create role get-secrets-opener --verb=get ` +
		`--resource=secrets --resource-name=opener; kubectl -n ` + probe.Namespace + ` create rolebinding get-secrets-opener-dev ` +
		`--role=get-secrets-opener --user=dev`
	update := func(now, old *shipper.Application) *admission.Request { return ask.Update(ask.Developer, now, old) }
	for sentence, tc := range map[string]struct {
		req      *admission.Request
		rights   *ask.Rights
		decision response.Decision
		message  string
	}{
		"may name them":                {ask.Create(ask.Developer, ask.Application(opened)), ask.Grant(may), "", ""},
		"may not name those of others": {ask.Create(ask.Developer, ask.Application(opened)), ask.Grant(), response.Invalid, message},
		"may not add those of others":  {update(ask.Application(opened), ask.Application()), ask.Grant(), response.Invalid, message},
		"may not have them sent elsewhere": {
			update(ask.Application(opened, elsewhere), ask.Application(opened)), ask.Grant(), response.Invalid, message,
		},
		"may go back to a Release with them": {
			update(ask.Application(opened, before), ask.Application()), ask.Grant(), "", "",
		},
		"may not go back to it with others": {
			update(ask.Application(others, before), ask.Application()), ask.Grant(), response.Invalid,
			strings.ReplaceAll(message, "opener", "another"),
		},
		"may edit other fields": {update(ask.Application(opened, changed), ask.Application(opened)), ask.Grant(), "", ""},
		"may take them away":    {update(ask.Application(), ask.Application(opened)), ask.Grant(), "", ""},
		"may put them back on abort": {
			ask.Update(ask.Reconciler, ask.Application(opened, abortedTo(unseen)), ask.Application()), ask.Grant(), "", "",
		},
		"may not name them by a user name": {
			ask.Update(ask.Reconciler, ask.Application(opened), ask.Application()), ask.Grant(), response.Invalid,
			strings.NewReplacer(ask.Developer+" may", ask.Reconciler+" may", "opener-dev", "opener-"+ask.Reconciler, "user=dev",
				"user="+ask.Reconciler).Replace(message),
		},
		"is checked again after the API server did not answer": {
			ask.Create(ask.Developer, ask.Application(opened)), &ask.Rights{Err: errors.New("away")}, response.Unavailable, "away",
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			charts := exact()
			w := webhookOf(t, tc.rights, charts, released, unseen)
			err := w.Default(t.Context(), tc.req, &response.Response{})
			ask.CheckRefusal(t, err, tc.decision, tc.message)
			if err != nil && len(charts.asked) > 0 {
				t.Error("the repository was asked first")
			}
			err = w.Validate(t.Context(), tc.req, &response.Response{})
			ask.CheckRefusal(t, err, tc.decision, tc.message)
		})
	}
}

// abortedTo is an Application as the reconciler puts it back to the template of rel.
func abortedTo(rel *shipper.Release) func(*shipper.Application) {
	return func(app *shipper.Application) {
		app.Spec.Template = *rel.Spec.Environment.DeepCopy()
		ask.Pinned(app.Spec.Template.Chart.Version)(app)
		app.Annotations[shipper.AppChartRepoAnnotation] = app.Spec.Template.Chart.RepoURL
		app.Annotations[shipper.AppHighestObservedGenerationAnnotation] = rel.Annotations[shipper.ReleaseGenerationAnnotation]
		delete(app.Annotations, shipper.AppChartDigestAnnotation)
		if digest := rel.Annotations[shipper.ReleaseChartDigestAnnotation]; digest != "" {
			app.Annotations[shipper.AppChartDigestAnnotation] = digest
		}
	}
}

func TestCredentialsThatShipperCannotUse(t *testing.T) {
	app := ask.Application(func(app *shipper.Application) { app.Spec.Template.Chart.Credentials.SecretName = "opener" })
	charts := &catalog{err: &chart.Error{Message: "there is no Secret x/opener", Retry: true, Cause: chart.ErrCredentials}}
	w := webhookOf(t, ask.Grant(ask.Developer+" get secrets "+app.Namespace+"/opener"), charts)
	ask.CheckRefusal(t, w.Default(t.Context(), ask.Create(ask.Developer, app), &response.Response{}), response.Invalid,
		`Application.shipper.booking.com "super-server" is invalid: spec.template.chart.credentials.secretName: `+
			`Invalid value: "opener": there is no Secret x/opener`)
}
