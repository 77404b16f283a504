// SPDX-License-Identifier: Apache-2.0

// Package simulation runs whole rollouts in virtual time and disturbs them: processes are killed at writes, connections break, and laws
// are judged at every change that an API server stores.
//
//	          users ──┐                                       ┌── Story: what they do
//	                  ▼                                       │
//	reconciler ──► Network ──► API servers in memory ──► laws ┴── Outcome: broken laws, ends, History
//	(1 or 2)          ▲           │ reviews
//	                  │           ▼
//	                Plan       webhook (1 to 3), with the rules of manifests/webhook
//	          faults and kills
//
// A run is a bubble of testing/synctest (time passes when all goroutines wait) with the real reconciler (reconciler/process), the real
// webhook and the servers of test/memory. Requests are calls of handlers, delayed by up to 3 ms that depend on the seed, the process, the
// request and how often it was made. So a fault does not shift the time of everything after it.
//
// A Plan is plain data: kills by the number of a write, and Faults by virtual time. Draw makes that of a seed. A seed does not fix the
// order of goroutines, so a replay may pass. A run that fails prints its faults, its history and the command that replays it ten times.
//
// The end of each part of a story is compared with that of an undisturbed run. To add a story, write it in a file of its own and name it in
// Stories. story_rollback.go is a short one to begin with. `make test` kills each story once at each kind of write, and draws few seeds;
// `make simulation` kills at every write, and SEEDS=1000 draws more.
//
// What a run cannot show: TLS, HTTP/2, processes of the operating system, disks, and whether the API servers are as real ones are
// (test/memory compares them). Every user has all rights, and no policy is evaluated: test/admission and test/e2e judge these.
//
// All lives share one process: package variables survive a kill. The product's only such variables are content caches and
// registries: chart/values remembers encrypted values, and outward and chart/objects compile expressions once.
package simulation
