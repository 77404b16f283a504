// SPDX-License-Identifier: Apache-2.0

package printable_test

import (
	"testing"

	"shipper.dev/shipper/apis/rules/printable"
)

func TestTextsOfUsersDoNotControlTheTerminal(t *testing.T) {
	const evil = "no\r\x1b[2Jrollouts\a until\u202E yadirf\u009b31m\n\tnext \u2066line\u2069"
	if got, want := printable.OneLine(evil), "no [2Jrollouts until yadirf 31m next line"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := printable.OneLine("Zürich ▒ ✓ 東京"); got != "Zürich ▒ ✓ 東京" {
		t.Errorf("what prints became %q", got)
	}
}
