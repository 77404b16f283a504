// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// rows is how many of the slowest packages and tests are listed.
const rows = 15

// table prints the slowest packages and tests, and where the time went.
func (r *report) table(wall time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var b strings.Builder
	packages := r.slowest(func(o result) bool { return o.test == "" })
	if len(packages) > 0 {
		fmt.Fprintf(&b, "\nslowest packages      wall       cpu\n")
	}
	for _, p := range packages {
		cpu := "" // of packages that ran alone in a call of go test
		if used, known := r.cpu[p.pkg]; known {
			cpu = fmt.Sprintf("%.1fs", used.Seconds())
		}
		fmt.Fprintf(&b, "%-15s %9.1fs %9s  %s\n", p.action, p.seconds, cpu, short(p.pkg))
	}
	tests := r.slowest(func(o result) bool { return o.test != "" && !strings.Contains(o.test, "/") })
	if len(tests) > 0 {
		fmt.Fprintf(&b, "\nslowest tests         wall\n")
	}
	for _, t := range tests {
		fmt.Fprintf(&b, "%-15s %9.1fs %9s  %s %s\n", t.action, t.seconds, "", short(t.pkg), t.test)
	}
	b.WriteString("\n" + r.waiting())
	fmt.Fprintf(&b, "total: %s of wall time, %s of CPU time\n", seconds(wall), seconds(r.cpuTotal))
	r.print(b.String())
}

// slowest returns the slowest results of some, the slowest first, without those from Go's cache.
func (r *report) slowest(of func(result) bool) []result {
	var some []result
	for _, o := range r.finished {
		if of(o) && !o.cached && o.seconds > 0 {
			some = append(some, o)
		}
	}
	slices.SortStableFunc(some, func(a, b result) int { return cmp.Compare(b.seconds, a.seconds) })
	return some[:min(rows, len(some))]
}

// waiting says how long packages waited for their fleets.
func (r *report) waiting() string {
	took, count := map[string]time.Duration{}, map[string]int{}
	for _, w := range r.waits {
		took[w.what] += w.took
		count[w.what]++
	}
	return fmt.Sprintf("waited for %d fleets to start: %s; for %d packages to be set up, most of these fleets included: %s\n",
		count["fleet"], seconds(took["fleet"]), count["set-up"], seconds(took["set-up"]))
}

// result prints which packages and tests failed, and FAIL, or ok. It reports whether all have passed. Of a call of go test that fails
// although no package did, go test has said why.
func (r *report) result(failedCalls bool) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	var failed []string
	for _, o := range r.finished {
		switch {
		case o.action != "fail":
		case o.test != "":
			failed = append(failed, fmt.Sprintf("--- FAIL: %s %s", short(o.pkg), o.test))
		default:
			failed = append(failed, "FAIL\t"+o.pkg)
		}
	}
	if len(failed) == 0 && !failedCalls {
		r.print("ok\n")
		return true
	}
	slices.Sort(failed)
	r.print(strings.Join(append(failed, "FAIL\n"), "\n"))
	return false
}

// durations returns the seconds that packages took which passed and did not come from Go's cache.
func (r *report) durations() map[string]float64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	took := map[string]float64{}
	for _, o := range r.finished {
		if o.test == "" && o.action == "pass" && !o.cached {
			took[o.pkg] = o.seconds
		}
	}
	return took
}
