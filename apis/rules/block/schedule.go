// SPDX-License-Identifier: Apache-2.0

package block

import (
	"fmt"
	"time"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// Bounds of the search for the end of windows that overlap or touch: in steps, and in time.
const (
	maxSteps  = 1000
	lookAhead = 2 * 366 * 24 * time.Hour
)

// Timing describes when a block is in effect.
type Timing struct {
	// Active reports whether it is in effect now.
	Active bool
	// NextStart is when it will be in effect again; the zero time when never, or not within lookAhead.
	NextStart time.Time
	// NextEnd is when it ceases to be in effect, while it is; the zero time when never, or not within lookAhead.
	NextEnd time.Time
	// Look is when to evaluate it again; the zero time when nothing will change. It is before the end of windows that follow
	// one another for longer than lookAhead.
	Look time.Time
}

// Active reports whether b is in effect at a time. A block whose schedule does not parse is in effect: a malformed block must
// not let changes pass.
func Active(b *shipper.RolloutBlock, now time.Time) bool {
	if end, ends := expiry(b); ends && !now.Before(end) {
		return false
	}
	in := b.Spec.Schedule
	if in == nil {
		return true
	}
	open := len(in.Windows) == 0
	for _, w := range in.Windows {
		window, err := windowOf(w)
		if err != nil {
			return true
		}
		open = open || window.open(now)
	}
	return open && (in.Start == nil || !now.Before(in.Start.Time)) && (in.End == nil || now.Before(in.End.Time))
}

// expiry is when b ends for good, if it does.
func expiry(b *shipper.RolloutBlock) (end time.Time, ends bool) {
	if b.Spec.ExpiresAt != nil {
		end, ends = b.Spec.ExpiresAt.Time, true
	}
	if b.Spec.TTL != nil && !b.CreationTimestamp.IsZero() {
		if dies := b.CreationTimestamp.Add(b.Spec.TTL.Duration); !ends || dies.Before(end) {
			end, ends = dies, true
		}
	}
	return end, ends
}

// When is Active with the times at which that changes. The error says why the schedule is invalid; the block then is in effect
// until it expires.
func When(b *shipper.RolloutBlock, now time.Time) (Timing, error) {
	s, err := scheduleOf(b)
	t := Timing{Active: Active(b, now)}
	if !t.Active {
		t.NextStart = s.next(now)
		t.Look = t.NextStart
		return t, err
	}
	end, known := s.until(now)
	if t.Look = end; known {
		t.NextEnd = end
		t.NextStart = s.next(end)
	}
	return t, err
}

// schedule is the parsed schedule of a block. The zero value is always in effect.
type schedule struct {
	start   time.Time
	end     time.Time
	ends    bool
	windows []*Window // none means always open
}

// scheduleOf parses a block's schedule and its end. With an error, the schedule is in effect until the block expires.
func scheduleOf(b *shipper.RolloutBlock) (schedule, error) {
	var s schedule
	var err error
	if in := b.Spec.Schedule; in != nil {
		if s, err = parseSchedule(in); err != nil {
			s = schedule{}
		}
	}
	if end, ends := expiry(b); ends {
		s.endAt(end)
	}
	return s, err
}

func parseSchedule(in *shipper.RolloutBlockSchedule) (schedule, error) {
	var s schedule
	if in.Start != nil {
		s.start = in.Start.Time
	}
	if in.End != nil {
		s.endAt(in.End.Time)
	}
	for i, w := range in.Windows {
		window, err := windowOf(w)
		if err != nil {
			return s, fmt.Errorf("window %d: %w", i, err)
		}
		s.windows = append(s.windows, window)
	}
	return s, nil
}

// endAt ends s at t unless it ends before.
func (s *schedule) endAt(t time.Time) {
	if !s.ends || t.Before(s.end) {
		s.end, s.ends = t, true
	}
}

// over reports whether s has ended at t.
func (s schedule) over(t time.Time) bool { return s.ends && !t.Before(s.end) }

// until is when s, which is in effect at t, ceases to be. Unless known, end is where the search stopped, or the zero time if s
// never ends.
func (s schedule) until(t time.Time) (end time.Time, known bool) {
	if len(s.windows) == 0 {
		return s.end, s.ends
	}
	horizon := t.Add(lookAhead)
	for range max(1, maxSteps/len(s.windows)) {
		closed := true
		for _, w := range s.windows {
			if end, open := w.closes(t); open {
				t, closed = end, false
			}
		}
		switch {
		case s.over(t):
			return s.end, true
		case closed:
			return t, true
		case t.After(horizon):
			return t, false
		}
	}
	return t, false
}

// next is the first time from t on at which s is in effect; the zero time when there is none.
func (s schedule) next(t time.Time) time.Time {
	if t.Before(s.start) {
		t = s.start
	}
	first, found := t, len(s.windows) == 0
	for _, w := range s.windows {
		opens := t
		if _, open := w.closes(t); !open {
			opens = w.opens(t)
		}
		if !opens.IsZero() && (!found || opens.Before(first)) {
			first, found = opens, true
		}
	}
	if !found || s.over(first) {
		return time.Time{}
	}
	return first
}
