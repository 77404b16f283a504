// SPDX-License-Identifier: Apache-2.0

package traffic

import "testing"

func TestAReleaseServesUntilTheOneThatReplacesItHasItsPods(t *testing.T) {
	var gone, full, lacks = Share{}, Share{Weighs: true, Ready: true}, Share{Weighs: true, Lacks: true, Ready: true}
	for sentence, tc := range map[string]struct {
		shares []Share // the oldest first
		of     int
		want   bool
	}{
		"it is alone":            {[]Share{lacks}, 0, false},
		"a newer one lacks Pods": {[]Share{full, lacks}, 0, true},
		"an older one lacks Pods, as after a restore":      {[]Share{lacks, full}, 1, true},
		"one without a weight lacks Pods":                  {[]Share{full, {Lacks: true}}, 0, false},
		"a broken one is replaced by a newer one":          {[]Share{gone, lacks, full}, 0, false},
		"a broken one is replaced, and so may go":          {[]Share{lacks, lacks, full}, 1, false},
		"what replaces a broken one lacks Pods, too":       {[]Share{gone, lacks, lacks}, 0, true},
		"an older one lacks Pods beside the newest itself": {[]Share{full, lacks, full}, 2, true},
		"what replaces a broken one is to have no Pods":    {[]Share{gone, lacks, {Weighs: true}}, 0, true},
		"the newest of three lacks Pods":                   {[]Share{full, full, lacks}, 0, true},
	} {
		if got := KeepsServing(tc.of, tc.shares); got != tc.want {
			t.Errorf("%s: %t, want %t", sentence, got, tc.want)
		}
	}
}
