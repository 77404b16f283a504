// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/google/pprof/profile"
)

// profiled is how long a profile of the processors takes. Of work that takes less, there is none.
const profiled = 10 * time.Second

// profile samples the reconciler's use of time, after its first rollouts.
func (s *simulation) profile(ctx context.Context, what string) error {
	pass(ctx, time.Second)
	var raw bytes.Buffer
	err := s.reconciler.get(ctx, fmt.Sprintf("%s/debug/pprof/profile?seconds=%d", s.reconciler.Profiles, int(profiled.Seconds())), &raw)
	if ctx.Err() != nil {
		return nil //nolint:nilerr // the work was done before
	}
	if err != nil {
		return err
	}
	if s.profiles != "" {
		name := filepath.Join(s.profiles, strings.ReplaceAll(what, " ", "-")+".pprof")
		if err := os.WriteFile(name, raw.Bytes(), 0o600); err != nil {
			return fmt.Errorf("keeping a profile: %w", err)
		}
	}
	p, err := profile.Parse(&raw)
	if err != nil {
		return fmt.Errorf("reading a profile: %w", err)
	}
	s.tell("%s, of the processors' time: %s", what, shares(p))
	return nil
}

// heap keeps a profile of the reconciler's memory for who wants it.
func (s *simulation) heap(ctx context.Context, name string) error {
	if s.profiles == "" {
		return nil
	}
	file, err := os.Create(filepath.Join(s.profiles, name+".pprof"))
	if err != nil {
		return fmt.Errorf("keeping a profile: %w", err)
	}
	defer file.Close()
	return s.reconciler.get(ctx, s.reconciler.Profiles+"/debug/pprof/heap?gc=1", file)
}

// shares says whose how much of the time was.
func shares(p *profile.Profile) string {
	whose, all := map[string]int64{}, int64(0)
	for _, sample := range p.Sample {
		spent := sample.Value[len(sample.Value)-1]
		whose[part(sample)] += spent
		all += spent
	}
	var out []string
	for _, name := range slices.SortedFunc(maps.Keys(whose), func(a, b string) int { return cmp.Compare(whose[b], whose[a]) }) {
		if percent := 100 * whose[name] / max(all, 1); percent > 0 {
			out = append(out, fmt.Sprintf("%s %d %%", name, percent))
		}
	}
	return strings.Join(out, ", ")
}

// working is a reconciler whose work it is, in a pass or in one of the clusters of a pass.
var working = regexp.MustCompile(
	`^shipper\.dev/shipper/reconciler/(?:member/)?(rollout|installation|capacity|traffic|targetstatus|artifact|cluster|rolloutblock)\b`)

// kinds of work that is no reconciler's, by what is called, in the order in which it is looked for.
var kinds = []struct{ called, name string }{
	{"runtime.gcBgMarkWorker", "collecting garbage"},
	{"k8s.io/client-go/tools/cache.(*Reflector)", "reading watches"},
	{"k8s.io/client-go/tools/cache.", "seeing what changes mean"},
	{"shipper.dev/shipper/reconciler/recorder.", "recording events"},
	{"net/http", "HTTP"},
}

// outermost is how many functions of a stack show whose goroutine it is: deeper down, all read caches and speak HTTP.
const outermost = 8

// part is whose a sample is.
func part(sample *profile.Sample) string {
	var stack []string // the outermost first
	for _, location := range slices.Backward(sample.Location) {
		for _, line := range slices.Backward(location.Line) {
			if line.Function != nil {
				stack = append(stack, line.Function.Name)
			}
		}
	}
	for _, kind := range kinds {
		if len(stack) > 0 && slices.ContainsFunc(stack[:min(len(stack), outermost)], func(function string) bool {
			return strings.HasPrefix(function, kind.called)
		}) {
			return kind.name
		}
	}
	for _, function := range stack {
		if m := working.FindStringSubmatch(function); m != nil {
			return m[1]
		}
	}
	return "the rest"
}
