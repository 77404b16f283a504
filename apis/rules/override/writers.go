// SPDX-License-Identifier: Apache-2.0

package override

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

const (
	// MaxWriters bounds the users that a ResourceOverride names beside its author. The CRD of Releases has the same bound.
	MaxWriters = 20
	// maxWritersLength bounds their names together, in characters.
	maxWritersLength = 4096
)

// EarlierWriters are the users who have written a ResourceOverride before its author did.
func EarlierWriters(o *shipper.ResourceOverride) []string {
	text := o.Annotations[shipper.OverrideEarlierWritersAnnotation]
	if text == "" {
		return nil
	}
	return strings.Split(text, "\n")
}

// RecordWriters is OverrideEarlierWritersAnnotation after a write of the spec by a user; empty for none. No name leaves the list while the
// ResourceOverride exists: what that user has written may still be in it, unread by later ones. old is nil on creation.
func RecordWriters(old *shipper.ResourceOverride, user string) string {
	if old == nil {
		return ""
	}
	var out []string
	for _, name := range append(EarlierWriters(old), old.Annotations[shipper.OverrideRequestedByAnnotation]) {
		if name != "" && name != user && !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return strings.Join(out, "\n")
}

// CheckWriters returns why a Release cannot copy the names of those who have written a ResourceOverride; nil if it can.
func CheckWriters(o *shipper.ResourceOverride) error {
	author, earlier := o.Annotations[shipper.OverrideRequestedByAnnotation], EarlierWriters(o)
	long := func(name string) bool { return utf8.RuneCountInString(name) > MaxAuthor }
	switch {
	case long(author), slices.ContainsFunc(earlier, long):
		return fmt.Errorf("each Release copies the author's name, in at most %d characters: write it as a user with a shorter name, such as "+
			"a ServiceAccount", MaxAuthor)
	case strings.Contains(author, "\n"):
		return errors.New("the author's name has a line break: write it as another user, such as a ServiceAccount")
	case len(earlier) > MaxWriters, utf8.RuneCountInString(strings.Join(earlier, "\n")) > maxWritersLength:
		return fmt.Errorf("%d other users have written it, and each Release copies at most %d names with %d characters: create it anew "+
			"(kubectl replace --force), and you are its only author", len(earlier), MaxWriters, maxWritersLength)
	}
	return nil
}
