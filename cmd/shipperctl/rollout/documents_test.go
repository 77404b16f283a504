// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// update has the screens in documents written instead of compared: go test ./cmd/shipperctl/rollout -run Documents -update.
var update = flag.Bool("update", false, "write the screens into the documents")

// shown is a screen in a document: the comment before it says of what, and after the command is what the tool draws.
var shown = regexp.MustCompile("(?ms)(^<!-- screen: ([^\n]*) -->\n(?:<!--[^\n]*\n)*```console\n\\$ [^\n]*\n)(.*?)(^```)")

// TestScreensOfDocuments compares the screens that documents show with what is drawn, on a terminal of 80 columns.
func TestScreensOfDocuments(t *testing.T) {
	time.Local = time.UTC
	views := map[string]*View{"canary": canary(), "checks": soaking()}
	documents, err := filepath.Glob("../../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, name := range append(documents, "../../../README.md") {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		drawn := shown.ReplaceAllStringFunc(string(text), func(part string) string {
			parts := shown.FindStringSubmatch(part)
			seen++
			if views[parts[2]] == nil {
				t.Errorf("%s: there is no view %q", name, parts[2])
				return part
			}
			return parts[1] + views[parts[2]].Screen(80, now) + parts[4]
		})
		if *update && drawn != string(text) {
			if err := os.WriteFile(name, []byte(drawn), 0o600); err != nil {
				t.Fatal(err)
			}
		} else if diff := cmp.Diff(string(text), drawn); diff != "" {
			t.Errorf("%s shows what is not drawn; with -update it is written anew (-shown +drawn):\n%s", name, diff)
		}
	}
	if seen < 2 {
		t.Errorf("only %d screens were found", seen)
	}
}
