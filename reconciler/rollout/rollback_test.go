// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"testing"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// TestARollbackRestoresWhatWasInstalled: without a webhook a user can write the record of a rollback beside a template of their own.
func TestARollbackRestoresWhatWasInstalled(t *testing.T) {
	for sentence, tc := range map[string]struct {
		template int64
		digest   string
		creates  bool
	}{
		"the template of an earlier Release":  {1, "", true},
		"a template that no Release has":      {3, "", false},
		"the same template of another digest": {1, "b", false},
	} {
		first := complete(0, 1)
		app := web(tc.template, "1", 2)
		app.Annotations[shipper.AppRolledBackToAnnotation] = first.Name
		if tc.digest != "" {
			app.Annotations[shipper.AppChartDigestAnnotation] = tc.digest
		}
		p := planTemplate(seen(app, first, complete(1, 2)), at)
		if creates := p.create != nil; creates != tc.creates || !creates && p.unready.reason != shipper.CreateReleaseFailed {
			t.Errorf("%s: a Release is created: %t, %q", sentence, creates, p.unready)
		}
	}
}
