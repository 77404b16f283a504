// SPDX-License-Identifier: Apache-2.0

package cli

import "testing"

// TestKey keeps what is given as shop/web from being another namespace's web.
func TestKey(t *testing.T) {
	for arg, want := range map[string]string{
		"web":                                 "here/web",
		"app/web":                             "here/web",
		"applications/web":                    "here/web",
		"application.shipper.booking.com/web": "here/web",
		"shop/web":                            "shop/web",
		"a/b/c":                               "a/b/c", // which the client refuses
	} {
		if got := ApplicationKey("here", arg).String(); got != want {
			t.Errorf("%s is %s, want %s", arg, got, want)
		}
	}
}
