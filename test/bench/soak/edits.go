// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"shipper.dev/shipper/test/bench/world"
)

// editors is how many edit at the same time. Each has Applications of its own.
const editors = 8

// editor is one of the concurrent editors.
type editor struct {
	*soak
	random *rand.Rand
	keys   []client.ObjectKey
	made   int // versions
	done   *course
}

// course is what has been done so far.
type course struct {
	mu      sync.Mutex
	edits   map[string]int
	refused map[string]int // by the reason of the answer
	errs    []error
	down    map[int]bool // clusters that are not there now
}

// kinds are all edits, each as often as its weight says.
var kinds = []struct {
	name   string
	weight int
	do     func(*editor, context.Context, client.ObjectKey) error
}{
	{"upgrade", 20, (*editor).upgrade},
	{"upgrade to an image that cannot be pulled", 2, (*editor).breakImage},
	{"other number of replicas", 8, (*editor).scale},
	{"step", 30, (*editor).step},
	{"abort", 6, (*editor).abort},
	{"rollback", 6, (*editor).rollback},
	{"block of a namespace, lifted a while later", 4, (*editor).block},
	{"block of everything, lifted a moment later", 1, (*editor).blockAll},
	{"Pod deleted", 15, (*editor).deletePod},
	{"Deployment scaled by a user", 4, (*editor).meddle},
	{"Application deleted and created again", 4, (*editor).renew},
}

// edit edits until the time is over. Its error is that of who cannot go on.
func (s *soak) edit(ctx context.Context) (*course, error) {
	c := &course{edits: map[string]int{}, refused: map[string]int{}, down: map[int]bool{}}
	bounded, cancel := context.WithTimeout(ctx, s.time)
	defer cancel()
	faults := make(chan error, 1)
	go func() { faults <- s.disturb(ctx, bounded, c) }()
	err := world.InParallel(editors, func(i int) error {
		e := &editor{soak: s, random: rand.New(rand.NewPCG(s.seed, uint64(i))), done: c}
		for n := i; n < len(s.keys); n += editors {
			e.keys = append(e.keys, s.keys[n])
		}
		for bounded.Err() == nil && len(e.keys) > 0 {
			e.one(ctx)
			e.pass(bounded, time.Duration(e.random.Int64N(int64(2*editors*s.every))))
		}
		return ctx.Err()
	})
	return c, errors.Join(err, <-faults)
}

// one makes one edit of one Application.
func (e *editor) one(ctx context.Context) {
	key := e.keys[e.random.IntN(len(e.keys))]
	total := 0
	for _, k := range kinds {
		total += k.weight
	}
	n := e.random.IntN(total)
	for _, k := range kinds {
		if n -= k.weight; n < 0 {
			e.done.note(k.name, key, k.do(e, ctx, key))
			return
		}
	}
}

// pass lets time pass.
func (e *editor) pass(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// note counts an edit. A conflict, a missing object and a refusal by a block are expected answers.
func (c *course) note(name string, key client.ObjectKey, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.edits[name]++
	switch {
	case err == nil:
	case apierrors.IsForbidden(err) && strings.Contains(err.Error(), "blocked by"):
		c.refused["blocked"]++
	case apierrors.IsConflict(err), apierrors.IsNotFound(err), apierrors.IsAlreadyExists(err), apierrors.IsInvalid(err),
		errors.Is(err, errNothing):
		c.refused["meanwhile it was otherwise"]++
	default:
		c.errs = append(c.errs, fmt.Errorf("%s, %s: %w", key, name, err))
	}
}

// missed is what edits were answered that they should not have been.
func (c *course) missed() error {
	if len(c.errs) == 0 {
		return nil
	}
	return fmt.Errorf("%d edits were not answered as they should be:\n%w", len(c.errs), errors.Join(c.errs[:min(len(c.errs), 10)]...))
}

// String reports how many edits there were of each kind.
func (c *course) String() string {
	all := 0
	for _, n := range c.edits {
		all += n
	}
	lines := []string{fmt.Sprintf("%d edits:", all)}
	for _, names := range []map[string]int{c.edits, c.refused} {
		for _, name := range slices.Sorted(maps.Keys(names)) {
			lines = append(lines, fmt.Sprintf("  %5d  %s", names[name], name))
		}
		lines = append(lines, "of these refused:")
	}
	return strings.Join(lines[:len(lines)-1], "\n")
}
