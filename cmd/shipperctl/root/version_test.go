// SPDX-License-Identifier: Apache-2.0

package root

import (
	"runtime/debug"
	"testing"
)

func TestBuiltOfWhat(t *testing.T) {
	set := func(pairs ...string) (out []debug.BuildSetting) {
		for i := 0; i < len(pairs); i += 2 {
			out = append(out, debug.BuildSetting{Key: pairs[i], Value: pairs[i+1]})
		}
		return out
	}
	for sentence, tc := range map[string]struct {
		info debug.BuildInfo
		want string
	}{
		"a release": {
			debug.BuildInfo{
				GoVersion: "go1.26.8", Main: debug.Module{Version: "v1.2.3"}, Settings: set("vcs.revision", "5f0a", "vcs.modified", "false"),
			},
			"v1.2.3, revision 5f0a, go1.26.8",
		},
		"a checkout with edits": {
			debug.BuildInfo{
				Main:     debug.Module{Version: "(devel)"},
				Settings: set("vcs.revision", "5f0a", "vcs.time", "2026-11-20T13:00:00Z", "vcs.modified", "true"),
			},
			"(devel), revision 5f0a with changes of 2026-11-20T13:00:00Z",
		},
		"a build without a repository": {debug.BuildInfo{GoVersion: "go1.26.8"}, "of unknown version, go1.26.8"},
	} {
		if got := builtFrom(&tc.info).String(); got != tc.want {
			t.Errorf("%s: %s", sentence, got)
		}
	}
}
