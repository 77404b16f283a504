// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestHunt runs what HUNT lists, until a law is broken: test/simulation/mutate hunts for mutations of the product with it. HUNT is a list
// of story/disturbance, separated by commas; disturbances has those. Findings are written to the file HUNT_FOUND.
func TestHunt(t *testing.T) {
	list := os.Getenv("HUNT")
	if list == "" {
		t.Skip("HUNT is not given")
	}
	h := &hunt{file: os.Getenv("HUNT_FOUND"), ends: map[string]map[string]string{}}
	var plans []Plan
	for one := range strings.SplitSeq(list, ",") {
		name, how, _ := strings.Cut(strings.TrimSpace(one), "/")
		story, known := find(name)
		if !known {
			t.Fatalf("HUNT: there is no story %q", name)
		}
		if h.ends[name] == nil {
			h.ends[name] = map[string]string{}
			t.Run(name, func(t *testing.T) { h.run(t, undisturbed(name)) })
		}
		make := disturbances[how]
		if make == nil {
			t.Fatalf("HUNT: there is no disturbance %q", how)
		}
		plans = append(plans, make(story, number(t, "SEEDS", 20))...)
	}
	t.Run("disturbed", func(t *testing.T) {
		for i, p := range plans {
			t.Run(fmt.Sprint(p.Story, "/", i), func(t *testing.T) {
				t.Parallel()
				h.run(t, p)
			})
		}
	})
}

// disturbances make the plans of a hunt, at most so many where there is no end of them.
var disturbances = map[string]func(story Story, most int) []Plan{
	"undisturbed": func(Story, int) []Plan { return nil }, // it is run anyway
	"killed": func(s Story, _ int) (out []Plan) {
		for _, how := range bothDeaths {
			p := undisturbed(s.Name)
			p.KillEvery, p.Death = true, how
			out = append(out, p)
		}
		return out
	},
	"seeds": func(s Story, most int) (out []Plan) {
		for seed := range most {
			out = append(out, Draw(uint64(seed+1), s))
		}
		return out
	},
	// The one that leads stands still, for longer than its Lease lasts, at other times in each plan.
	"leader": func(s Story, most int) (out []Plan) {
		for seed := range most {
			p := undisturbed(s.Name)
			p.Hunt, p.Seed, p.Replicas, p.Faults = s.Name+"/leader", uint64(seed+1), 2, map[string][]Fault{}
			for i, part := range s.Parts {
				p.Faults[part.Name] = []Fault{{
					Kind: StandStill, Process: fmt.Sprint(reconcilers, i%2),
					After: time.Duration(20+seed*250) * time.Millisecond, For: time.Duration(16000+seed*700) * time.Millisecond,
				}}
			}
			out = append(out, p)
		}
		return out
	},
	// All that the one that leads hears of the management cluster is late.
	"late": func(s Story, most int) (out []Plan) {
		for seed := range most {
			p := undisturbed(s.Name)
			p.Hunt, p.Seed, p.Faults = s.Name+"/late", uint64(seed+1), map[string][]Fault{}
			for _, part := range s.Parts {
				p.Faults[part.Name] = []Fault{{
					Kind: LateWatches, Host: management, Process: reconcilers + "0", For: time.Minute,
					Delay: time.Duration(100+seed*150) * time.Millisecond,
				}}
			}
			out = append(out, p)
		}
		return out
	},
}

// hunt is one search for a broken law.
type hunt struct {
	file string
	ends map[string]map[string]string // of undisturbed runs, by story

	mu    sync.Mutex
	found bool
}

// finding is what is written to HUNT_FOUND.
type finding struct {
	Story  string `json:"story"`
	Plan   string `json:"plan"`
	Broken string `json:"broken"`
}

// run runs a plan, unless a law is broken already.
func (h *hunt) run(t *testing.T, p Plan) {
	h.mu.Lock()
	over, ends := h.found, h.ends[p.Story]
	h.mu.Unlock()
	if over {
		t.Skip("a law is broken already")
	}
	story, _ := find(p.Story)
	out := &Outcome{Plan: p, Ends: map[string]string{}, Writes: map[string]int{}}
	defer func() {
		out.Broken = append(out.Broken, "law 7: what a user of the story waits for does not come")
		if t.Failed() {
			h.note(finding{Story: p.Story, Plan: p.String(), Broken: out.Broken[0]})
		}
	}()
	prepare()
	synctest.Test(t, func(t *testing.T) { out.run(t, story, ends) })
	if failure := out.Failure(); failure != "" {
		t.Error(failure)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(ends) == 0 {
		h.ends[p.Story] = out.Ends
	}
}

func (h *hunt) note(f finding) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.found || h.file == "" {
		return
	}
	h.found = true
	raw, err := json.Marshal(f)
	if err == nil {
		err = os.WriteFile(h.file, raw, 0o600)
	}
	if err != nil {
		panic(err)
	}
}
