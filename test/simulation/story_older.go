// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// olderName begins the names of stories that restore an older state. STORY=older-4711 is the one of that number.
const olderName = "older-"

// olderStory has a user who moves and edits at random, and puts the etcd of the management cluster back to any earlier moment of the part,
// at any moment. Applications and Releases, their targets and all statuses are older then than what runs: what serves goes on serving
// until something else serves in its place, also a Release that management has never heard of. Each fifth has the chart with several
// Services; in each third a cluster is lost meanwhile, and comes back to targets that have moved on.
func olderStory(number uint64) Story {
	story := Story{Name: fmt.Sprint(olderName, number), Shared: number%3 == 0}
	if number%5 == 0 {
		story.Services = []string{"front", "back", "all"}
	}
	story.Begin = func(f *Fixture) {
		f.Bystand()
		f.Creates(f.walker("0.0.1", vanguard()))
		f.toTheEnd()
	}
	for i := range 3 {
		name := fmt.Sprint("restored ", i+1)
		story.Parts = append(story.Parts, Part{
			Name: name, Floor: replicaCount, Loose: true,
			Act: func(f *Fixture) {
				r, began := draws(number, name), f.Management.Version()
				f.movesOnly(r)
				if number%3 == 0 {
					f.fail(Fault{Kind: Refuse, Host: clusterName(1), For: time.Duration(5+r.IntN(120)) * time.Second})
				}
				f.restoresManagement(began, r)
				if number%3 == 0 {
					f.stepsAtRandom(f.laws.newest().Name, r)
				}
				time.Sleep(30 * time.Second) // until a Release is made that the copy lacks, though its Application asks for it
				f.toTheEnd()
			},
			Check: (*Fixture).newestServes,
		})
	}
	return story
}

// movesOnly is walk without deletions, and with longer breaks: some steps are achieved.
func (f *Fixture) movesOnly(r *rand.Rand) {
	f.editsAtRandom(r)
	for range 2 + r.IntN(4) {
		if r.IntN(4) == 0 {
			f.editsAtRandom(r)
		} else {
			f.stepsAtRandom(f.laws.newest().Name, r)
		}
		time.Sleep(time.Duration(r.IntN(20000)) * time.Millisecond)
	}
}

// restoresManagement puts the management cluster back to a version since one, and starts Shipper's processes again, as docs/operations.md
// says.
func (f *Fixture) restoresManagement(since uint64, r *rand.Rand) {
	f.T.Helper()
	for _, process := range []string{reconcilers, webhooks} {
		f.fail(Fault{Kind: Kill, Process: process})
	}
	f.fail(Fault{Kind: Refuse, Host: management, For: 2 * time.Second})
	time.Sleep(time.Second)
	now := f.Management.Version()
	to := since + r.Uint64N(now-since+1)
	f.history.Note("user", "restores version %d of %d", to, now)
	f.laws.restores()
	f.must("restoring", f.Management.Restore(to))
	time.Sleep(2 * time.Second)
}

// newestServes requires that the newest Release has all its Pods in the traffic of each Service. Others may have some, too, which the copy
// did not have.
func (f *Fixture) newestServes() {
	newest := f.laws.newest().Name
	for name, h := range f.hosts {
		if name == management {
			continue
		}
		for _, service := range f.story.services() {
			serving := 0
			for _, pod := range h.endpointsOf(service) {
				if f.laws.podRelease[name+" "+pod] == newest {
					serving++
				}
			}
			if serving < replicaCount {
				f.laws.broken(7, "%s: in the end %d Pods of %s serve behind %s, not %d", name, serving, newest, service, replicaCount)
			}
		}
	}
}
