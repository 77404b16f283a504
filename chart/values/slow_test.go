// SPDX-License-Identifier: Apache-2.0

package values

import (
	"bytes"
	"crypto/pbkdf2"
	"crypto/sha256"
	"fmt"
	"testing"
)

func TestSumsOfSecretsAreRememberedAndNotMixedUp(t *testing.T) {
	for _, tc := range []struct{ secret, salt string }{
		{"s3cret", "team/web/Secret one"}, {"s3cret", "team/web/Secret two"}, {"other", "team/web/Secret one"}, {"", "team/web/Secret one"},
	} {
		want, err := pbkdf2.Key(sha256.New, tc.secret, []byte(tc.salt), guessing, sha256.Size)
		if err != nil {
			t.Fatal(err)
		}
		for _, when := range []string{"first", "again"} {
			if got, err := slowSum([]byte(tc.secret), tc.salt); err != nil || !bytes.Equal(got, want) {
				t.Errorf("%s, of %q with %q: %x (%v), want %x", when, tc.secret, tc.salt, got, err, want)
			}
		}
	}
}

func BenchmarkSlowSum(b *testing.B) {
	n := 0
	b.Run("made", func(b *testing.B) {
		for b.Loop() {
			n++
			if _, err := slowSum(fmt.Append(nil, n), "salt"); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("remembered", func(b *testing.B) {
		for b.Loop() {
			if _, err := slowSum([]byte("s3cret"), "salt"); err != nil {
				b.Fatal(err)
			}
		}
	})
}
