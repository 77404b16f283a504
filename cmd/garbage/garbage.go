// SPDX-License-Identifier: Apache-2.0

// Package garbage decides how much garbage a process may gather before it is collected: plenty while it works, little while it rests,
// when it gives back to the machine what it does not need.
//
// What Shipper's processes hold are caches, which stay, and to look through all of them again and again was two fifths of what the
// reconciler computed in a burst. Most of the time nothing is done that would make any garbage. Go knows one proportion for both, and
// gives back no more than that proportion lets it: neither a few hundred MiB that nobody needs any more after a burst, nor a processor in
// one, is what an operator would choose.
package garbage

import (
	"context"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"

	"k8s.io/utils/clock"
)

// How many bytes of garbage there may be while there is something to do. What is in use lies scattered afterwards over all that there was,
// which no collector of Go's moves together: with 256 MiB a reconciler of 1,000 Applications on five clusters had 385 MiB of the machine
// at rest, of which 111 were in use, and 259 with half of what is in use.
const (
	Reconciler = 48 << 20
	Webhook    = 32 << 20
)

const (
	// look is how often it is looked how much there is to do.
	look = time.Second
	// busyBytesPerSecond is how many bytes a process allocates in a second at least that works, and seldom is how many seconds there are at most, while
	// it works, until what it allocates would have to be collected if it rested.
	busyBytesPerSecond, maxInterval = 8 << 20, 5
	// idleInterval is for how long a process has to rest until it gives back what it does not need.
	idleInterval = 30 * time.Second
	// minPercent and most are the least and the most garbage there may be, in percent of what is in use. Go's own choice is 100.
	minPercent, most = 50, 400
)

// Tend decides until ctx is done. A process that works may have so many bytes of garbage, but no more than four times what is in use; and
// always half of what is in use. Who says otherwise in the environment, by GOGC, decides himself, and Tend returns at once.
func Tend(ctx context.Context, c clock.WithTicker, ample uint64) {
	if os.Getenv("GOGC") != "" {
		return
	}
	k := keeper{ample: ample, worked: c.Now(), percent: most, allocated: measure().allocated}
	debug.SetGCPercent(k.percent)
	ticker := c.NewTicker(look)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
		}
		was := k.percent
		rests := k.look(measure(), c.Now())
		if k.percent != was {
			debug.SetGCPercent(k.percent)
		}
		if rests {
			debug.FreeOSMemory()
		}
	}
}

// seen is what is known of a process's memory, in bytes: what it has allocated since it began, and what was in use when garbage was
// collected last.
type seen struct{ allocated, live uint64 }

func measure() seen {
	samples := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}, {Name: "/gc/heap/live:bytes"}}
	metrics.Read(samples)
	return seen{samples[0].Value.Uint64(), samples[1].Value.Uint64()}
}

// keeper remembers what a process did.
type keeper struct {
	// ample is how many bytes of garbage there may be while the process works.
	ample uint64
	// allocated is how many bytes it had when it was looked at last, and worked when it was last seen to work.
	allocated uint64
	worked    time.Time
	// percent is how much garbage there may be now.
	percent int
	// rests is set since it has come to rest.
	rests bool
}

// look decides. It tells once that the process has come to rest.
func (k *keeper) look(is seen, now time.Time) (rests bool) {
	if is.allocated-k.allocated >= max(busyBytesPerSecond, is.live*minPercent/100/maxInterval) {
		k.worked = now
	}
	k.allocated = is.allocated
	if now.Sub(k.worked) < idleInterval {
		k.percent, k.rests = int(min(max(k.ample*100/max(is.live, 1), minPercent), most)), false
		return false
	}
	rests = !k.rests
	k.percent, k.rests = minPercent, true
	return rests
}
