// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

func TestADiffNamesTheOverridesThatDiffer(t *testing.T) {
	copyOf := func(name, kind string, mandatory bool) shipper.ReleaseOverride {
		return shipper.ReleaseOverride{
			Name: name, Mandatory: mandatory, Resources: []shipper.OverriddenResource{{Kind: kind}}, Rules: []shipper.OverrideRule{{Delete: true}},
		}
	}
	a, b, c := copyOf("work/a", "Secret", false), copyOf("work/b", "Secret", false), copyOf("global/c", "Secret", true)
	edited, written := copyOf("work/a", "ConfigMap", false), a
	written.RequestedBy = "ann"
	digest := func(o shipper.ReleaseOverride) string { return overrideDigest(&o)[:8] }
	const head = "ResourceOverrides of web-0 and web-1 (the digests are of the copies in the releases):\n"
	for sentence, tc := range map[string]struct {
		before, after []shipper.ReleaseOverride
		want          string
	}{
		"the same":                   {[]shipper.ReleaseOverride{a, c}, []shipper.ReleaseOverride{a, c}, ""},
		"the same of another author": {[]shipper.ReleaseOverride{a}, []shipper.ReleaseOverride{written}, ""},
		"none":                       {nil, nil, ""},
		"one added, one removed": {
			[]shipper.ReleaseOverride{b}, []shipper.ReleaseOverride{c},
			head + "- work/b " + digest(b) + "\n+ global/c (mandatory) " + digest(c) + "\n",
		},
		"one edited, another as before": {
			[]shipper.ReleaseOverride{a, b}, []shipper.ReleaseOverride{edited, b},
			head + "~ work/a " + digest(edited) + ", before " + digest(a) + "\n",
		},
		"another order": {
			[]shipper.ReleaseOverride{a, b}, []shipper.ReleaseOverride{b, a},
			head + "~ work/a " + digest(a) + ", applied in another order\n~ work/b " + digest(b) + ", applied in another order\n",
		},
		"the same order behind one that is added": {
			[]shipper.ReleaseOverride{b}, []shipper.ReleaseOverride{a, b}, head + "+ work/a " + digest(a) + "\n",
		},
	} {
		if diff := cmp.Diff(tc.want, overrideText("web-0", "web-1", overrideChanges(tc.before, tc.after))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", sentence, diff)
		}
	}
}

func TestAStatusHasALineOfOverrides(t *testing.T) {
	o := exampleObserved()
	rel := o.releases[1]
	for i := range 6 {
		rel.Spec.Overrides = append(rel.Spec.Overrides, shipper.ReleaseOverride{Name: fmt.Sprintf("shop/o%d", i), Mandatory: i == 1})
	}
	p := viewOf(o, now)
	const want = "shop/o0, shop/o1 (mandatory), shop/o2, shop/o3 and 2 more"
	if text := p.Screen(120, now); !strings.Contains(text, "\noverrides  "+want+"\n") {
		t.Errorf("the screen:\n%s", text)
	}
	if text := p.Lines(now); !strings.Contains(text, "\noverrides: "+want+"\n") {
		t.Errorf("the lines:\n%s", text)
	}
	if rel.Spec.Overrides = nil; strings.Contains(viewOf(o, now).Screen(120, now), "overrides") {
		t.Error("a Release without overrides has a line of them")
	}
}
