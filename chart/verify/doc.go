// SPDX-License-Identifier: Apache-2.0

// Package verify checks that an archive is the pinned one, by its digest, and that a trusted key signed it, by the provenance file
// (.prov) that `helm package --sign` writes. It makes no requests: package repository fetches the provenance and the keys.
package verify
