// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestPicturesAreDrawnFromTheirSource fails for a picture whose source was edited and not drawn again: make pictures.
func TestPicturesAreDrawnFromTheirSource(t *testing.T) {
	sources, err := filepath.Glob(filepath.Join(root, "docs/pictures/*.pikchr"))
	if err != nil || len(sources) < 5 {
		t.Fatalf("%d sources of pictures were found: %v", len(sources), err)
	}
	for _, source := range sources {
		text, err := os.ReadFile(source)
		if err != nil {
			t.Fatal(err)
		}
		picture, err := os.ReadFile(strings.TrimSuffix(source, ".pikchr") + ".svg")
		if err != nil {
			t.Fatal(err)
		}
		if want := fmt.Sprintf("<desc>source: %x</desc>", sha256.Sum256(text)); !strings.Contains(string(picture), want) {
			t.Errorf("%s was edited and not drawn again: make pictures", source)
		}
	}
}
