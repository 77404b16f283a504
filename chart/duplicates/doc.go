// SPDX-License-Identifier: Apache-2.0

// Package duplicates removes elements with the same key from lists of Kubernetes' own kinds: two environment variables of one name, two
// names for one port. The API server creates such objects, as for Helm and `kubectl create`, and refuses them in server-side apply. What
// is left has the same effect on containers. Lists that the API server never accepts are reported, by the path of the field.
package duplicates
