// SPDX-License-Identifier: Apache-2.0

package lots

import (
	"fmt"
	"hash/fnv"
	"strings"
)

const (
	// MaxLabel bounds names that Kubernetes or an operator puts into the value of a label.
	MaxLabel = 63
	// maxName bounds other names.
	maxName = 253
	// maxSuffix bounds suffixes, so that at least half of a name stays readable.
	maxSuffix = 24
)

// Suffix is what the name of a Release adds to that of its Application: `-6f19aa85-0`. A Release of another name, or one of a very long
// suffix, gets a hash of its name.
func Suffix(of Release) string {
	rest, found := strings.CutPrefix(of.Name, of.App)
	if found && len(rest) > 1 && rest[0] == '-' && len(rest) <= maxSuffix && !strings.Contains(rest, ".") {
		return rest
	}
	return "-" + hash(of.Name)
}

// Name is a name with a suffix, of at most most bytes. A name that is too long is cut, and gets a hash of the whole.
func Name(name, suffix string, most int) string {
	if len(name)+len(suffix) <= most {
		return name + suffix
	}
	short := "-" + hash(name)
	return strings.TrimRight(name[:max(most-len(short)-len(suffix), 0)], "-.") + short + suffix
}

// hash is the FNV-1 hash that names of Releases have, of eight digits.
func hash(s string) string {
	h := fnv.New32()
	h.Write([]byte(s))
	return fmt.Sprintf("%08x", h.Sum32())
}
