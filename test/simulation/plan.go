// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"
)

// Plan says what disturbs a story. It is plain data: a failing one can be printed, and run again.
type Plan struct {
	Story string `json:"story"`
	// Seed decides the delays of requests, and the faults that Draw makes.
	Seed uint64 `json:"seed"`
	// Hunt is the hunt that made the plan; "" if Draw or a test did.
	Hunt string `json:"hunt,omitempty"`
	// Replicas of the reconciler; more than one elect a leader. 0: one.
	Replicas int `json:"replicas,omitempty"`
	// Webhooks is the number of replicas of the webhook. 0: none, all writes are admitted.
	Webhooks int `json:"webhooks,omitempty"`
	// Faults are those of each part, by its name.
	Faults map[string][]Fault `json:"faults,omitempty"`
	// KillEvery ends a life with every write of each part, KillAt with the writes of these numbers, counted in each part from 1.
	KillEvery bool  `json:"killEvery,omitempty"`
	KillAt    []int `json:"killAt,omitempty"`
	// KillKinds ends a life with the first write of each kind.
	KillKinds bool  `json:"killKinds,omitempty"`
	Death     Death `json:"death,omitempty"`
}

// undisturbed is the plan that others are compared with.
func undisturbed(story string) Plan { return Plan{Story: story, Webhooks: 1} }

// kills are those of the plan, for a part that begins after so many writes.
func (p Plan) kills(before int) kills {
	k := kills{every: p.KillEvery, numbers: map[int]bool{}, before: before, how: p.Death}
	for _, n := range p.KillAt {
		k.numbers[n] = true
	}
	return k
}

// String is the plan in lines.
func (p Plan) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "SEED=%d STORY=%s, %d reconcilers, %d webhooks", p.Seed, p.Story, max(1, p.Replicas), p.Webhooks)
	switch {
	case p.KillKinds:
		b.WriteString(", killed at the first write of each kind")
	case p.KillEvery:
		fmt.Fprintf(&b, ", killed at every write, %s", p.Death)
	case len(p.KillAt) > 0:
		fmt.Fprintf(&b, ", killed at writes %v, %s", p.KillAt, p.Death)
	}
	for part, faults := range p.Faults {
		for _, f := range faults {
			fmt.Fprintf(&b, "\n  %s: %s", part, f)
		}
	}
	return b.String()
}

// command runs the plan again.
func (p Plan) command() string {
	if p.Hunt != "" {
		return fmt.Sprintf("HUNT=%s go test ./test/simulation -run Hunt", p.Hunt)
	}
	if p.Seed != 0 {
		return fmt.Sprintf("make simulation SEED=%d STORY=%s TIMES=10", p.Seed, p.Story)
	}
	return fmt.Sprintf("ALL=1 STORY=%s go test ./test/simulation -run 'Undisturbed|Killed|Known|Leader'", p.Story)
}

// Draw makes the plan of a seed for a story.
func Draw(seed uint64, story Story) Plan {
	p := Plan{Story: story.Name, Seed: seed, Webhooks: 1, Replicas: 1, Faults: map[string][]Fault{}, Death: AnswerLost}
	whole := draws(seed, story.Name)
	if whole.IntN(3) == 0 {
		p.Replicas = 2
	}
	if whole.IntN(3) == 0 {
		p.Webhooks = 2 + whole.IntN(2)
	}
	if whole.IntN(2) == 0 {
		p.Death = NextLost
	}
	for range whole.IntN(3) {
		p.KillAt = append(p.KillAt, 1+whole.IntN(80))
	}
	for _, part := range story.Parts {
		r := draws(seed, story.Name+"/"+part.Name)
		for range 1 + r.IntN(4) {
			p.Faults[part.Name] = append(p.Faults[part.Name], p.fault(r, max(2, story.Clusters)))
		}
	}
	return p
}

// draws are random numbers of a seed for some purpose.
func draws(seed uint64, purpose string) *rand.Rand {
	h := fnv.New64a()
	fmt.Fprint(h, purpose)
	return rand.New(rand.NewPCG(seed, h.Sum64()))
}

// fault draws one fault.
func (p Plan) fault(r *rand.Rand, clusters int) Fault {
	f := Fault{After: time.Duration(r.IntN(8000)) * time.Millisecond, For: time.Duration(200+r.IntN(30000)) * time.Millisecond}
	if n := r.IntN(clusters + 1); n < clusters {
		f.Host = clusterName(n)
	} else {
		f.Host = management
	}
	reconciler := fmt.Sprint(reconcilers, r.IntN(p.Replicas))
	switch f.Kind = []FaultKind{
		Hang, Refuse, Status, Slow, LoseAnswers, CutWatches, LateWatches, LateWatches, ExpireWatches, StandStill, Kill,
	}[r.IntN(11)]; f.Kind {
	case Status:
		f.Status = []int{
			http.StatusInternalServerError, http.StatusServiceUnavailable, http.StatusTooManyRequests, http.StatusConflict,
		}[r.IntN(4)]
		f.Percent = []int{0, 30}[r.IntN(2)]
	case Slow:
		f.Delay = time.Duration(100+r.IntN(5000)) * time.Millisecond
	case LateWatches:
		f.Delay = time.Duration(50+r.IntN(4000)) * time.Millisecond
	case LoseAnswers:
		f.Percent = 20
	case CutWatches:
		f.For = time.Millisecond
	case StandStill:
		f.Host, f.Process = "", reconciler
	case Kill:
		f.Host, f.For = "", 0
		f.Process = []string{reconciler, fmt.Sprint(webhooks, r.IntN(p.Webhooks))}[r.IntN(2)]
	}
	if f.Process == "" && r.IntN(3) == 0 { // one process alone is cut off
		f.Process = reconciler
	}
	return f
}
