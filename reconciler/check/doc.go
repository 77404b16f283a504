// SPDX-License-Identifier: Apache-2.0

// Package check makes the checks that CheckTargets list, each in its turn, and writes what came of them into their status.
//
// One key is one check in one cluster: a server that is slow delays that check alone. Measurements are kept in memory and written at
// once when a check is decided, and otherwise every 30 seconds. A process that ends loses the measurements since then, which are made
// again; none is made up. A measurement in a cluster that is lost does not count.
package check
