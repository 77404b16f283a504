// SPDX-License-Identifier: Apache-2.0

package block

import (
	"testing"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// FuzzOverridesOf parses any override annotation and any records: every override is in the annotation, and formatting and
// parsing again gives the same result.
func FuzzOverridesOf(f *testing.F) {
	f.Add("a/b,c/d", `[{"block":"a/b","uid":"x","user":"ann","time":"2026-11-21T12:00:00Z","reason":"why"}]`)
	f.Add("a/b", `[{"block":"A/b"},{"block":"a/b","uid":"y"},{"block":"a/b","uid":"z"}]`)
	f.Add(" b/a , ,b/a", `{}`)
	f.Add("a/b/c", `null`)
	f.Fuzz(func(t *testing.T, override, stamp string) {
		annotations := map[string]string{
			shipper.RolloutBlockOverrideAnnotation: override, shipper.RolloutBlockOverrideStampAnnotation: stamp,
		}
		names, err := ParseOverrides(override)
		overrides, records := Overrides(annotations), Records(annotations)
		if err != nil && len(overrides) > 0 {
			t.Fatalf("%q is malformed and overrides %v", override, overrides)
		}
		if err == nil && len(overrides) != len(names) {
			t.Fatalf("%q names %v and overrides %v", override, names, overrides)
		}
		for i, o := range overrides {
			if r, noted := Recorded(records, o.Name); o.Name != names[i] || noted && o.UID != r.UID || !noted && o.UID != "" {
				t.Fatalf("%q with %q overrides %v", override, stamp, o)
			}
		}
		annotations[shipper.RolloutBlockOverrideStampAnnotation] = FormatRecords(records)
		if again := Records(annotations); FormatRecords(again) != FormatRecords(records) {
			t.Fatalf("%v is read again as %v", records, again)
		}
	})
}
