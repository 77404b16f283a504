// SPDX-License-Identifier: Apache-2.0

// Package member does the work in application clusters. Each cluster has a queue and workers of its own, so that one that hangs delays
// no other. A pass is about one Key: what one InstallationTarget installs in one cluster, or the Pods of one Application there. The two
// are apart because writes of a chart's objects may wait for webhooks of the cluster, and Pods must not wait for those.
//
// The outcome of a pass is kept in memory (targetstatus.Results), from which the status of the target is written.
package member
