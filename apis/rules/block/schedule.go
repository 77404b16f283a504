// SPDX-License-Identifier: Apache-2.0

package block

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
	_ "time/tzdata" // time zones mean the same wherever this runs

	"github.com/robfig/cron/v3"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// Bounds of windows.
const (
	minWindow = time.Minute
	maxWindow = 366 * 24 * time.Hour
	// maxSteps bounds how many windows are followed to find the end of those that overlap; then none is known.
	maxSteps = 100
)

// Timing is when a block is in effect.
type Timing struct {
	// Active tells whether it is now.
	Active bool
	// NextStart is when it will come into effect again; the zero time when never, or not as far as is looked ahead.
	NextStart time.Time
	// NextEnd is when it ceases to be in effect, while it is; the zero time when never, or not as far as is looked ahead.
	NextEnd time.Time
}

// Active tells whether b is in effect at a time. A block whose schedule cannot be read is: nobody may get through by
// what is malformed.
func Active(b *shipper.RolloutBlock, now time.Time) bool {
	if gone, ok := lifted(b); ok && !now.Before(gone) {
		return false
	}
	if b.Spec.Schedule == nil {
		return true
	}
	s, err := parseSchedule(b.Spec.Schedule)
	if err != nil {
		return true
	}
	return s.active(now)
}

// When is Active with the times at which that changes. The error says what is wrong with the schedule; the block is in
// effect then.
func When(b *shipper.RolloutBlock, now time.Time) (Timing, error) {
	s, err := parseSchedule(b.Spec.Schedule)
	if err != nil {
		s = schedule{}
	}
	if gone, ok := lifted(b); ok && (s.end.IsZero() || gone.Before(s.end)) {
		s.end = gone
	}
	var t Timing
	from := now
	if t.NextEnd, t.Active = s.until(now); t.Active {
		from = t.NextEnd
	}
	if !from.IsZero() {
		t.NextStart = s.next(from)
	}
	return t, err
}

// lifted is when b lifts itself for good, if it does.
func lifted(b *shipper.RolloutBlock) (at time.Time, ok bool) {
	if b.Spec.ExpiresAt != nil {
		at, ok = b.Spec.ExpiresAt.Time, true
	}
	if b.Spec.TTL != nil && !b.CreationTimestamp.IsZero() {
		if end := b.CreationTimestamp.Add(b.Spec.TTL.Duration); !ok || end.Before(at) {
			at, ok = end, true
		}
	}
	return at, ok
}

// schedule is a RolloutBlockSchedule that was read. The zero one is always in effect.
type schedule struct {
	start, end time.Time // zero when there is none
	windows    []window
}

func parseSchedule(in *shipper.RolloutBlockSchedule) (schedule, error) {
	var s schedule
	if in == nil {
		return s, nil
	}
	if in.Start != nil {
		s.start = in.Start.Time
	}
	if in.End != nil {
		s.end = in.End.Time
	}
	for i, w := range in.Windows {
		parsed, err := ParseWindow(w)
		if err != nil {
			return schedule{}, fmt.Errorf("window %d: %w", i, err)
		}
		s.windows = append(s.windows, parsed.window)
	}
	return s, nil
}

// active tells whether the schedule is in effect at t.
func (s schedule) active(t time.Time) bool {
	return !t.Before(s.start) && (s.end.IsZero() || t.Before(s.end)) &&
		(len(s.windows) == 0 || slices.ContainsFunc(s.windows, func(w window) bool { _, open := w.openAt(t); return open }))
}

// until tells whether the schedule is in effect at t, and if so, when that ends; the zero time when no end is known.
func (s schedule) until(t time.Time) (end time.Time, active bool) {
	if !s.active(t) {
		return time.Time{}, false
	}
	if len(s.windows) == 0 {
		return s.end, true
	}
	end = s.follow(t)
	if !s.end.IsZero() && (end.IsZero() || end.After(s.end)) {
		end = s.end
	}
	return end, true
}

// follow goes from window to window that overlap, beginning with those open at t, to the first moment at which none is
// open. That is t when none is open then; the zero time is not as far as is looked ahead.
func (s schedule) follow(t time.Time) time.Time {
	for range maxSteps {
		furthest := t
		for _, w := range s.windows {
			if end, open := w.openAt(t); open && end.After(furthest) {
				furthest = end
			}
		}
		if furthest.Equal(t) {
			return t
		}
		t = furthest
	}
	return time.Time{}
}

// next is the first time from t on at which the schedule is in effect; the zero time when there is none.
func (s schedule) next(t time.Time) time.Time {
	if t.Before(s.start) {
		t = s.start
	}
	var first time.Time
	if s.active(t) {
		first = t
	} else {
		for _, w := range s.windows {
			if opens := w.opensAfter(t); !opens.IsZero() && (first.IsZero() || opens.Before(first)) {
				first = opens
			}
		}
	}
	if !s.end.IsZero() && !first.Before(s.end) {
		return time.Time{}
	}
	return first
}

