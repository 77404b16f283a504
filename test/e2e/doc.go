// SPDX-License-Identifier: Apache-2.0

// Package e2e runs Shipper's binaries on real control planes with the rights that their Pod has. Users write to the
// management cluster; the tests count objects in the application clusters. Numbered tests have the numbers of the original's
// end-to-end scenarios; requests that are refused (2 to 4, 6, 7) are test/admission's, and docs/compatibility.md says of which test the
// missing numbers are a part.
package e2e
