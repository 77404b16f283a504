// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"shipper.dev/shipper/test/await"
)

// printer prints the story and holds it to its word.
type printer struct {
	out   io.Writer
	start time.Time
	facts int // lines shown that were checked
}

// chapter opens a part of the story.
func (t *printer) chapter(number int, title string) {
	fmt.Fprintf(t.out, "\n%d. %s\n", number, title)
}

// fact prints a line that was just found to be true, with the time since the beginning.
func (t *printer) fact(format string, args ...any) {
	t.facts++
	fmt.Fprintf(t.out, "%7.1fs  %s\n", time.Since(t.start).Seconds(), fmt.Sprintf(format, args...))
}

// command prints a command as a user would type it.
func (t *printer) command(name string, args ...string) {
	words := append([]string{name}, args...)
	for i, w := range words {
		if strings.ContainsAny(w, " {}\"") {
			words[i] = "'" + w + "'"
		}
	}
	fmt.Fprintf(t.out, "          $ %s\n", strings.Join(words, " "))
}

// output prints what a command printed.
func (t *printer) output(text string) {
	for line := range strings.SplitSeq(strings.TrimRight(text, "\n"), "\n") {
		fmt.Fprintf(t.out, "          %s\n", line)
	}
}

// errExpectation marks a difference between what the story promised and what an API server said.
var errExpectation = errors.New("expectation not met")

// differs says what was expected and what was seen instead.
func differs(what, expected, seen string) error {
	return fmt.Errorf("%w: %s\n  expected: %s\n  seen:     %s", errExpectation, what, expected, seen)
}

// await looks every 50 ms until what is seen is what was expected, or fails with both when the time is over.
func (t *printer) await(
	ctx context.Context, within time.Duration, what, expected string, look func(context.Context) (string, error),
) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	report := await.ProgressEach(5*time.Second, func(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }, what)
	seen := "nothing yet"
	for {
		now, err := look(ctx)
		if err == nil && now == expected {
			return nil
		}
		if ctx.Err() == nil {
			seen = now
			if err != nil {
				seen = err.Error()
			}
			report(errors.New(seen))
		}
		select {
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.Canceled) {
				return ctx.Err()
			}
			return differs(fmt.Sprintf("%s, within %s", what, within), expected, seen)
		case <-tick.C:
		}
	}
}

// exe is a program the story runs as a user would.
type exe struct {
	name string // as the story prints it
	path string
	env  []string
}

// run runs the program and returns what it printed on both outputs.
func (e exe) run(ctx context.Context, stdin string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, e.path, args...)
	cmd.Env = e.env
	cmd.Stdin = strings.NewReader(stdin)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	return out.String(), err
}

// show runs the program, prints the command and its output, and fails when the program does.
func (t *printer) show(ctx context.Context, e exe, args ...string) (string, error) {
	t.command(e.name, args...)
	out, err := e.run(ctx, "", args...)
	t.output(out)
	if err != nil {
		return out, fmt.Errorf("running %s %s: %w", e.name, strings.Join(args, " "), err)
	}
	return out, nil
}

// refused runs a program that must be refused in words that contain all of parts.
func (t *printer) refused(ctx context.Context, e exe, parts []string, args ...string) error {
	t.command(e.name, args...)
	out, err := e.run(ctx, "", args...)
	t.output(out)
	if err == nil {
		return differs(e.name+" "+strings.Join(args, " "), "a refusal", "it went through")
	}
	for _, part := range parts {
		if !strings.Contains(out, part) {
			return differs("the refusal", "it says "+part, strings.TrimSpace(out))
		}
	}
	return nil
}
