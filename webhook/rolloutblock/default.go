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

// stampAuthor completes an author that has no name with the one before, or with who asks.
func stampAuthor(a *response.Response, b, old *shipper.RolloutBlock, username string) {
	author := b.Spec.Author
	switch {
	case author.Name != "" && author.Type != "":
		return
	case b.Spec.Message == "": // there may be no spec to complete; the schema refuses it
		return
	case author.Name != "":
		author.Type = authorUser
	case old != nil && old.Spec.Author.Name != "":
		author = old.Spec.Author
	default:
		author = authorOf(username)
	}
	b.Spec.Author = author
	a.Set(author, "spec", "author")
}

// stampCreator writes down who creates the block, and keeps that as it is: an author is whom the block's maker names.
func stampCreator(a *response.Response, b, old *shipper.RolloutBlock, username string) {
	creator := username
	if old != nil {
		creator = old.Annotations[shipper.RolloutBlockCreatedByAnnotation]
	}
	switch {
	case b.Spec.Message == "": // there may be no spec; the schema refuses it
	case b.Annotations[shipper.RolloutBlockCreatedByAnnotation] == creator:
	case creator == "": // a block of before this was noted
		a.Unannotate(&b.ObjectMeta, shipper.RolloutBlockCreatedByAnnotation)
	default:
		a.Annotate(&b.ObjectMeta, shipper.RolloutBlockCreatedByAnnotation, creator)
	}
}

func authorOf(username string) shipper.RolloutBlockAuthor {
	if account, ok := strings.CutPrefix(username, serviceAccountPrefix); ok {
		return shipper.RolloutBlockAuthor{Type: authorServiceAccount, Name: strings.Replace(account, ":", "/", 1)}
	}
	return shipper.RolloutBlockAuthor{Type: authorUser, Name: username}
}
