// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestTroubleshootingKnowsEveryReason fails for reasons of conditions that are not among the symptoms.
func TestTroubleshootingKnowsEveryReason(t *testing.T) {
	text := func(name string) string {
		content, err := os.ReadFile(filepath.Join(root, "docs", name))
		if err != nil {
			t.Fatal(err)
		}
		return string(content)
	}
	_, reasons, found := strings.Cut(text("api.md"), "\n## Reasons of conditions\n")
	if !found {
		t.Fatal("docs/api.md lists no reasons")
	}
	reasons, _, _ = strings.Cut(reasons, "\n## ")
	all := regexp.MustCompile("(?m)^\\| (`[A-Za-z]+`) \\|").FindAllStringSubmatch(reasons, -1)
	if len(all) < 30 {
		t.Fatalf("only %d reasons were found", len(all))
	}
	known := text("troubleshooting.md")
	for _, reason := range all {
		if !strings.Contains(known, reason[1]) {
			t.Errorf("docs/troubleshooting.md does not list %s", reason[1])
		}
	}
}

// TestLinksLeadSomewhere checks the links between documents, and those to chapters.
func TestLinksLeadSomewhere(t *testing.T) {
	link := regexp.MustCompile(`\]\(([\w./:?=&%#-]+)\)`)
	for _, p := range append(pages(t), page{name: "CONTRIBUTING.md"}) {
		text, err := os.ReadFile(filepath.Join(root, p.name))
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range link.FindAllStringSubmatch(string(text), -1) {
			path, chapter, _ := strings.Cut(match[1], "#")
			if strings.Contains(path, "://") {
				continue
			}
			to := filepath.Join(root, filepath.Dir(p.name), path)
			if path == "" {
				to = filepath.Join(root, p.name)
			}
			if _, err := os.Stat(to); err != nil {
				t.Errorf("%s: there is no %s", p.name, match[1])
			} else if chapter != "" && !chapters(t, to)[chapter] {
				t.Errorf("%s: there is no chapter %s", p.name, match[1])
			}
		}
	}
}

// chapters returns the fragments of the headings of a document.
func chapters(t *testing.T, name string) map[string]bool {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]bool{}
	for _, heading := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(string(text), -1) {
		plain := regexp.MustCompile(`[^\p{L}\p{N} _-]`).ReplaceAllString(strings.ToLower(heading[1]), "")
		out[strings.ReplaceAll(plain, " ", "-")] = true
	}
	return out
}
