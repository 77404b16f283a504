// SPDX-License-Identifier: Apache-2.0

// Package selection takes the content of template.resources: it reads the selected objects, stores them as ResourceSnapshots, and pins the
// template to their digest.
//
// A pass reads from the API server and not from a cache, and pins only what it has read and stored. Objects that change during a pass make
// another pass. Metadata watches of the selected kinds make passes: one for each kind in all namespaces where Shipper may list it there,
// and otherwise one for each kind and namespace. Of a namespace that is selected with its content, the watched kinds are the usual ones,
// those that were found at the last pass and CustomResourceDefinitions; an object of another kind is found by the next pass. A pass for
// changed objects begins when nothing has changed for a second, or five seconds after the first change.
//
// A pin is a patch of the Application, which the webhook admits: it checks RolloutBlocks and the rights of the user who chose the
// selectors.
package selection
