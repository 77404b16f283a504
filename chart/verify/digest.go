// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
)

var sha256Hex = regexp.MustCompile(`^[0-9a-f]{64}$`)

// DigestOf is the sha256 of an archive in hex.
func DigestOf(archive []byte) string {
	sum := sha256.Sum256(archive)
	return hex.EncodeToString(sum[:])
}

// IsDigest reports whether a text is a sha256 in hex.
func IsDigest(text string) bool { return sha256Hex.MatchString(text) }
