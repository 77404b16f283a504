// SPDX-License-Identifier: Apache-2.0

// Package rollout rolls Applications out: it makes Releases of templates, chooses their clusters, makes their targets, and writes into
// these what the strategy requests, step by step. It aborts, trims history, and holds deletions that blocks forbid.
//
// A request is an Application: one worker does everything for it, because a rollout changes two Releases at a time. A pass reads
// (observe.go), plans (template.go: which Release the template asks for; clusters.go: which clusters Releases get and lose;
// releases.go: what the strategy asks of targets; all are pure),
// writes (applytemplate.go, applyreleases.go), and reports (applicationstatus.go, releasestatus.go, reportreleases.go, events.go).
//
// A pass plans by the cache. At its end it waits until the cache shows what it wrote (awaitCache), so the next pass cannot take an old
// version for a new one. Every write is refused if its object was changed since it was read. Before it creates or deletes a Release, and
// before the first write of the process to an Application, a pass compares the cache with the API server (confirm).
//
//	Application ─template─► Release ─placement─► annotation release.clusters ─count replicas─► three targets ─strategy─► complete
package rollout
