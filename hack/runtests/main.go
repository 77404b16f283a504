// SPDX-License-Identifier: Apache-2.0

// Command runtests runs the tests of all modules, the longest packages first, and prints what `go test` prints, with the output of a test
// as soon as it fails. At the end it prints a table of the slowest packages and tests. Its exit code is 1 when a test failed.
//
// It runs `go test` once for each slow package and once for each group of fast ones. As many of them run at a time as -slots says, and one
// more that starts no control planes, with a low priority. Arguments are flags for `go test`:
//
//	go run ./hack/runtests -slots 2 -only test/e2e,test/certmanager -- -run TestRollout -v
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// silence is how long nothing may be printed until a line says what runs.
const silence = 30 * time.Second

// graceTimeout is how long tests may take to end their clusters when they are interrupted.
const graceTimeout = 30 * time.Second

// interrupted is the exit code of a program that a signal has ended.
const interrupted = 130

func main() {
	slots := flag.Int("slots", 2, "number of packages that are tested at a time, besides one without control planes")
	only := flag.String("only", "", "folders of the packages to test, with commas between them; default: all")
	order := flag.String("order", "hack/test-order", "file with the durations of slow packages, for a machine that has not run the tests yet")
	flag.Parse()
	if *slots < 1 {
		fmt.Fprintf(os.Stderr, "runtests: -slots is %d, and has to be 1 or more\n", *slots)
		os.Exit(1)
	}
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer cancel()
	s := &suite{slots: *slots, only: *only, flags: flag.Args(), out: os.Stdout, recorded: recordFile(), checkedIn: *order}
	ok, err := s.run(ctx)
	switch {
	case ctx.Err() != nil:
		os.Exit(interrupted)
	case err != nil:
		fmt.Fprintln(os.Stderr, "runtests:", err)
		os.Exit(1)
	case !ok:
		os.Exit(1)
	}
}

// recordFile is where the durations of the last run are kept, or "" if there is no such place.
func recordFile() string {
	cache, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	return filepath.Join(cache, "shipper", "test-times")
}

// suite is one run of all tests.
type suite struct {
	slots               int
	only                string
	flags               []string // for go test
	out                 io.Writer
	recorded, checkedIn string // files with durations
}

// run runs the tests and reports whether all have passed.
func (s *suite) run(ctx context.Context) (bool, error) {
	began := time.Now()
	r := newReport(s.out, talkative(s.flags))
	stop := make(chan struct{})
	defer close(stop)
	go r.watch(stop)
	if s.only == "" {
		r.say("compiling the tests (a cold build takes some minutes)")
		if err := compile(ctx); err != nil {
			r.say(fmt.Sprintf("compiling: %v", err)) // the tests say what is wrong
		}
	}
	known, err := durations(s.checkedIn, s.recorded)
	if err != nil {
		return false, err
	}
	packages, err := list(ctx)
	if err != nil {
		return false, err
	}
	if packages, err = chosen(packages, s.only); err != nil {
		return false, err
	}
	jobs := plan(packages, known)
	r.say(fmt.Sprintf("testing %d packages after %s, %d at a time", len(packages), seconds(time.Since(began)), s.slots))
	failed := s.work(ctx, r, jobs)
	r.table(time.Since(began))
	if s.recorded != "" && s.only == "" && complete(s.flags) {
		if err := record(s.recorded, r.durations()); err != nil {
			return false, err
		}
	}
	return r.result(failed), nil
}

// work runs the jobs, and reports whether a command failed. Jobs that start control planes take a slot and leave processors idle while
// they wait. One more worker uses these for jobs that start none.
func (s *suite) work(ctx context.Context, r *report, jobs []job) (failed bool) {
	left := &queue{jobs: jobs}
	var failures atomic.Bool
	var wg sync.WaitGroup
	for slot := range s.slots + 1 {
		wg.Go(func() {
			for ctx.Err() == nil {
				j, found := left.next(slot < s.slots)
				if !found {
					return
				}
				if err := s.test(ctx, r, j); err != nil {
					failures.Store(true)
				}
			}
		})
	}
	wg.Wait()
	return failures.Load()
}

// test runs go test for one job.
func (s *suite) test(ctx context.Context, r *report, j job) error {
	args := []string{"test", "-json", "-p", "1", "-vet=off", "-timeout", "40m"} // what vet would say the linter says: hack/verify-lint.sh
	if j.module != "." {
		args = append(args, "-count=1") // Go does not notice that files outside of a module, which these tests read, have changed
	}
	cmd := exec.CommandContext(ctx, "go", append(append(args, s.flags...), j.packages...)...)
	if !j.fleet { // it computes all the time, and would delay the control planes of others, and fill the memory beside them
		cmd = exec.CommandContext(ctx, "nice", append([]string{"-n", "5"}, cmd.Args...)...)
		if os.Getenv("GOMEMLIMIT") == "" {
			cmd.Env = append(os.Environ(), "GOMEMLIMIT=1500MiB") // chart/render/engine takes 2.0 GB with it, 3.9 GB without
		}
	}
	cmd.Dir, cmd.Stderr = j.module, os.Stderr
	// go test does not pass a signal on to the test, which ends its clusters: a terminal sends it to the whole group.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error {
		time.AfterFunc(graceTimeout, func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) })
		return syscall.Kill(-cmd.Process.Pid, syscall.SIGINT)
	}
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		return fmt.Errorf("reading the output of go test: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("starting go test: %w", err)
	}
	r.read(pipe)
	err = cmd.Wait()
	r.used(j, cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime())
	return err
}

// talkative reports whether the flags ask for the output of tests that pass.
func talkative(flags []string) bool {
	return has(flags, "v") || has(flags, "bench") || has(flags, "list")
}

// complete reports whether all tests run to their end, so that the durations say something of the next run.
func complete(flags []string) bool {
	for _, name := range []string{"run", "skip", "short", "list", "bench", "count", "failfast"} {
		if has(flags, name) {
			return false
		}
	}
	return true
}

// has reports whether a flag is among the arguments, with a value or without.
func has(flags []string, name string) bool {
	for _, f := range flags {
		f, _, _ = strings.Cut(f, "=")
		f, is := strings.CutPrefix(f, "-")
		f = strings.TrimPrefix(strings.TrimPrefix(f, "-"), "test.")
		if is && f == name {
			return true
		}
	}
	return false
}
