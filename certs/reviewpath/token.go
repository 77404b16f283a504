// SPDX-License-Identifier: Apache-2.0

package reviewpath

import (
	"crypto/rand"
	"regexp"
	"strings"
)

// isToken matches tokens: 26 characters with 5 bits each.
var isToken = regexp.MustCompile(`^[a-z2-7]{26}$`).MatchString

// NewToken returns a random token.
func NewToken() string { return strings.ToLower(rand.Text()) }

// Split splits the path, or the URL, of a webhook into what precedes the token, the token, and the rest, such as
// /validate-application. The token is empty if there is none.
func Split(path string) (base, token, hook string) {
	i := strings.LastIndexByte(path, '/')
	if i < 0 {
		return "", "", path
	}
	base, hook = path[:i], path[i:]
	j := strings.LastIndexByte(base, '/')
	if j < 0 || !isToken(base[j+1:]) || strings.HasSuffix(base[:j], "/") { // the host of a URL is no token
		return base, "", hook
	}
	return base[:j], base[j+1:], hook
}

// HookOf returns the path without a token of a webhook by its name, such as /validate-application for
// collected.application.shipper.booking.com. The manifests have no paths: what they lack, no tool resets. It is empty for a name that is
// not Shipper's.
func HookOf(name string) string {
	name, ours := strings.CutSuffix(strings.TrimPrefix(name, "collected."), ".shipper.booking.com")
	kind, mutates := strings.CutPrefix(name, "mutate.")
	switch {
	case !ours || strings.Contains(kind, "."):
		return ""
	case mutates:
		return "/mutate-" + kind
	}
	return "/validate-" + kind
}

// With returns the path, or the URL, of a webhook with another token, which may be empty.
func With(path, token string) string {
	base, _, hook := Split(path)
	if token == "" {
		return base + hook
	}
	return base + "/" + token + hook
}
