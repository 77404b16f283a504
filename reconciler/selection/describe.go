// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"encoding/json"
	"fmt"
	"strings"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

const (
	// maxMessage bounds the message of the condition.
	maxMessage = 4096
	// maxNotes bounds the objects that a message names as not taken.
	maxNotes = 5
)

// describe says what content is: `14 objects: 1 Namespace, …, digest abcdef012345`.
func describe(c *content) string {
	out := fmt.Sprintf("%s, digest %s", c.summary, short(c.digest))
	notes := c.notes
	if rest := len(notes) - maxNotes; rest > 0 {
		notes = append(notes[:maxNotes:maxNotes], fmt.Sprintf("and %d more", rest))
	}
	if len(notes) > 0 {
		out += "; " + strings.Join(notes, ", ")
	}
	return out
}

// short is the beginning of a digest, for messages.
func short(digest string) string { return digest[:min(len(digest), 12)] }

// chooser names the user that chose the selectors.
func chooser(app *shipper.Application) string {
	var selector shipper.Selector
	if json.Unmarshal([]byte(app.Annotations[shipper.AppSelectedByAnnotation]), &selector) != nil || selector.Username == "" {
		return "an unknown user"
	}
	return "user " + selector.Username
}
