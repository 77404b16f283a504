// SPDX-License-Identifier: Apache-2.0

package application_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart"
	"shipper.dev/shipper/test/admission/ask"
	"shipper.dev/shipper/webhook/response"
)

func TestKeysNeedTheRightToReadThemAndMustExist(t *testing.T) {
	verified := func(app *shipper.Application) { app.Spec.Template.Chart.Verify.SecretName = "keys" }
	elsewhere := func(app *shipper.Application) { app.Spec.Template.Chart.RepoURL = "https://elsewhere.example.com" }
	probe := ask.Application()
	may := ask.Grant(ask.Developer + " get secrets " + probe.Namespace + "/keys")
	const at = `Application.shipper.booking.com "super-server" is invalid: spec.template.chart.`
	forbidden := at + `verify.secretName: Forbidden: ` + ask.Developer + ` may not get Secret ` + probe.Namespace + `/keys, ` +
		`and a chart is verified only with keys that its requester may read; ` +
		`ask the owner of the namespace to run: kubectl -n ` + probe.Namespace + ` create role get-secrets-keys --verb=get ` +
		`--resource=secrets --resource-name=keys; kubectl -n ` + probe.Namespace + ` create rolebinding get-secrets-keys-dev ` +
		`--role=get-secrets-keys --user=dev`
	create := ask.Create(ask.Developer, ask.Application(verified))
	update := func(now, old *shipper.Application) *admission.Request { return ask.Update(ask.Developer, now, old) }
	missing := &chart.Error{Message: "there is no Secret x/keys", Retry: true, Cause: chart.ErrKeys}
	const warning = `it is not known yet whether chart nginx, version "0.0.1", can be verified: away`
	release := func(signature string) *shipper.Release {
		rel := ask.Release(ask.Application(verified), nil)
		rel.Annotations[shipper.ReleaseChartDigestAnnotation] = "d"
		rel.Annotations[shipper.ReleaseChartSignatureAnnotation] = signature
		return rel
	}
	for sentence, tc := range map[string]struct {
		req      *admission.Request
		rights   *ask.Rights
		problem  error
		known    []client.Object
		decision response.Decision
		message  string
		warnings []string
	}{
		"may name them":                {req: create, rights: may},
		"may not name those of others": {req: create, rights: ask.Grant(), decision: response.Invalid, message: forbidden},
		"may not add those of others": {
			req: update(ask.Application(verified), probe), rights: ask.Grant(), decision: response.Invalid, message: forbidden,
		},
		"may not have another chart verified by those of others": {
			req: update(ask.Application(verified, elsewhere), ask.Application(verified)), rights: ask.Grant(),
			decision: response.Invalid, message: forbidden,
		},
		"may edit other fields": {
			req: update(ask.Application(verified, changed), ask.Application(verified)), rights: ask.Grant(), problem: missing,
		},
		"may take them away": {req: update(probe, ask.Application(verified)), rights: ask.Grant(), problem: missing},
		"names keys that are not there": {
			req: create, rights: may, problem: missing, decision: response.Invalid,
			message: at + `verify.secretName: Invalid value: "keys": there is no Secret x/keys`,
		},
		"brings an archive that is not signed": {
			req: create, rights: may, problem: &chart.Error{Message: "chart.provenance is a page", Cause: chart.ErrProvenance},
			decision: response.Invalid, message: at + `provenance: Invalid value: "(0 bytes)": chart.provenance is a page`,
		},
		"is admitted when it cannot be checked": {
			req: create, rights: may, problem: &chart.Error{Message: "away", Retry: true}, warnings: []string{warning},
		},
		"goes back to a verified chart, with the keys gone": {
			req: update(ask.Application(verified), probe), rights: ask.Grant(), problem: missing,
			known: []client.Object{release(`{"digest":"d","fingerprint":"F"}`)},
		},
		"goes back to a chart that was not": {
			req: update(ask.Application(verified), probe), rights: may, problem: missing, known: []client.Object{release("")},
			decision: response.Invalid, message: at + `verify.secretName: Invalid value: "keys": there is no Secret x/keys`,
		},
		"goes back to a verified chart with another archive": {
			req: update(ask.Application(verified), probe), rights: may, problem: missing,
			known:    []client.Object{release(`{"digest":"e","fingerprint":"F"}`)},
			decision: response.Invalid, message: at + `verify.secretName: Invalid value: "keys": there is no Secret x/keys`,
		},
		"is checked again after the API server did not answer": {
			req: create, rights: &ask.Rights{Err: errors.New("away")}, decision: response.Unavailable, message: "away",
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			charts := exact()
			charts.notVerifiable = tc.problem
			w := webhookOf(t, tc.rights, charts, tc.known...)
			a := &response.Response{}
			err := w.Validate(t.Context(), tc.req, a)
			ask.CheckRefusal(t, err, tc.decision, tc.message)
			var got []string
			for _, w := range a.Warnings() {
				if w == warning {
					got = append(got, w)
				}
			}
			if diff := cmp.Diff(tc.warnings, got); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
}
