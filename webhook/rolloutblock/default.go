// SPDX-License-Identifier: Apache-2.0

package rolloutblock

import (
	"strings"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/webhook/response"
)

// Types of authors that are stamped.
const (
	authorUser           = "user"
	authorServiceAccount = "serviceaccount"
)

// serviceAccountPrefix begins the user names of service accounts: namespace and name follow, separated by a colon.
const serviceAccountPrefix = "system:serviceaccount:"

// stampAuthor sets an author without a name to the previous one, or to the user.
func stampAuthor(b, old *shipper.RolloutBlock, username string) {
	author := b.Spec.Author
	switch {
	case author.Name != "" && author.Type != "":
		return
	case b.Spec.Message == "": // the spec may be missing; the schema refuses that
		return
	case author.Name != "":
		author.Type = authorUser
	case old != nil && old.Spec.Author.Name != "":
		author = old.Spec.Author
	default:
		author = authorOf(username)
	}
	b.Spec.Author = author
}

// stampCreator records the user who creates the block, and protects the record: any author can be claimed in spec.author.
func stampCreator(b, old *shipper.RolloutBlock, username string) {
	creator := username
	if old != nil {
		creator = old.Annotations[shipper.RolloutBlockCreatedByAnnotation]
	}
	switch {
	case b.Spec.Message == "": // the spec may be missing; the schema refuses that
	case b.Annotations[shipper.RolloutBlockCreatedByAnnotation] == creator:
	case creator == "": // the original records no creator
		delete(b.Annotations, shipper.RolloutBlockCreatedByAnnotation)
	default:
		response.Annotate(&b.ObjectMeta, shipper.RolloutBlockCreatedByAnnotation, creator)
	}
}

func authorOf(username string) shipper.RolloutBlockAuthor {
	if account, ok := strings.CutPrefix(username, serviceAccountPrefix); ok {
		return shipper.RolloutBlockAuthor{Type: authorServiceAccount, Name: strings.Replace(account, ":", "/", 1)}
	}
	return shipper.RolloutBlockAuthor{Type: authorUser, Name: username}
}
