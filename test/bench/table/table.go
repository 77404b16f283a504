// SPDX-License-Identifier: Apache-2.0

// Package table is what benchmarks print: one line for each thing that was measured, beside its floor and its goal.
package table

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"
)

// Unit is that of a figure.
type Unit string

// The units.
const (
	Seconds Unit = "s"
	Count   Unit = ""
	KiB     Unit = "KiB"
	MiB     Unit = "MiB"
	Percent Unit = "%"
	// Each is a mean count: it may be a fraction.
	Each Unit = "each"
)

// Line is one thing that was measured.
type Line struct {
	// Row is what work it was, Of is what of it was measured.
	Row, Of string
	// Ours is the figure.
	Ours float64
	// Floor is the same figure of what was measured beside it. Zero: there is none.
	Floor float64
	// Unit is that of both.
	Unit Unit
	// Most is the goal: of the ratio to the floor when there is one, otherwise of Ours. Nil: there is no goal.
	Most *float64
}

// Goal is a goal of a Line.
func Goal(most float64) *float64 { return &most }

// Ratio is that to the floor; zero when there is none.
func (l Line) Ratio() float64 {
	if l.Floor == 0 {
		return 0
	}
	return l.Ours / l.Floor
}

// Missed reports whether the goal was.
func (l Line) Missed() bool {
	return l.Most != nil && cmp.Or(l.Ratio(), l.Ours) > *l.Most
}

// Write prints lines, and returns an error that names the goals that were missed.
func Write(w io.Writer, lines []Line) error {
	var missed []error
	columns := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(columns, "\nrow\tof\tfloor\tShipper\tratio\tgoal\t")
	for _, l := range lines {
		floor, ratio, goal, verdict := "", "", "", ""
		if l.Floor != 0 {
			floor, ratio = figure(l.Floor, l.Unit), fmt.Sprintf("%.2f", l.Ratio())
		}
		if l.Most != nil {
			if goal = fmt.Sprintf("≤ %g", *l.Most); l.Floor == 0 {
				goal = "≤ " + figure(*l.Most, l.Unit)
			}
		}
		if l.Missed() {
			verdict = "missed"
			missed = append(missed, fmt.Errorf("%s, %s: the goal is %s", l.Row, l.Of, goal))
		}
		fmt.Fprintf(columns, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", l.Row, l.Of, floor, figure(l.Ours, l.Unit), ratio, goal, verdict)
	}
	return errors.Join(append(missed, columns.Flush())...)
}

// figure is a number with its unit, with three digits that say something.
func figure(n float64, unit Unit) string {
	switch {
	case unit == Seconds:
		return fmt.Sprint(time.Duration(n * float64(time.Second)).Round(rounding(n)))
	case unit == Each:
		return fmt.Sprintf("%.2g", n)
	case unit == Count || n >= 100:
		return fmt.Sprintf("%.0f %s", n, unit)
	default:
		return fmt.Sprintf("%.2g %s", n, unit)
	}
}

// rounding leaves three digits of a number of seconds.
func rounding(seconds float64) time.Duration {
	at := time.Duration(1)
	for d := time.Duration(seconds * float64(time.Second)); d >= 1000; d /= 10 {
		at *= 10
	}
	return at
}

// Median of what took so long, in seconds.
func Median(times []time.Duration) float64 {
	return slices.Sorted(slices.Values(times))[len(times)/2].Seconds()
}

// Percentile is how many seconds so many of a hundred took at most.
func Percentile(times []time.Duration, percent int) float64 {
	return slices.Sorted(slices.Values(times))[len(times)*percent/100].Seconds()
}

// WriteSamples writes what was measured in the format of Go's benchmarks, which benchstat reads.
func WriteSamples(w io.Writer, name string, times []time.Duration) error {
	for _, t := range times {
		if _, err := fmt.Fprintf(w, "Benchmark%s 1 %d ns/op\n", name, t.Nanoseconds()); err != nil {
			return fmt.Errorf("writing samples: %w", err)
		}
	}
	return nil
}
