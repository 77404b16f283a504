// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
)

const (
	// often is how many times an error may be logged, if only names and numbers are other, before it is one that repeats.
	often = 10
	shown = 8   // of what was said
	width = 220 // of what is no error: of these the end says what was wrong
)

// said is how often lines were logged that are alike but for names and numbers.
type said struct {
	errors, others map[string]int
}

// read reads the logs of Shipper from where the edits began: before, it was being installed.
func (s *soak) read() (said, error) {
	out := said{errors: map[string]int{}, others: map[string]int{}}
	for _, p := range s.processes() {
		text, err := os.ReadFile(p.Log)
		if err == nil {
			err = out.take(p.Name, bytes.NewReader(text[s.begun[p.Name]:]))
		}
		if err != nil {
			return out, fmt.Errorf("reading the log of %s: %w", p.Name, err)
		}
	}
	return out, nil
}

// listen remembers how long the logs are.
func (s *soak) listen() error {
	s.begun = map[string]int64{}
	for _, p := range s.processes() {
		info, err := os.Stat(p.Log)
		if err != nil {
			return fmt.Errorf("reading the log of %s: %w", p.Name, err)
		}
		s.begun[p.Name] = info.Size()
	}
	return nil
}

// take counts the lines of a log.
func (s said) take(process string, log io.Reader) error {
	lines := bufio.NewScanner(log)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var line struct {
			Level, Logger, Controller, Msg, Error, Reason string
		}
		if json.Unmarshal(lines.Bytes(), &line) != nil { // not a line of Shipper's log: the output of a crash
			s.errors[process+": "+alike(lines.Text())]++
			continue
		}
		text := []string{process, cmp.Or(line.Controller, line.Logger), line.Msg, cmp.Or(line.Error, line.Reason)}
		text = slices.DeleteFunc(text, func(s string) bool { return s == "" })
		if line.Level == "error" {
			s.errors[alike(strings.Join(text, ": "))]++
		} else {
			s.others[cut(alike(strings.Join(text, ": ")))]++
		}
	}
	return lines.Err()
}

// particular are names of objects and clusters, times, addresses and numbers.
var particular = regexp.MustCompile(
	`\b(soak|app|cluster)(-[0-9a-z]+)+\b|\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b|\b[0-9][0-9.:µnm]*s?\b`)

// alike is a line without what is particular to it.
func alike(line string) string {
	return particular.ReplaceAllString(line, "·")
}

// cut is a line no longer than it need be to know it again.
func cut(line string) string {
	if runes := []rune(line); len(runes) > width {
		return string(runes[:width]) + "…"
	}
	return line
}

// String lists what was said most often.
func (s said) String() string {
	var out strings.Builder
	fmt.Fprintf(&out, "%d errors in the logs\n", total(s.errors))
	for _, lines := range []map[string]int{s.errors, s.others} {
		for i, line := range byCount(lines) {
			if i == shown {
				break
			}
			fmt.Fprintf(&out, "  %5d  %s\n", lines[line], line)
		}
	}
	return out.String()
}

// missed are the errors that repeat.
func (s said) missed() error {
	var errs []error
	for _, line := range byCount(s.errors) {
		if s.errors[line] > often {
			errs = append(errs, fmt.Errorf("an error was logged %d times: %s", s.errors[line], line))
		}
	}
	return errors.Join(errs...)
}

func byCount(of map[string]int) []string {
	return slices.SortedFunc(maps.Keys(of), func(a, b string) int { return cmp.Or(of[b]-of[a], cmp.Compare(a, b)) })
}

func total(of map[string]int) int {
	n := 0
	for _, count := range of {
		n += count
	}
	return n
}
