// SPDX-License-Identifier: Apache-2.0

package pod

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestWhoBuildsReadsTheCode is about packages of tests: `go test` would report one that builds as passed, from its cache, when the code of
// the binaries is another one.
func TestWhoBuildsReadsTheCode(t *testing.T) {
	builds, reads := map[string]bool{}, map[string]bool{}
	err := filepath.WalkDir(filepath.Join("..", ".."), func(file string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() && entry.Name() == ".git" {
			return filepath.SkipDir
		}
		if err != nil || !strings.HasSuffix(file, "_test.go") {
			return err
		}
		text, err := os.ReadFile(file)
		folder := filepath.ToSlash(filepath.Dir(file))
		builds[folder] = builds[folder] || strings.Contains(string(text), "pod.Build(") || strings.Contains(string(text), "Binaries:")
		reads[folder] = reads[folder] || strings.Contains(string(text), "pod.ReadCode(t")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for folder := range builds {
		if builds[folder] && !reads[folder] {
			t.Errorf("%s builds binaries and has no test that calls pod.ReadCode", folder)
		}
	}
	if !builds["../../test/e2e"] {
		t.Error("test/e2e builds no binaries: this test looks for the wrong words")
	}
}
