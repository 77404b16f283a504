// SPDX-License-Identifier: Apache-2.0

// Package selection reads the content of template.resources, and requests a pass of the Application when that changes. What becomes of it
// reconciler/rollout decides.
//
// Content is read from the API server and not from a cache. Objects that change meanwhile make another pass. Metadata watches of the
// selected kinds make passes: one for each kind in all namespaces where Shipper may list it there, and otherwise one for each kind and
// namespace. Of a namespace that is selected with its content, the watched kinds are the usual ones, those that were found when it was read
// last and CustomResourceDefinitions; an object of another kind is found when it is read next. Changed objects are read when nothing has
// changed for a second, or five seconds after the first change.
//
// Before anything is read, the API server is asked whether the user who chose the selectors (annotation app.selected-by) may still place
// it.
package selection
