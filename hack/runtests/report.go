// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// event is a line of `go test -json`: see `go doc test2json` and `go help buildjson`.
type event struct {
	Action, Package, ImportPath, Test, Output string
	Elapsed                                   float64 // seconds
}

// report prints what `go test` would print, and remembers how long everything took.
type report struct {
	verbose bool

	mu       sync.Mutex
	out      io.Writer
	printed  time.Time // when something was printed last
	running  map[string]*run
	finished []result
	cpu      map[string]time.Duration // of packages that were tested alone
	cpuTotal time.Duration
	waits    []wait
}

// run is a package whose tests run.
type run struct {
	began  time.Time
	cached bool
	output map[string]*strings.Builder // by test, "" is the package
	tests  []string                    // that run now, subtests included
	waits  []wait
}

// result is a package or a test that has ended.
type result struct {
	pkg, test, action string
	seconds           float64
	cached            bool
}

// wait is time in which a package could not test yet.
type wait struct {
	what string
	took time.Duration
}

// waited matches the lines in which test/fleet and test/env say how long tests waited for them.
var waited = regexp.MustCompile(`^(fleet|set-up) ready after (\S+)\n$`)

func newReport(out io.Writer, verbose bool) *report {
	return &report{out: out, verbose: verbose, printed: time.Now(), running: map[string]*run{}, cpu: map[string]time.Duration{}}
}

// read prints what happens in the output of one `go test -json`, until it ends. Other lines are printed as they are.
func (r *report) read(stream io.Reader) {
	lines := bufio.NewReader(stream)
	for {
		line, err := lines.ReadString('\n')
		if line != "" {
			r.line(line)
		}
		if err != nil {
			return
		}
	}
}

func (r *report) line(line string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var e event
	if !strings.HasPrefix(line, "{") || json.Unmarshal([]byte(line), &e) != nil {
		r.print(line)
		return
	}
	if e.Action == "build-output" {
		r.print(e.Output)
		return
	}
	if e.Package == "" {
		return
	}
	p := r.running[e.Package]
	if p == nil {
		p = &run{began: time.Now(), output: map[string]*strings.Builder{}}
		r.running[e.Package] = p
	}
	r.take(p, &e)
}

// take carries one event of a package out.
func (r *report) take(p *run, e *event) {
	switch e.Action {
	case "output":
		p.write(e)
	case "run", "cont":
		p.tests = append(p.tests, e.Test)
	case "pause":
		p.ended(e.Test)
	case "pass", "fail", "skip":
		if e.Test == "" {
			r.packageEnds(p, e)
			return
		}
		p.ended(e.Test)
		if e.Action == "fail" || r.verbose {
			r.flush(p, e.Test)
		}
		delete(p.output, e.Test)
		r.finished = append(r.finished, result{e.Package, e.Test, e.Action, e.Elapsed, false})
	}
}

func (p *run) ended(test string) {
	p.tests = slices.DeleteFunc(p.tests, func(t string) bool { return t == test })
}

// write keeps output until it is known whether it is printed.
func (p *run) write(e *event) {
	if found := waited.FindStringSubmatch(e.Output); found != nil {
		if took, err := time.ParseDuration(found[2]); err == nil {
			p.waits = append(p.waits, wait{found[1], took})
		}
	}
	if e.Test == "" && strings.HasPrefix(e.Output, "ok  \t") && strings.Contains(e.Output, "(cached)") {
		p.cached = true
	}
	b := p.output[e.Test]
	if b == nil {
		b = &strings.Builder{}
		p.output[e.Test] = b
	}
	b.WriteString(e.Output)
}

// flush prints the output of one test, or, of "", of the package.
func (r *report) flush(p *run, test string) {
	b := p.output[test]
	if b == nil {
		return
	}
	var text strings.Builder
	for line := range strings.Lines(b.String()) {
		if r.verbose || !marks(line) {
			text.WriteString(line)
		}
	}
	r.print(text.String())
}

// marks reports whether a line says only that a test runs, which `go test` prints with -v alone.
func marks(line string) bool {
	for _, mark := range []string{"=== RUN ", "=== PAUSE ", "=== CONT ", "=== NAME ", "=== ATTR "} {
		if strings.HasPrefix(line, mark) {
			return true
		}
	}
	return false
}

// packageEnds prints the line of a package; of one that failed all that it has printed, and the output of tests that it ended amid.
func (r *report) packageEnds(p *run, e *event) {
	if e.Action == "fail" || r.verbose {
		for _, test := range slices.Sorted(maps.Keys(p.output)) {
			if test != "" {
				r.flush(p, test)
			}
		}
		r.flush(p, "")
	} else if b := p.output[""]; b != nil {
		for line := range strings.Lines(b.String()) {
			if strings.HasPrefix(line, "ok  \t") || strings.HasPrefix(line, "?   \t") {
				r.print(line)
			}
		}
	}
	if !p.cached {
		r.waits = append(r.waits, p.waits...)
	}
	r.finished = append(r.finished, result{e.Package, "", e.Action, e.Elapsed, p.cached})
	delete(r.running, e.Package)
}

// used adds the CPU time of a job: that of go test, the tests, and the control planes that they started.
func (r *report) used(j job, cpu time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cpuTotal += cpu
	if len(j.packages) == 1 {
		r.cpu[j.packages[0]] = cpu
	}
}

// watch prints what runs whenever nothing was printed for a while.
func (r *report) watch(stop <-chan struct{}) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-stop:
			return
		case now := <-tick.C:
			r.mu.Lock()
			if now.Sub(r.printed) >= silence {
				r.print(r.progress(now) + "\n")
			}
			r.mu.Unlock()
		}
	}
}

// progress says what runs.
func (r *report) progress(now time.Time) string {
	var parts []string
	for _, path := range slices.Sorted(maps.Keys(r.running)) {
		p := r.running[path]
		part := fmt.Sprintf("%s for %s", short(path), seconds(now.Sub(p.began)))
		if n := len(p.tests); n > 0 {
			part += " in " + p.tests[n-1]
		}
		parts = append(parts, part)
	}
	if len(parts) == 0 {
		return "… compiling"
	}
	return "… testing " + strings.Join(parts, ", ")
}

// say prints a line.
func (r *report) say(line string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.print(line + "\n")
}

func (r *report) print(text string) {
	if text != "" {
		r.printed = time.Now()
		fmt.Fprint(r.out, text)
	}
}

// short is a package's path without that of the main module.
func short(path string) string { return strings.TrimPrefix(path, "shipper.dev/shipper/") }

// seconds is a duration for people.
func seconds(d time.Duration) string { return d.Round(time.Second).String() }
