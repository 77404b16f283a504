// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

const (
	// slow is the duration in seconds from which a package is a job of its own.
	slow = 10
	// together is how many of the fast packages are one job. A job of its own for each would cost a second more for each.
	together = 25
)

// fleetPath is what a package imports that may start control planes.
const fleetPath = "shipper.dev/shipper/test/fleet"

// pkg is a package, the folder of its module, and whether its tests may start control planes.
type pkg struct {
	module, path string
	fleet        bool
}

// job is one call of go test. If it may start control planes, it needs a slot, and waits for them most of the time.
type job struct {
	module   string
	packages []string
	fleet    bool
	seconds  float64 // how long it took last time
}

// plan orders the packages: the slow ones and the other modules first, the longest of them first, then the fast ones in groups.
// A slow package that starts last would run alone while the other slots are idle.
func plan(packages []pkg, known map[string]float64) []job {
	var slowOnes, groups []job
	modules, fast := map[string]*job{}, map[bool]job{}
	for _, p := range packages {
		switch {
		case p.module != ".":
			j := modules[p.module]
			if j == nil {
				j = &job{module: p.module}
				modules[p.module] = j
			}
			j.packages, j.fleet = append(j.packages, p.path), j.fleet || p.fleet
			j.seconds += known[p.path]
		case known[p.path] >= slow:
			slowOnes = append(slowOnes, job{".", []string{p.path}, p.fleet, known[p.path]})
		default:
			group := job{module: ".", packages: append(fast[p.fleet].packages, p.path), fleet: p.fleet}
			if len(group.packages) == together {
				groups, group = append(groups, group), job{}
			}
			fast[p.fleet] = group
		}
	}
	for _, fleet := range []bool{true, false} {
		if len(fast[fleet].packages) > 0 {
			groups = append(groups, fast[fleet])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(modules)) {
		slowOnes = append(slowOnes, *modules[name])
	}
	slices.SortStableFunc(slowOnes, func(a, b job) int { return cmp.Compare(b.seconds, a.seconds) })
	return append(slowOnes, groups...)
}

// queue has the jobs that are left.
type queue struct {
	mu   sync.Mutex
	jobs []job
}

// next removes a job and returns it: in a slot the first that starts control planes, or any when all of these run; elsewhere the first
// that starts none.
func (q *queue) next(slot bool) (j job, found bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	i := slices.IndexFunc(q.jobs, func(j job) bool { return j.fleet == slot })
	if i < 0 && slot && len(q.jobs) > 0 {
		i = 0
	}
	if i < 0 {
		return job{}, false
	}
	j = q.jobs[i]
	q.jobs = slices.Delete(q.jobs, i, i+1)
	return j, true
}

// list returns the packages of all modules.
func list(ctx context.Context) ([]pkg, error) {
	modules, err := output(ctx, ".", "hack/modules.sh")
	if err != nil {
		return nil, err
	}
	var all []pkg
	for _, m := range modules {
		packages, err := listModule(ctx, m, "./...")
		if err != nil {
			return nil, err
		}
		all = append(all, packages...)
	}
	return all, nil
}

// listed prints the packages of a module and their test binaries, and the word fleet after each of them that imports test/fleet.
const listed = `{{if not .ForTest}}{{.ImportPath}}{{range .Deps}}` +
	`{{if or (eq . "` + fleetPath + `") (eq . "` + fleetPath + " [" + fleetPath + `.test]")}} fleet{{end}}{{end}}{{end}}`

// listModule returns packages of one module, also those that do not compile: their tests say why.
func listModule(ctx context.Context, module string, patterns ...string) ([]pkg, error) {
	words, err := output(ctx, module, "go", append([]string{"list", "-e", "-test", "-f", listed}, patterns...)...)
	if err != nil {
		return nil, err
	}
	var all []pkg
	fleets := map[string]bool{}
	for i, word := range words {
		path, test := strings.CutSuffix(word, ".test")
		switch {
		case word == "fleet":
			fleets[words[i-1]] = true
		case !test:
			all = append(all, pkg{module: module, path: path})
		}
	}
	for i := range all {
		all[i].fleet = fleets[all[i].path+".test"]
	}
	return all, nil
}

// chosen are the packages in folders, or all if there is none.
func chosen(packages []pkg, folders string) ([]pkg, error) {
	if folders == "" {
		return packages, nil
	}
	var out []pkg
	for folder := range strings.SplitSeq(folders, ",") {
		i := slices.IndexFunc(packages, func(p pkg) bool { return short(p.path) == folder })
		if i < 0 {
			return nil, fmt.Errorf("there is no package in %q", folder)
		}
		out = append(out, packages[i])
	}
	return out, nil
}

// compile compiles the main module's tests without linking them. The calls of go test that follow run side by side, and would compile the
// same packages twice.
func compile(ctx context.Context) error {
	cmd := exec.CommandContext(ctx, "go", "list", "-export", "-test", "-deps", "-f", "", "./...")
	if os.Getenv("GOGC") == "" {
		cmd.Env = append(os.Environ(), "GOGC=400") // as in hack/cached.sh
	}
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w\n%s", err, text)
	}
	return nil
}

// output returns the lines that a command prints.
func output(ctx context.Context, folder, name string, args ...string) ([]string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Stderr = folder, os.Stderr
	text, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s %s in %s: %w", name, strings.Join(args, " "), folder, err)
	}
	return strings.Fields(string(text)), nil
}

// durations reads files with the seconds that packages took, the later file winning. A file may be missing.
func durations(files ...string) (map[string]float64, error) {
	known := map[string]float64{}
	for _, name := range files {
		f, err := os.Open(name)
		if name == "" || errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("reading how long packages took: %w", err)
		}
		defer f.Close()
		lines := bufio.NewScanner(f)
		for lines.Scan() {
			if strings.HasPrefix(lines.Text(), "#") || strings.TrimSpace(lines.Text()) == "" {
				continue
			}
			var took float64
			var path string
			if _, err := fmt.Sscan(lines.Text(), &took, &path); err != nil {
				return nil, fmt.Errorf("%s: %q is not a number of seconds and a package: %w", name, lines.Text(), err)
			}
			known[path] = took
		}
		if err := lines.Err(); err != nil {
			return nil, fmt.Errorf("reading %s: %w", name, err)
		}
	}
	return known, nil
}

// record adds durations to a file.
func record(name string, took map[string]float64) error {
	all, err := durations(name)
	if err != nil {
		return err
	}
	maps.Copy(all, took)
	var text strings.Builder
	for _, path := range slices.Sorted(maps.Keys(all)) {
		fmt.Fprintf(&text, "%.1f %s\n", all[path], path)
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return fmt.Errorf("keeping how long packages took: %w", err)
	}
	if err := os.WriteFile(name+".new", []byte(text.String()), 0o600); err != nil {
		return fmt.Errorf("keeping how long packages took: %w", err)
	}
	return os.Rename(name+".new", name)
}
