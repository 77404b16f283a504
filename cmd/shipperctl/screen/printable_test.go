// SPDX-License-Identifier: Apache-2.0

package screen

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestTextsOfUsersDoNotControlTheTerminal(t *testing.T) {
	const evil = "no\r\x1b[2Jrollouts\a until\u202E yadirf\u009b31m\n\tnext \u2066line\u2069"
	if got, want := Printable(evil), "no  [2Jrollouts  until  yadirf 31m\n\tnext  line "; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := Printable("Zürich ▒ ✓ 東京"); got != "Zürich ▒ ✓ 東京" {
		t.Errorf("what prints became %q", got)
	}
	var drawn bytes.Buffer
	if err := Open(&drawn).Draw("blocked: " + evil); err != nil || strings.ContainsAny(drawn.String(), "\a\u202E\u009b") {
		t.Errorf("%v, drawn: %q", err, drawn.String())
	}
}

func TestFilesGetWhatThereIs(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out.yaml")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	const text = "direction: \"\u202E\"\n"
	if n, err := Onto(file).Write([]byte(text)); n != len(text) || err != nil {
		t.Errorf("%d bytes written, %v", n, err)
	}
	if got, err := os.ReadFile(path); string(got) != text || err != nil {
		t.Errorf("the file has %q, %v", got, err)
	}
}
