// SPDX-License-Identifier: Apache-2.0

package rights

// Place on any resource is the verb that permits placing its objects on clusters. On namespaces it covers all content.
const Place = "place"

// Action is what a user wants to do to objects of any kind.
type Action struct {
	Verb string
	// Group is empty for the core group. Resource is the plural; `*` is all.
	Group, Resource string
	// Namespace is empty for objects without one, and for all namespaces. Name is empty for all objects.
	Namespace, Name string
}
