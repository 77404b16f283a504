// SPDX-License-Identifier: Apache-2.0

// Package garbage sets the garbage collector's target percentage by load: high while a process is busy, low while it is idle.
//
// Shipper's processes hold large caches. With one fixed percentage (GOGC), either collections take much CPU time in a burst
// (two fifths of the reconciler's), or the process keeps hundreds of MiB of unused memory after it.
package garbage

import (
	"context"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"

	"k8s.io/utils/clock"
)

// Target bytes of garbage while a process is busy. Go's collector does not compact the heap, so more garbage also means more
// memory at rest: with 256 MiB, a reconciler of 1,000 Applications on five clusters kept 385 MiB, of which 111 were in use.
const (
	Reconciler = 48 << 20
	Webhook    = 32 << 20
)

const (
	// look is the interval between measurements.
	look = time.Second
	// busyBytesPerSecond is the allocation rate above which the process counts as busy. It also is busy if it allocates the
	// garbage allowed at minPercent within maxInterval seconds.
	busyBytesPerSecond, maxInterval = 8 << 20, 5
	// idleInterval is how long a process must be idle before it returns memory to the system.
	idleInterval = 30 * time.Second
	// minPercent and maxPercent are the bounds of GOGC, in percent of the live heap. Go's default is 100.
	minPercent, maxPercent = 50, 400
)

// Tend adjusts GOGC until ctx is done. A busy process may have ample bytes of garbage, within minPercent and maxPercent of its live
// heap; an idle one gets minPercent. If the environment sets GOGC, Tend returns at once.
func Tend(ctx context.Context, c clock.WithTicker, ample uint64) {
	if os.Getenv("GOGC") != "" {
		return
	}
	k := keeper{ample: ample, worked: c.Now(), percent: maxPercent, allocated: measure().allocated}
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

// seen is the memory of a process in bytes: allocated since its start, and live at the last collection.
type seen struct{ allocated, live uint64 }

func measure() seen {
	samples := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}, {Name: "/gc/heap/live:bytes"}}
	metrics.Read(samples)
	return seen{samples[0].Value.Uint64(), samples[1].Value.Uint64()}
}

// keeper is the state of Tend.
type keeper struct {
	// ample is the target of garbage in bytes while the process is busy.
	ample uint64
	// allocated is the value at the last measurement, and worked is when the process was last busy.
	allocated uint64
	worked    time.Time
	// percent is the present GOGC.
	percent int
	// rests is true while the process is idle.
	rests bool
}

// look computes percent from a measurement. It returns true once whenever the process becomes idle.
func (k *keeper) look(is seen, now time.Time) (rests bool) {
	if is.allocated-k.allocated >= max(busyBytesPerSecond, is.live*minPercent/100/maxInterval) {
		k.worked = now
	}
	k.allocated = is.allocated
	if now.Sub(k.worked) < idleInterval {
		k.percent, k.rests = int(min(max(k.ample*100/max(is.live, 1), minPercent), maxPercent)), false
		return false
	}
	rests = !k.rests
	k.percent, k.rests = minPercent, true
	return rests
}
