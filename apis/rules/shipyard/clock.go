// SPDX-License-Identifier: Apache-2.0

package shipyard

import (
	"cmp"
	"fmt"
	"time"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// timedOut ends a run that takes too long (KS13); a task under way ends with it.
func (p *plan) timedOut() bool {
	if p.left() > 0 {
		return false
	}
	p.finish(shipper.ResultFail, shipper.CompletionErrored, shipper.RunTimedOut,
		fmt.Sprintf("took longer than %s", timeout(p.sequence.Timeout, DefaultRunTimeout)))
	return true
}

// left is what remains of the run's time-out.
func (p *plan) left() time.Duration {
	return timeout(p.sequence.Timeout, DefaultRunTimeout) - (p.now.Sub(p.status.StartTime.Time) - p.paused())
}

// clock stops or starts the clocks of the run.
func (p *plan) clock(stop bool) {
	switch {
	case stop && p.status.PausedSince == nil && p.status.StartTime != nil:
		p.status.PausedSince = &p.now
	case !stop && p.status.PausedSince != nil:
		p.status.PausedSeconds += int64(p.now.Sub(p.status.PausedSince.Time) / time.Second)
		p.status.PausedSince = nil
	}
}

// paused is how long the clocks have stood.
func (p *plan) paused() time.Duration {
	out := time.Duration(p.status.PausedSeconds) * time.Second
	if p.status.PausedSince != nil {
		out += p.now.Sub(p.status.PausedSince.Time)
	}
	return out
}

// elapsed is how long a task has been under way by the clocks of the run.
func (p *plan) elapsed(task *shipper.TaskStatus) time.Duration {
	return p.now.Sub(task.TriggerTime.Time) - (p.paused() - time.Duration(task.PausedBefore)*time.Second)
}

// wakeAfter asks for another decision.
func (p *plan) wakeAfter(d time.Duration) {
	if p.status.PausedSince != nil && p.do != nil {
		return // its clock stands
	}
	if d = max(d, time.Second); p.recheck == 0 || d < p.recheck {
		p.recheck = d
	}
}

func timeout(given shipper.Duration, absent time.Duration) time.Duration {
	return cmp.Or(given.Value(), absent)
}
