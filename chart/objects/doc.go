// SPDX-License-Identifier: Apache-2.0

// Package objects has pure functions on the objects that Applications with template.resources place on clusters. The webhook, the
// reconciler and shipperctl use them, so that all three give the same answer.
//
//   - Policy refuses kinds and namespaces, and skips objects that another process makes in every cluster.
//   - Normalise returns what is placed of a live object: the part that a user wrote, as far as that can be known.
//   - Canonical identifies content. Split and Join store it in parts, Secrets apart from the rest.
//   - Unpack checks the manifests of an Envelope.
//   - SortForApply and CompareForRemoval order writes. Ready judges health by CEL. Summarise counts objects for messages.
//
// Content is stored as JSON lines: each object is one line of canonical JSON. Parts end at the ends of lines where that is possible. The
// text is not compressed, so that kubectl shows it and jq reads it.
package objects
