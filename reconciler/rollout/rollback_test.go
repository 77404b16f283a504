// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"testing"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// TestARollbackRestoresWhatWasInstalled: without a webhook a user can write the record of a rollback beside a template of their own, which
// names Secrets, and the record of a finished rollback stays.
func TestARollbackRestoresWhatWasInstalled(t *testing.T) {
	type edit = func(*shipper.ReleaseEnvironment)
	opener := func(env *shipper.ReleaseEnvironment) { env.Chart.Credentials.SecretName = "opener" }
	keys := func(env *shipper.ReleaseEnvironment) { env.Chart.Verify.SecretName = "keys" }
	from := func(source shipper.ValuesSource) edit {
		return func(env *shipper.ReleaseEnvironment) {
			env.ValuesFrom = []shipper.ValuesSource{source}
			env.ValuesDigests = map[string]string{source.String(): "a"}
		}
	}
	hidden := from(shipper.ValuesSource{SecretKeyRef: &shipper.ValuesKeyRef{Name: "hidden"}})
	settings := from(shipper.ValuesSource{ConfigMapKeyRef: &shipper.ValuesKeyRef{Name: "settings"}})
	none := func(*shipper.ReleaseEnvironment) {}
	leave := func(s *scope) {
		for _, r := range s.history.Live {
			r.Release.Status.Conditions = nil
		}
		s.history.Live, s.history.Leaving = nil, s.history.Live
	}
	for sentence, tc := range map[string]struct {
		template int64
		edit     edit
		digest   string
		after    func(*scope)
		creates  bool
	}{
		"the template of an earlier Release":   {1, hidden, "", nil, true},
		"a template that no Release has":       {3, hidden, "", nil, false},
		"the same template of another digest":  {1, hidden, "b", nil, false},
		"another with credentials":             {3, opener, "", nil, false},
		"another with keys":                    {3, keys, "", nil, false},
		"another while all Releases leave":     {3, opener, "", leave, false},
		"an edit after a finished rollback":    {3, none, "", nil, true},
		"another version after one":            {3, none, "b", nil, true},
		"another with values of the namespace": {3, settings, "", nil, true},
	} {
		first := complete(0, 1)
		tc.edit(&first.Spec.Environment)
		app := web(tc.template, "1", 2)
		tc.edit(&app.Spec.Template)
		app.Annotations[shipper.AppRolledBackToAnnotation] = first.Name
		if tc.digest != "" {
			app.Annotations[shipper.AppChartDigestAnnotation] = tc.digest
		}
		s := seen(app, first, complete(1, 2))
		if tc.after != nil {
			tc.after(s)
		}
		p := planTemplate(s, at)
		if creates := p.create != nil; creates != tc.creates || !creates && p.unready.reason != shipper.CreateReleaseFailed {
			t.Errorf("%s: a Release is created: %t, %q", sentence, creates, p.unready)
		}
	}
}
