// SPDX-License-Identifier: Apache-2.0

package stamp

import "testing"

func TestApplicationName(t *testing.T) {
	for release, want := range map[string]string{
		"super-server-6f19aa85-0": "super-server", "app-cafe-12": "app", "a-b": "a", "alone": "alone", "": "", "-1": "-1",
	} {
		if got := ApplicationName(release); got != want {
			t.Errorf("of %q: %q, want %q", release, got, want)
		}
	}
}
