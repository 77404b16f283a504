// SPDX-License-Identifier: Apache-2.0

// Package rights says which rights are needed to place objects, and how a missing one is granted. The webhook asks for them when a user
// selects, the reconciler each time before it takes content.
package rights
