// SPDX-License-Identifier: Apache-2.0

package application_test

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/admission/ask"
	"shipper.dev/shipper/webhook/response"
)

func naming(how shipper.ChartNaming) func(*shipper.Application) {
	return func(app *shipper.Application) { app.Spec.Template.Chart.Naming = how }
}

func TestNamingFollowsTheReleases(t *testing.T) {
	by := func(how shipper.ChartNaming) []client.Object {
		rel := ask.Release(ask.Application(), nil)
		rel.Spec.Environment.Chart.Naming = how
		return []client.Object{rel}
	}
	refused := func(asked, has string) string {
		return `Application.shipper.booking.com "super-server" is invalid: spec.template.chart.naming: Invalid value: "` + asked +
			`": this Application has Releases whose objects are named by ` + has + `, and later Releases follow them: leave the field out; ` +
			`to change it, delete the Application with its Releases and create it again: kubectl delete app super-server -n default`
	}
	none := ask.Application(ask.Pinned("0.0.1"))
	for sentence, tc := range map[string]struct {
		now     *shipper.Application
		known   []client.Object
		refused string
	}{
		"without Releases it is free":        {now: ask.Application(ask.Pinned("0.0.1"), naming("Application"))},
		"what the Releases have is accepted": {ask.Application(ask.Pinned("0.0.1"), naming("Application")), by("Application"), ""},
		"by Release is what absence means":   {ask.Application(ask.Pinned("0.0.1"), naming("Release")), by(""), ""},
		"another is refused": {
			ask.Application(ask.Pinned("0.0.1"), naming("Application")), by(""), refused("Application", "Release"),
		},
		"another is refused with an edit": {
			ask.Application(ask.Pinned("0.0.1"), naming("Release"), changed), by("Application"), refused("Release", "Application"),
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			hook, req := webhookOf(t, ask.Grant(), exact(), tc.known...), ask.Update(ask.Developer, tc.now, none)
			err := hook.Validate(t.Context(), req, &response.Response{})
			if tc.refused == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			ask.CheckRefusal(t, err, response.Invalid, tc.refused)
		})
	}
}

// TestRollbacksLeaveTheNamingToTheUser: what Releases record is not written into the spec, where a user could not tell who wrote it.
func TestRollbacksLeaveTheNamingToTheUser(t *testing.T) {
	for _, asked := range []shipper.ChartNaming{"", "Application"} {
		old, rels := released()
		old.Spec.Template.Chart.Naming = asked
		known := make([]client.Object, 0, len(rels))
		for _, rel := range rels {
			rel.Spec.Environment.Chart.Naming = "Application"
			known = append(known, rel)
		}
		now := old.DeepCopy()
		now.Spec.RollbackTo = &shipper.RollbackTo{Release: rels[0].Name}
		a, req := &response.Response{}, ask.Update(ask.Developer, now, old)
		if err := webhookOf(t, ask.Grant(), exact(), known...).Default(t.Context(), req, a); err != nil {
			t.Fatal(err)
		}
		got := ask.Patched[shipper.Application](t, req, a)
		if got.Spec.Template.Chart.Naming != asked || got.Spec.Template.Chart.Version != "0.0.1" {
			t.Errorf("%q: %+v", asked, got.Spec.Template.Chart)
		}
	}
}
