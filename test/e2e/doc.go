// SPDX-License-Identifier: Apache-2.0

// Package e2e proves whole stories on real control planes: Shipper's binaries run with the rights their Pod has, users write
// to the management cluster, and what is counted is counted in the application clusters. Its tests are numbered as the
// original Shipper's end-to-end scenarios were.
package e2e
