// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
)

// sha256Hex matches a digest.
var sha256Hex = regexp.MustCompile(`^[0-9a-f]{64}$`)

// digestOf is the sha256 of an archive in hex.
func digestOf(archive []byte) string {
	sum := sha256.Sum256(archive)
	return hex.EncodeToString(sum[:])
}
