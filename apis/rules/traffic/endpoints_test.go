// SPDX-License-Identifier: Apache-2.0

package traffic

import "testing"

func TestLacksEndpoints(t *testing.T) {
	serves := Release{Name: "web-1", Weight: 100, Awaited: true}
	for sentence, tc := range map[string]struct {
		serving int
		edit    func(*Release)
		want    bool
	}{
		"a Release that is to serve has none":             {0, func(*Release) {}, true},
		"endpoints of any Release are enough":             {1, func(*Release) {}, false},
		"a Release without weight is not to serve":        {0, func(r *Release) { r.Weight = 0 }, false},
		"a Release that no Pods are asked of has none":    {0, func(r *Release) { r.Awaited = false }, false},
		"a Release that is left as it was found is asked": {0, func(r *Release) { r.AsFound = true }, false},
		"another Release is asked":                        {0, func(r *Release) { r.Name = "web-2" }, false},
	} {
		t.Run(sentence, func(t *testing.T) {
			rel := serves
			tc.edit(&rel)
			app := Application{Serving: tc.serving, Releases: []Release{rel}}
			if got := app.LacksEndpoints("web-1"); got != tc.want {
				t.Errorf("got %t, want %t", got, tc.want)
			}
		})
	}
}
