// SPDX-License-Identifier: Apache-2.0

package index_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"shipper.dev/shipper/chart"
	"shipper.dev/shipper/chart/index"
)

// shelf is a set of versions that different constraints select different ones of.
var shelf = []string{
	"0.0.1", "0.0.2", "0.1.0", "0.2.0", "1.0.0", "1.2.0", "1.2.3", "1.9.9", "2.0.0", "2.0.0-rc.1", "1.2.3-alpha.1", "3.0.0-beta",
}

func TestSatisfies(t *testing.T) {
	stable := "0.0.1 0.0.2 0.1.0 0.2.0 1.0.0 1.2.0 1.2.3 1.9.9 2.0.0"
	tests := map[string]string{
		"":  stable,
		"*": stable,
		"x": stable,
		// Carets below 1.0.0 are narrow.
		"^0.0.1": "0.0.1",
		"^0.1":   "0.1.0",
		"^1.2.3": "1.2.3 1.9.9",
		"^1.2":   "1.2.0 1.2.3 1.9.9",
		// Tildes.
		"~0.0.0": stable,
		"~0.0":   "0.0.1 0.0.2",
		"~0.0.1": "0.0.1 0.0.2",
		"~1.2.3": "1.2.3",
		"~1.2":   "1.2.0 1.2.3",
		"~1":     "1.0.0 1.2.0 1.2.3 1.9.9",
		// Wildcards.
		"1.2.x":   "1.2.0 1.2.3",
		"1.2.*":   "1.2.0 1.2.3",
		"1.2.X":   "1.2.0 1.2.3",
		"X":       stable,
		">=1.2.*": "1.2.0 1.2.3 1.9.9 2.0.0",
		// Ranges with blanks, and in the form of the documentation.
		"1.2 - 1.9":                  "1.2.0 1.2.3 1.9.9",
		"1.2-1.9":                    "1.2.0 1.2.3 1.9.9",
		"1.2.3-4.5.6":                "1.2.3 1.9.9 2.0.0",
		"v1.2.3-v4.5.6":              "1.2.3 1.9.9 2.0.0",
		"1-2":                        "1.0.0 1.2.0 1.2.3 1.9.9 2.0.0",
		"1.2-1.9.9":                  "1.2.0 1.2.3 1.9.9",
		"0.0.1-0.0.2 || 1.2.3-1.9.9": "0.0.1 0.0.2 1.2.3 1.9.9",
		"0.0.1-2.0.0, !=1.2.3":       "0.0.1 0.0.2 0.1.0 0.2.0 1.0.0 1.2.0 1.9.9 2.0.0",
		"!=1.2.3,0.0.1-2.0.0":        "0.0.1 0.0.2 0.1.0 0.2.0 1.0.0 1.2.0 1.9.9 2.0.0",
		"1.0.0-1.2.0,!=1.0.0":        "1.2.0",
		// Prereleases that look like ranges.
		"4.5.6-1.2.3":    "",
		"1.2.3-alpha.1":  "1.2.3-alpha.1",
		">=1.2.3-4.5.6":  "1.2.3 1.9.9 2.0.0 2.0.0-rc.1 1.2.3-alpha.1 3.0.0-beta",
		">= 1.2.3-4.5.6": "1.2.3 1.9.9 2.0.0 2.0.0-rc.1 1.2.3-alpha.1 3.0.0-beta",
		"1.2.3-4":        "",
		// Comparisons.
		">=1.0.0 <2.0.0":         "1.0.0 1.2.0 1.2.3 1.9.9",
		">=1.2.3, <3.4.5 || 0.1": "0.1.0 1.2.3 1.9.9 2.0.0",
		"=1.2":                   "1.2.0 1.2.3",
		"=1.0.0":                 "1.0.0",
		">1.2.0":                 "1.2.3 1.9.9 2.0.0",
		"<1.2.0":                 "0.0.1 0.0.2 0.1.0 0.2.0 1.0.0",
		">=1.9.9":                "1.9.9 2.0.0",
		"<=0.1.0":                "0.0.1 0.0.2 0.1.0",
		"!=1.2.3":                "0.0.1 0.0.2 0.1.0 0.2.0 1.0.0 1.2.0 1.9.9 2.0.0",
		">0.0.0-0":               "0.0.1 0.0.2 0.1.0 0.2.0 1.0.0 1.2.0 1.2.3 1.9.9 2.0.0 2.0.0-rc.1 1.2.3-alpha.1 3.0.0-beta",
		// Exact versions.
		"1.2.3":                  "1.2.3",
		"  v1.2.3 ":              "1.2.3",
		"3.0.0-beta":             "3.0.0-beta",
		"1.2.3+build.7":          "",
		"3.0.0":                  "",
		"99999999.0.0.0":         "error",
		"latest":                 "error",
		"nonsense !":             "error",
		"1.2.3 ||":               "error",
		strings.Repeat("1", 300): "error",
	}
	for constraint, want := range tests {
		t.Run(constraint, func(t *testing.T) {
			var got []string
			for _, version := range shelf {
				ok, err := index.Satisfies(constraint, version)
				if err != nil {
					var failure *chart.Error
					if !errors.Is(err, chart.ErrBadConstraint) || !errors.As(err, &failure) || failure.Retry || failure.Reason != "BrokenChartSpec" {
						t.Fatalf("unexpected kind of error: %#v", err)
					}
					got = []string{"error"}
					break
				}
				if ok {
					got = append(got, version)
				}
			}
			if diff := cmp.Diff(want, strings.Join(got, " ")); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestSatisfiesByName(t *testing.T) {
	tests := []struct {
		constraint, version string
		want                bool
	}{
		{"1.2.3-4.5.6", "1.2.3-4.5.6", true},
		{"1.2.3+b1", "1.2.3+b1", true},
		{"1.2.3+b1", "v1.2.3+b1", true},
		{"1.2.3+b1", "1.2.3+b2", false},
		{"1.2.3", "1.2.3+b2", true},
		{"v1.2.3", "1.2.3", true},
		{"1.2", "1.2", true},
		{"~1.2", "v1.2.9", true},
		{"", "1.0.0-rc.1", false},
		{"", "banana", false},
		{"*", "banana", false},
	}
	for _, test := range tests {
		got, err := index.Satisfies(test.constraint, test.version)
		if err != nil || got != test.want {
			t.Errorf("Satisfies(%q, %q) = %v, %v, want %v", test.constraint, test.version, got, err, test.want)
		}
	}
}

func TestIsExact(t *testing.T) {
	tests := map[string]bool{
		"1.2.3": true, "v1.2.3": true, "1.2.3-rc.1": true, "1.2.3+b": true, "1.2.3-4": true, "4.5.6-1.2.3": true,
		"": false, "1.2": false, "=1.2.3": false, "~1.2.3": false, "1.2.x": false, "*": false, "1.2.3-4.5.6": false,
		"1.2-4.5": false, "latest": false, "1.2.3 ": false, "vv1.2.3": false, "01.2.3": false,
	}
	for version, want := range tests {
		if got := index.IsExact(version); got != want {
			t.Errorf("IsExact(%q) = %v, want %v", version, got, want)
		}
	}
}

// FuzzSatisfies looks for constraints that panic, and for exact versions that do not satisfy themselves.
func FuzzSatisfies(f *testing.F) {
	for _, constraint := range []string{
		"", "~0.0", "1.2.3-4.5.6", "1.2-4.5 || ^7", ">=1.2.3, <3.4.5 || 6.7.8", "- -", "1.2.3 - 4.5.6-7.8.9", "|| ||", ",", "=>", "v1-v2",
	} {
		f.Add(constraint, "1.2.3")
	}
	f.Fuzz(func(t *testing.T, constraint, version string) {
		ok, err := index.Satisfies(constraint, version)
		if err != nil && !errors.Is(err, chart.ErrBadConstraint) {
			t.Errorf("Satisfies(%q, %q): %v", constraint, version, err)
		}
		if ok && err != nil {
			t.Errorf("Satisfies(%q, %q) is true and an error", constraint, version)
		}
		if !index.IsExact(version) {
			return
		}
		if self, err := index.Satisfies(version, version); !self || err != nil {
			t.Errorf("%q does not satisfy itself: %v", version, err)
		}
	})
}
