// SPDX-License-Identifier: Apache-2.0

// Package release rolls Releases out: it chooses their clusters, makes their targets, and asks of these what the
// strategy wants, step by step.
//
// Requests are Applications: one pass is over all Releases of one, because a rollout moves two of them. A pass reads
// everything (observe.go), plans (plan.go, apis/rules/strategy), writes (apply.go) and tells (tell.go, status.go,
// events.go). What a pass wants to write it plans once more before it writes, when it has made sure that the caches are
// not late: they may show a target as ready that was asked for something else meanwhile (history.Reader.Confirmed). What is only
// under way is told when it lasts for two seconds, and then less and less often (report.Pace).
//
//	no clusters ─choose─► annotation release.clusters ─count replicas─► three targets ─strategy─► complete
package rollout
