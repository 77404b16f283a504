// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

const pkg = "./test/simulation"

// hunter hunts for mutations.
type hunter struct {
	root, dir string
	seeds     int
	limit     time.Duration
}

// result is what came of one hunt.
type result struct {
	Story  string `json:"story"`
	Plan   string `json:"plan"`
	Broken string `json:"broken"`

	built, ran time.Duration
	output     string
}

func main() {
	h := hunter{}
	only := flag.String("only", "", "run the mutations alone whose names contain this text; default: all")
	flag.StringVar(&h.root, "root", ".", "root of the module")
	flag.IntVar(&h.seeds, "seeds", 20, "how many plans of a kind are tried at most")
	flag.DurationVar(&h.limit, "limit", 10*time.Minute, "how long one hunt may last")
	sound := flag.Bool("sound", true, "run the same without mutation at the end: no law may be broken")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := h.all(ctx, *only, *sound); err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(1)
	}
}

// all hunts for each mutation, and fails if one survives.
func (h hunter) all(ctx context.Context, only string, sound bool) error {
	root, err := filepath.Abs(h.root)
	if err != nil {
		return err
	}
	h.root = root
	if h.dir, err = os.MkdirTemp("", "mutate"); err != nil {
		return err
	}
	defer os.RemoveAll(h.dir)
	var hunts, survive []string
	for _, m := range mutations {
		if !strings.Contains(m.name, only) {
			continue
		}
		hunts = append(hunts, m.hunt)
		r, err := h.hunt(ctx, m)
		if err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
		fmt.Printf("%s (law %d is to be broken; built in %.0f s, ran %.0f s)\n  %s\n", m.name, m.law, r.built.Seconds(), r.ran.Seconds(), r)
		if r.Broken == "" {
			survive = append(survive, m.name)
		}
	}
	if len(hunts) == 0 {
		return fmt.Errorf("no name of a mutation contains %q", only)
	}
	if sound {
		r, err := h.run(ctx, nil, strings.Join(unique(hunts), ","))
		if err != nil {
			return fmt.Errorf("without mutation: %w", err)
		}
		fmt.Printf("without mutation (ran %.0f s)\n  %s\n", r.ran.Seconds(), r)
		if r.Broken != "" {
			return errors.New("a law is broken without mutation:\n" + r.output)
		}
	}
	if len(survive) > 0 {
		return fmt.Errorf("%d mutations survive:\n  %s", len(survive), strings.Join(survive, "\n  "))
	}
	return nil
}

// unique are the parts of lists that are separated by commas.
func unique(lists []string) (out []string) {
	seen := map[string]bool{}
	for _, list := range lists {
		for one := range strings.SplitSeq(list, ",") {
			if !seen[one] {
				seen[one] = true
				out = append(out, one)
			}
		}
	}
	return out
}

// String is what was found.
func (r result) String() string {
	if r.Broken == "" {
		return "no law is broken"
	}
	plan, _, _ := strings.Cut(r.Plan, "\n")
	broken, _, _ := strings.Cut(r.Broken, "\n")
	return fmt.Sprintf("found by %s: %.200s", plan, broken)
}

// hunt hunts for one mutation.
func (h hunter) hunt(ctx context.Context, m mutation) (result, error) {
	text, err := m.source(h.root)
	if err != nil {
		return result{}, err
	}
	mutated, overlay := filepath.Join(h.dir, "mutated.go"), filepath.Join(h.dir, "overlay.json")
	raw, err := json.Marshal(map[string]map[string]string{"Replace": {filepath.Join(h.root, m.file): mutated}})
	if err != nil {
		return result{}, err
	}
	if err := errors.Join(os.WriteFile(mutated, []byte(text), 0o600), os.WriteFile(overlay, raw, 0o600)); err != nil {
		return result{}, err
	}
	return h.run(ctx, []string{"-overlay", overlay}, m.hunt)
}

// run builds the simulation and hunts.
func (h hunter) run(ctx context.Context, build []string, hunt string) (r result, err error) {
	binary, found := filepath.Join(h.dir, "simulation.test"), filepath.Join(h.dir, "found.json")
	if err := os.RemoveAll(found); err != nil {
		return r, err
	}
	began := time.Now()
	compile := exec.CommandContext(ctx, "go", append(append([]string{"test", "-c", "-o", binary}, build...), pkg)...)
	compile.Dir = h.root
	if out, err := compile.CombinedOutput(); err != nil {
		return r, fmt.Errorf("building: %w\n%s", err, out)
	}
	r.built = time.Since(began)
	began = time.Now()
	ctx, cancel := context.WithTimeout(ctx, h.limit)
	defer cancel()
	test := exec.CommandContext(ctx, binary, "-test.run", "^TestHunt$", "-test.parallel", "2")
	test.Dir = filepath.Join(h.root, pkg)
	test.Env = append(os.Environ(), "HUNT="+hunt, "HUNT_FOUND="+found, "SEEDS="+strconv.Itoa(h.seeds))
	var out bytes.Buffer
	test.Stdout, test.Stderr = &out, &out
	failed := test.Run()
	r.ran, r.output = time.Since(began), out.String()
	switch raw, err := os.ReadFile(found); {
	case err == nil:
		return r, json.Unmarshal(raw, &r)
	case ctx.Err() != nil:
		return r, fmt.Errorf("the hunt was not over after %s", h.limit)
	case failed != nil:
		return r, fmt.Errorf("no law is broken, and the test fails otherwise: %w\n%.20000s", failed, r.output)
	}
	return r, nil
}
