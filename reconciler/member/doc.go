// SPDX-License-Identifier: Apache-2.0

// Package member does the work in application clusters. Each cluster has a queue and workers of its own, so that one that hangs delays
// no other. A pass is about one Key: what one Application has installed in one cluster, or its Pods there. The two are apart because
// writes of a chart's objects may wait for webhooks of the cluster, and Pods must not wait for those. Passes of a Key are made one after
// the other.
//
// Events and retries name the targets that the next pass is about (due.go). So an event or an error of one target causes no request about
// another, and targets that are due together are worked on side by side.
//
// The outcome of a pass is kept in memory (targetstatus.Results), from which the status of the target is written.
package member
