// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"testing"
)

func TestPatchIf(t *testing.T) {
	const test = `{"op":"test","path":"/metadata/generation","value":3}`
	for sentence, tc := range map[string]struct {
		value any
		want  string
	}{
		"sets":    {"DNS", `[` + test + `,{"op":"add","path":"/spec/hold","value":"DNS"}]`},
		"removes": {nil, `[` + test + `,{"op":"remove","path":"/spec/hold"}]`},
	} {
		patch, err := PatchIf("/spec/hold", tc.value, "/metadata/generation", 3)
		if err != nil {
			t.Fatal(err)
		}
		if data, err := patch.Data(nil); err != nil || string(data) != tc.want {
			t.Errorf("it %s: %s, %v", sentence, data, err)
		}
	}
}
