// SPDX-License-Identifier: Apache-2.0

package pod

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestBuildUsesWhatWasBuiltBefore(t *testing.T) {
	before, dir := t.TempDir(), t.TempDir()
	t.Setenv(built, before)
	if err := os.WriteFile(filepath.Join(before, "shipperctl"), []byte("built before"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := Build(t.Context(), dir, "shipperctl"); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "shipperctl")); err != nil || string(text) != "built before" {
		t.Errorf("it has %q: %v", text, err)
	}
	if err := Build(t.Context(), dir, "shipper-webhook"); err == nil || !strings.Contains(err.Error(), built) {
		t.Errorf("a binary that is missing: %v", err)
	}
}