// Window is a RolloutBlockWindow that was read.
type Window struct{ window window }

type window struct {
	cron     cron.Schedule
	duration time.Duration
	zone     *time.Location
}

// ErrTimeZone is wrapped by errors about the time zone of a window, ErrDuration by those about its duration. All others
// are about its cron expression.
var (
	ErrTimeZone = errors.New("is not an IANA time zone, like Europe/Amsterdam")
	ErrDuration = errors.New("must be from 1m to 8784h")
)

// fields of a cron expression, as most crons have them. @every, which has no fixed times, and zones in front, for which
// there is a field, are refused.
var fields = cron.NewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow | cron.Descriptor)

// ParseWindow reads a window.
func ParseWindow(w shipper.RolloutBlockWindow) (Window, error) {
	zone, err := location(w.TimeZone)
	if err != nil {
		return Window{}, err
	}
	if w.Duration.Duration < minWindow || w.Duration.Duration > maxWindow {
		return Window{}, fmt.Errorf("duration %s %w", w.Duration.Duration, ErrDuration)
	}
	parsed, err := fields.Parse(w.Cron)
	if err != nil {
		return Window{}, fmt.Errorf("cron %q: %w", w.Cron, err)
	}
	spec, ok := parsed.(*cron.SpecSchedule)
	if !ok || spec.Location != time.Local {
		return Window{}, fmt.Errorf("cron %q: must be minute, hour, day of month, month and day of week; "+
			"the time zone has a field of its own", w.Cron)
	}
	// Its times are read off a clock that knows no summer; moment says when a clock in the zone shows them.
	spec.Location = time.UTC
	if spec.Next(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)).IsZero() {
		return Window{}, fmt.Errorf("cron %q: there is no such day", w.Cron)
	}
	return Window{window{cron: spec, duration: w.Duration.Duration, zone: zone}}, nil
}

// zones are those that were read: reading one takes longer than all the rest of a judgement.
var zones sync.Map // of *time.Location, by name; as many as there are zones

func location(name string) (*time.Location, error) {
	if name == "" {
		return time.UTC, nil
	}
	if known, ok := zones.Load(name); ok {
		if zone, ok := known.(*time.Location); ok {
			return zone, nil
		}
	}
	zone, err := time.LoadLocation(name)
	if err != nil || name == "Local" {
		return nil, fmt.Errorf("timeZone %q %w", name, ErrTimeZone)
	}
	zones.Store(name, zone)
	return zone, nil
}

// slack is how far a clock that knows no summer may be ahead of one that does, or behind.
const slack = 3 * time.Hour

// openAt tells whether the window is open at t, and if so, when the one that opened first closes.
func (w window) openAt(t time.Time) (end time.Time, open bool) {
	for at := w.cron.Next(w.clock(t).Add(-w.duration - slack)); !at.IsZero(); at = w.cron.Next(at) {
		opens := w.moment(at)
		if opens.After(t) {
			return time.Time{}, false
		}
		if end := opens.Add(w.duration); end.After(t) {
			return end, true
		}
	}
	return time.Time{}, false
}

// opensAfter is when the window opens next after t; the zero time when it does not within five years.
func (w window) opensAfter(t time.Time) time.Time {
	for at := w.cron.Next(w.clock(t).Add(-slack)); !at.IsZero(); at = w.cron.Next(at) {
		if opens := w.moment(at); opens.After(t) {
			return opens
		}
	}
	return time.Time{}
}

// clock is what a clock in the window's zone shows at t, as if it were UTC.
func (w window) clock(t time.Time) time.Time {
	l := t.In(w.zone)
	return time.Date(l.Year(), l.Month(), l.Day(), l.Hour(), l.Minute(), l.Second(), l.Nanosecond(), time.UTC)
}

// moment is when a clock in the window's zone shows at, for the first time if it does so twice. A time that is skipped is
// the moment at which the clock is put forward.
func (w window) moment(at time.Time) time.Time {
	t := time.Date(at.Year(), at.Month(), at.Day(), at.Hour(), at.Minute(), at.Second(), 0, w.zone)
	if w.clock(t).Equal(at) {
		_, before := t.Add(-slack).Zone()
		if _, offset := t.Zone(); offset < before { // the clock was put back: has it shown this before?
			if first := t.Add(-time.Duration(before-offset) * time.Second); w.clock(first).Equal(at) {
				return first
			}
		}
		return t
	}
	changed, _ := t.Add(slack).ZoneBounds()
	return changed
}
