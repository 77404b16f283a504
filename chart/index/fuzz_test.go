// SPDX-License-Identifier: Apache-2.0

package index

import (
	"testing"

	"shipper.dev/shipper/chart"
)

// FuzzResolve resolves any constraint in any index: the result is in the index, satisfies the constraint, is the newest
// that does, and is found again by its name.
func FuzzResolve(f *testing.F) {
	const listed = "entries:\n  a:\n  - version: 1.2.3\n" +
		"  - version: v1.10.0\n  - version: 2.0.0-rc.1\n  - version: 2.0.0+b1\n  - version: '1'\n"
	for _, constraint := range []string{"", "~1", "^1.2", "1.2.3-4.5.6", "v1.2.3", ">=2.0.0-0", "2.0.0+b1", "1.x || >2", "1", "=1.10", "!=2"} {
		f.Add([]byte(listed), constraint)
	}
	f.Add([]byte(`{"entries":{"a":[{"version":"1.0.0","digest":"sha256:AB"},{"version":"1.0.0+a"}]}}`), "1.0.0")
	f.Add([]byte("apiVersion: v1\nentries: {a: [{version: 1.2.3-4.5.6}]}"), "1.2.3-4.5.6")
	f.Fuzz(func(t *testing.T, data []byte, text string) {
		wanted, err := ParseConstraint(text)
		if err != nil {
			return
		}
		ix, err := chart.Guard(func() (*Index, error) { return NewParser().Parse("charts.example.com", data) })
		if err != nil {
			return
		}
		for name, entries := range ix.charts {
			found, ok := ix.Resolve(name, wanted)
			named := ok && wanted.names(found.Version)
			for _, e := range entries {
				if wanted.admits(e.parsed) && (!ok || !named && e.parsed.GreaterThan(found.parsed)) {
					t.Fatalf("%q is satisfied by %s, and %q was found", text, e.Version, found.Version)
				}
			}
			if !ok {
				continue
			}
			if !named && !wanted.admits(found.parsed) {
				t.Fatalf("%q is not satisfied by %s", text, found.Version)
			}
			if again, ok := ix.Exact(name, found.Version); !ok || again.Version != found.Version {
				t.Fatalf("%s is found again as %q", found.Version, again.Version)
			}
		}
	})
}
