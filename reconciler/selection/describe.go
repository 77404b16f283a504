// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"fmt"
	"strings"
)

// maxNotes bounds the objects that a message names as not taken.
const maxNotes = 5

// describe describes content by a summary of its objects, its digest, and notes on what is not taken.
func describe(summary, digest string, notes []string) string {
	out := fmt.Sprintf("%s, digest %s", summary, Short(digest))
	if rest := len(notes) - maxNotes; rest > 0 {
		notes = append(notes[:maxNotes:maxNotes], fmt.Sprintf("and %d more", rest))
	}
	if len(notes) > 0 {
		out += "; " + strings.Join(notes, ", ")
	}
	return out
}

// Short is the beginning of a digest, for messages.
func Short(digest string) string { return digest[:min(len(digest), 12)] }
