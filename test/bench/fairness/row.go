// SPDX-License-Identifier: Apache-2.0

// Package fairness measures how long others wait while a team edits all of its Applications at once: another team for its one
// edit, and the same team for an abort. Beside it is how long both take with nothing else going on.
package fairness

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"shipper.dev/shipper/test/bench/table"
	"shipper.dev/shipper/test/bench/world"
)

// Fairness is many Applications of one team, and one of another, each of two Pods in each of two clusters.
type Fairness struct {
	// Applications is how many the team has that edits all of them.
	Applications int
	// Rounds is how often it does. As often the others are measured with nothing else going on, in turn.
	Rounds int
}

// result is what was measured, each time for each round.
type result struct {
	edits, quietEdits, aborts, quietAborts []time.Duration
	// crowds is how long all edits of a team took, and behind how many of them had not ended when that of the other team had.
	crowds []time.Duration
	behind []int
}

// Run measures, and keeps out informed. All times are given to samples.
func (f Fairness) Run(ctx context.Context, out, samples io.Writer) (lines []table.Line, err error) {
	w, err := world.Begin(ctx, world.Options{Clusters: clusters})
	defer func() { err = errors.Join(err, w.End()) }()
	if err != nil {
		return nil, err
	}
	t, err := newTeams(ctx, w, f)
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(out, "%d Applications of one team are there\n", f.Applications)
	var r result
	for round := range f.Rounds + 1 { // the first warms up
		if err := f.round(ctx, t, round, out, &r); err != nil {
			return nil, fmt.Errorf("round %d: %w", round, err)
		}
		if round == 0 {
			r = result{}
		}
	}
	of := fmt.Sprintf("applications=%d", f.Applications)
	for name, times := range map[string][]time.Duration{
		"Edit/" + of + "/side=crowded": r.edits, "Edit/" + of + "/side=quiet": r.quietEdits,
		"Abort/" + of + "/side=crowded": r.aborts, "Abort/" + of + "/side=quiet": r.quietAborts,
	} {
		if err := table.WriteSamples(samples, name, times); err != nil {
			return nil, err
		}
	}
	return r.lines(f.Applications), nil
}

// round measures with nothing else going on, and then behind the edits of a team.
func (f Fairness) round(ctx context.Context, t *teams, round int, out io.Writer, r *result) error {
	edit, abort, err := t.others(ctx, 2*round)
	if err != nil {
		return err
	}
	r.quietEdits, r.quietAborts = append(r.quietEdits, edit), append(r.quietAborts, abort)
	fmt.Fprintf(out, "round %d, with nothing else going on: edit %s, abort %s\n", round, rounded(edit), rounded(abort))

	if err := t.stage(ctx, 2*round+1); err != nil {
		return err
	}
	began := time.Now()
	if err := t.editAll(ctx, round+1); err != nil {
		return err
	}
	written := time.Since(began)
	if edit, abort, err = t.measure(ctx, 2*round+1); err != nil {
		return err
	}
	behind := t.left(round + 1)
	if err := t.edited(ctx, round+1); err != nil {
		return err
	}
	crowd := time.Since(began)
	r.edits, r.aborts = append(r.edits, edit), append(r.aborts, abort)
	r.crowds, r.behind = append(r.crowds, crowd), append(r.behind, behind)
	fmt.Fprintf(out, "round %d, behind %d edits, written within %s: edit %s, abort %s; %d had not ended, all had after %s\n",
		round, f.Applications, rounded(written), rounded(edit), rounded(abort), behind, rounded(crowd))
	return nil
}

func rounded(d time.Duration) time.Duration { return d.Round(10 * time.Millisecond) }

// lines of the table.
func (r result) lines(applications int) []table.Line {
	of := fmt.Sprintf("behind %d edits of a team, ", applications)
	beside := func(what string, ours, floor []time.Duration) table.Line {
		return table.Line{Row: "fairness", Of: of + what, Ours: table.Median(ours), Floor: table.Median(floor), Unit: table.Seconds,
			Most: table.Goal(maxWait)}
	}
	var left float64
	for _, n := range r.behind {
		left += float64(n) / float64(len(r.behind))
	}
	return []table.Line{
		beside("one edit of another team (floor: nothing else goes on)", r.edits, r.quietEdits),
		beside("an abort of the same team", r.aborts, r.quietAborts),
		{Row: "fairness", Of: of + "those that had not ended after both", Ours: left},
		{Row: "fairness", Of: of + "the end of all, as one would wait who came last", Ours: table.Median(r.crowds), Unit: table.Seconds},
	}
}
