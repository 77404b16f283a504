// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestApplications(t *testing.T) {
	const app = "apiVersion: shipper.booking.com/v1alpha1\nkind: Application\nmetadata: {name: web}\n"
	const other = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\n"
	for sentence, tc := range map[string]struct {
		manifest string
		want     any
	}{
		"one":                 {app, []string{"web"}},
		"one among others":    {"# nothing\n---\n" + other + "---\n" + app + "---\n", []string{"web"}},
		"two":                 {app + "---\n" + app, []string{"web", "web"}},
		"none":                {other, "there is no Application of shipper.booking.com/v1alpha1 in the manifest"},
		"nothing":             {"", "there is no Application of shipper.booking.com/v1alpha1 in the manifest"},
		"what is no manifest": {"{", "reading the manifest: unexpected EOF"},
	} {
		t.Run(sentence, func(t *testing.T) {
			apps, err := applications([]byte(tc.manifest))
			var got any
			if err != nil {
				got = err.Error()
			} else {
				var names []string
				for _, a := range apps {
					names = append(names, a.GetName())
				}
				got = names
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
