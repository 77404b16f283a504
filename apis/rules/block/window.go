// SPDX-License-Identifier: Apache-2.0

package block

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	_ "time/tzdata" // for systems without time zone data

	"github.com/robfig/cron/v3"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// Bounds of windows.
const (
	minWindow = time.Minute
	maxWindow = 366 * 24 * time.Hour
)

// ErrTimeZone is wrapped by errors about the time zone of a window, ErrDuration by those about its duration. All others
// are about its cron expression.
var (
	ErrTimeZone = errors.New("is not an IANA time zone, like Europe/Amsterdam")
	ErrDuration = errors.New("must be from 1m to 8784h")
)

// Window is a parsed RolloutBlockWindow.
//
// Its cron has no time zone. The latest time that a clock in the zone has ever shown, high, never decreases, even where clocks
// are put back: the window has opened once for each of cron's times up to high.
type Window struct {
	cron     cron.Schedule // in UTC
	duration time.Duration
	zone     *time.Location
	known    atomic.Pointer[stretch]
}

// stretch is a period during which a window is open all the time, or closed all the time.
type stretch struct {
	from, to time.Time // to is after it; the zero time when no end is known
	open     bool
}

// fields is the parser of cron expressions. It refuses @every, which has no fixed times, and time zone prefixes, for which
// there is a separate field.
var fields = cron.NewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow | cron.Descriptor)

// ParseWindow parses a window.
func ParseWindow(w shipper.RolloutBlockWindow) (*Window, error) {
	zone, err := location(w.TimeZone)
	if err != nil {
		return nil, err
	}
	if w.Duration.Duration < minWindow || w.Duration.Duration > maxWindow {
		return nil, fmt.Errorf("duration %s %w", w.Duration.Duration, ErrDuration)
	}
	spec, err := parseCron(w.Cron)
	if err != nil {
		return nil, fmt.Errorf("cron %q: %w", w.Cron, err)
	}
	spec.Location = time.UTC
	if spec.Next(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)).IsZero() {
		return nil, fmt.Errorf("cron %q: there is no such day", w.Cron)
	}
	return &Window{cron: spec, duration: w.Duration.Duration, zone: zone}, nil
}

// errCron refuses expressions that robfig/cron accepts and a window must not have.
var errCron = errors.New("must be minute, hour, day of month, month and day of week; the time zone has a field of its own")

func parseCron(expression string) (*cron.SpecSchedule, error) {
	// The parser panics if nothing follows the time zone.
	if strings.HasPrefix(expression, "TZ=") || strings.HasPrefix(expression, "CRON_TZ=") {
		return nil, errCron
	}
	parsed, err := fields.Parse(expression)
	if err != nil {
		return nil, err
	}
	spec, ok := parsed.(*cron.SpecSchedule)
	if !ok {
		return nil, errCron
	}
	return spec, nil
}

// windows and zones cache what was parsed: parsing a window takes longer than the rest of a judgement.
var (
	windows sync.Map // of *Window, by shipper.RolloutBlockWindow
	kept    atomic.Int32
	zones   sync.Map // of *time.Location, by name; bounded by the number of zones
)

// maxKept is how many windows the cache holds; after that it is cleared.
const maxKept = 10_000

// windowOf is ParseWindow with a cache.
func windowOf(w shipper.RolloutBlockWindow) (*Window, error) {
	if known, ok := windows.Load(w); ok {
		if window, ok := known.(*Window); ok {
			return window, nil
		}
	}
	window, err := ParseWindow(w)
	if err != nil {
		return nil, err
	}
	if kept.Add(1) > maxKept {
		windows.Clear()
		kept.Store(1)
	}
	windows.Store(w, window)
	return window, nil
}

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

// open reports whether the window is open at t. Successive calls have close times, so it caches the last stretch.
func (w *Window) open(t time.Time) bool {
	if s := w.known.Load(); s != nil && !t.Before(s.from) && (s.to.IsZero() || t.Before(s.to)) {
		return s.open
	}
	s := stretch{from: t}
	if s.to, s.open = w.closes(t); !s.open {
		s.to = w.opens(t)
	}
	w.known.Store(&s)
	return s.open
}

// closes reports whether the window is open at t and when it then closes, counting its last opening.
func (w *Window) closes(t time.Time) (end time.Time, open bool) {
	last, open := w.last(w.high(t.Add(-w.duration)), w.high(t))
	if !open {
		return time.Time{}, false
	}
	return w.moment(last).Add(w.duration), true
}

// opens is when the window opens next after t; the zero time when it does not within five years.
func (w *Window) opens(t time.Time) time.Time {
	next := w.cron.Next(w.high(t))
	if next.IsZero() {
		return time.Time{}
	}
	return w.moment(next)
}

// last is the last of cron's times after from, up to to. They are whole minutes.
func (w *Window) last(from, to time.Time) (at time.Time, ok bool) {
	at = w.cron.Next(from)
	if at.IsZero() || at.After(to) {
		return time.Time{}, false
	}
	for to.Sub(at) >= time.Minute {
		middle := at.Add(to.Sub(at) / 2)
		if next := w.cron.Next(middle); next.IsZero() || next.After(to) {
			to = middle
		} else {
			at = next
		}
	}
	return at, true
}

// overADay is longer than any clock was ever put forward or back: at most a day, where the date line moved.
const overADay = 26 * time.Hour

// high is the latest time that a clock in the window's zone has shown until t, as if it were UTC.
func (w *Window) high(t time.Time) time.Time {
	high := w.shows(t)
	for since, _ := t.In(w.zone).ZoneBounds(); !since.IsZero() && t.Sub(since) < overADay; {
		before := since.Add(-time.Nanosecond)
		if shown := w.shows(before); shown.After(high) {
			high = shown
		}
		since, _ = before.In(w.zone).ZoneBounds()
	}
	return high
}

// shows is the time that a clock in the window's zone shows at t, as if it were UTC.
func (w *Window) shows(t time.Time) time.Time {
	_, offset := t.In(w.zone).Zone()
	return t.UTC().Add(time.Duration(offset) * time.Second)
}

// moment is when a clock in the window's zone first shows at. For a time that is skipped, it is the moment at which the clock
// is put forward.
func (w *Window) moment(at time.Time) time.Time {
	t := at.Add(-overADay)
	for {
		local := t.In(w.zone)
		_, offset := local.Zone()
		_, until := local.ZoneBounds()
		shown := at.Add(-time.Duration(offset) * time.Second)
		switch {
		case shown.Before(t): // the clock was put forward past it
			return t
		case until.IsZero() || shown.Before(until):
			return shown
		}
		t = until.UTC()
	}
}
