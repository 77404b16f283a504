// SPDX-License-Identifier: Apache-2.0

package screen

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTable(t *testing.T) {
	head := []string{"BLOCK", "HOLDS", "WHY"}
	rows := [][]string{
		{"rollout-blocks-global/incident-4711", "until Fri 20 Nov 14:00 UTC, in 60m", "the load balancers are being looked at"},
		{"shop/x", "until it is lifted", "-"},
	}
	for sentence, tc := range map[string]struct {
		width int
		want  string
	}{
		"no terminal": {0, `BLOCK                                 HOLDS                                WHY
rollout-blocks-global/incident-4711   until Fri 20 Nov 14:00 UTC, in 60m   the load balancers are being looked at
shop/x                                until it is lifted                   -
`},
		"there is room": {200, `BLOCK                                 HOLDS                                WHY
rollout-blocks-global/incident-4711   until Fri 20 Nov 14:00 UTC, in 60m   the load balancers are being looked at
shop/x                                until it is lifted                   -
`},
		"there is little room": {80, `BLOCK                                 HOLDS                 WHY
rollout-blocks-global/incident-4711   until Fri 20 Nov      the load balancers
                                      14:00 UTC, in 60m     are being looked at
shop/x                                until it is lifted    -
`},
		"there is hardly any": {33, `BLOCK       HOLDS       WHY
rollout-b   until Fri   the load
locks-glo   20 Nov      balancers
bal/incid   14:00       are being
ent-4711    UTC, in     looked at
            60m
shop/x      until it    -
            is lifted
`},
	} {
		t.Run(sentence, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Table(tc.width, head, rows)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestFit(t *testing.T) {
	for text, want := range map[string]string{
		"a\nb\n":       home + "a" + clear + "\r\nb" + clear + rest,
		"a\nb\nc\nd\n": home + "a" + clear + "\r\nb" + clear + "\r\n… 2 lines more: the window is too low for them" + clear + rest,
	} {
		if diff := cmp.Diff(want, fit(text, 3)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	}
}

// TestCanvasGivesTheScreenBack and says nothing when nothing was drawn.
func TestCanvasGivesTheScreenBack(t *testing.T) {
	var out strings.Builder
	c := Open(&out)
	c.Close()
	if out.Len() > 0 {
		t.Errorf("nothing was drawn, and %q was written", out.String())
	}
	c = Open(&out)
	for _, text := range []string{"a", "a", "b"} {
		if err := c.Draw(text); err != nil {
			t.Fatal(err)
		}
	}
	c.Close()
	want := enter + home + "a" + clear + rest + home + "b" + clear + rest + leave
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestHang(t *testing.T) {
	const want = "  ! one two three four\n    five\n"
	if diff := cmp.Diff(want, Hang("  ! ", "one two three four five", 24)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if got := Hang("  ! ", "one  two", 0); got != "  ! one  two\n" {
		t.Errorf("%q", got)
	}
}
