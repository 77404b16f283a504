// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
)

const (
	// quiet is how long nothing must be written to count as the end of a part.
	quiet = 20 * time.Second
	// afterwards is how long the network is whole before the end of a part is looked at.
	afterwards = 2 * time.Minute
	// restFor is how long nothing must be written at the end of a story.
	restFor = 10 * time.Minute
	// patience bounds each wait of a story.
	patience = 3 * time.Hour
)

// Outcome is what a run came to.
type Outcome struct {
	Plan Plan
	// Ends is all there is at the end of each part, by its name, and Writes how many writes reconcilers made in it.
	Ends   map[string]string
	Writes map[string]int
	// Broken are laws that were broken.
	Broken []string
	// Lives is how many lives of reconcilers ended by a write, Exits which processes ended by themselves.
	Lives int
	Exits []error
	// Virtual is how long the run lasted for those in it.
	Virtual time.Duration
	History *History
}

// Run runs the story of a plan in a bubble of its own. Ends, if not nil, are those of an undisturbed run.
func Run(t *testing.T, p Plan, ends map[string]string) *Outcome {
	t.Helper()
	story, found := find(p.Story)
	if !found {
		t.Fatalf("there is no story %q", p.Story)
	}
	out := &Outcome{Plan: p, Ends: map[string]string{}, Writes: map[string]int{}}
	prepare()
	synctest.Test(t, func(t *testing.T) { out.run(t, story, ends) })
	return out
}

// prepare makes what all bubbles share, before the first of them.
var prepare = sync.OnceFunc(func() {
	packed()
	admissionRules()
	// The handler after the first delays errors of the whole process by real time: in a bubble it would block for ever.
	utilruntime.ErrorHandlers = utilruntime.ErrorHandlers[:1]
})

func (o *Outcome) run(t *testing.T, story Story, ends map[string]string) {
	began := time.Now()
	w := newWorld(t, o.Plan)
	o.History = w.history
	defer w.end()
	defer func() { o.Broken = w.laws.all() }() // also when the story ends early
	w.laws.story(story)
	w.begin(max(2, story.Clusters))
	f := newFixture(w, story)
	story.Begin(f)
	f.rests()
	for _, part := range story.Parts {
		o.part(f, part, ends[part.Name])
	}
	before := w.Network.total()
	time.Sleep(restFor)
	if n := w.Network.total(); n != before {
		w.laws.broken(7, "%d writes were made at rest", n-before)
	}
	w.mu.Lock()
	o.Exits = w.exits
	w.mu.Unlock()
	o.Virtual = time.Since(began)
}

// part runs one part, and compares its end.
func (o *Outcome) part(f *Fixture, part Part, end string) {
	w := f.World
	if part.Before != nil {
		part.Before(f)
		f.rests()
	}
	w.history.Note("part", "%s", part.Name)
	f.bystanders = f.untouched()
	w.laws.hold(part.Floor)
	before := w.Network.disturb(o.Plan)
	w.fail(o.Plan.Faults[part.Name]...)
	part.Act(f)
	if over := w.Network.over(); !over.IsZero() {
		time.Sleep(time.Until(over) + afterwards)
	}
	f.rests()
	o.Lives += w.Network.spare()
	for _, s := range w.running {
		s.spare()
	}
	o.Writes[part.Name] = w.Network.total() - before
	w.laws.hold(0)
	if diff := cmp.Diff(f.bystanders, f.untouched()); diff != "" {
		w.laws.broken(6, "%s: foreign objects were written (-before +after):\n%s", part.Name, diff)
	}
	if part.Check != nil {
		part.Check(f)
	}
	o.Ends[part.Name] = f.dump()
	if end != "" && !part.Loose && end != o.Ends[part.Name] {
		w.laws.broken(7, "%s does not end as undisturbed (-undisturbed +disturbed):\n%s", part.Name, difference(end, o.Ends[part.Name]))
	}
}

// difference is what lines differ.
func difference(a, b string) string {
	lines := func(text string) []string { return slices.Collect(strings.SplitSeq(text, "\n")) }
	return cmp.Diff(lines(a), lines(b))
}

// disturb begins the kills of a plan, and returns how many writes there were before.
func (n *Network) disturb(p Plan) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.kills = p.kills(n.writes)
	if p.KillKinds {
		n.kills.kinds = n.kinds
	}
	return n.writes
}

// spare ends them, and returns how many lives they ended.
func (n *Network) spare() (lives int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.kills = kills{}
	lives, n.lives = n.lives, 0
	return lives
}

// total is how many writes reconcilers have made.
func (n *Network) total() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.writes
}

// Failure describes a run in which a law was broken; empty if none was.
func (o *Outcome) Failure() string {
	if len(o.Broken) == 0 {
		return ""
	}
	return fmt.Sprintf("%s\n%s\n\n%s\nrun it again: %s", o.Plan, strings.Join(o.Broken, "\n"), o.History, o.Plan.command())
}
