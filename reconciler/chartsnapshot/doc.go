// SPDX-License-Identifier: Apache-2.0

// Package chartsnapshot keeps what Releases are rendered from in the management cluster, so that a Release can be rendered again,
// the same, when its repository is gone or says otherwise: in ChartSnapshots, one for each namespace and digest, that belong
// to the Releases made of them and are collected with the last one. A Release whose chart came without a digest is pinned
// to that of the first archive that was kept for it.
package chartsnapshot
