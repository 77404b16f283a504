// SPDX-License-Identifier: Apache-2.0

// Package health has `shipperctl doctor`: it finds faults of an installation and of its clusters, with their effect and remedy.
// Functions that read ask API servers; functions that decide are pure.
package health

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"shipper.dev/shipper/cmd/shipperctl/screen"
)

// Level is how bad a finding is.
type Level string

// The levels.
const (
	// levelBroken is a present fault.
	levelBroken Level = "BROKEN"
	// levelWarning is a coming fault, or an unusual setting.
	levelWarning Level = "warning"
)

// Finding is something that is wrong.
type Finding struct {
	Level Level `json:"level"`
	// What describes the fault.
	What string `json:"what"`
	// Why it matters.
	Why string `json:"why"`
	// Do is the remedy.
	Do string `json:"do"`

	// Denied are the rights of the user whose absence is all that was found.
	Denied []string `json:"-"`
}

func broken(what, why, do string) Finding {
	return Finding{Level: levelBroken, What: what, Why: why, Do: do}
}

func warning(what, why, do string) Finding {
	return Finding{Level: levelWarning, What: what, Why: why, Do: do}
}

// Check has the findings about one thing; none when it is well.
type Check struct {
	// Title names the thing.
	Title    string    `json:"title"`
	Findings []Finding `json:"findings"`
}

// Report has the findings about several things, as `-o json` prints them.
type Report struct {
	// Broken and Warnings count findings.
	Broken   int     `json:"broken"`
	Warnings int     `json:"warnings"`
	Checks   []Check `json:"checks"`
}

// Sum counts findings.
func Sum(checks []Check) Report {
	r := Report{Checks: make([]Check, 0, len(checks))}
	for _, c := range checks {
		c.Findings = append([]Finding{}, c.Findings...)
		for _, f := range c.Findings {
			if f.Level == levelBroken {
				r.Broken++
			} else {
				r.Warnings++
			}
		}
		r.Checks = append(r.Checks, c)
	}
	return r
}

// Text is the report for people, in lines of some columns; 0 are unbounded.
func (r Report) Text(width int) string {
	var out strings.Builder
	for _, c := range r.Checks {
		if len(c.Findings) == 0 {
			fmt.Fprintf(&out, "%-8s %s\n", "ok", c.Title)
		}
		for _, f := range c.Findings {
			writeFinding(&out, fmt.Sprintf("%-8s ", f.Level), c.Title+": "+f.What, width)
			writeFinding(&out, fmt.Sprintf("%-8s   why: ", ""), f.Why, width)
			writeFinding(&out, fmt.Sprintf("%-8s   do:  ", ""), f.Do, width)
		}
	}
	return out.String()
}

// further is how far lines are indented that a text has itself.
const further = 16

// writeFinding writes a text of several lines behind a mark.
func writeFinding(out *strings.Builder, mark, text string, width int) {
	for line := range strings.SplitSeq(text, "\n") {
		out.WriteString(screen.Hang(mark, line, width))
		mark = strings.Repeat(" ", further)
	}
}

// unreadable is the finding about an object that could not be read.
func unreadable(what string, err error) Finding {
	f := broken(fmt.Sprintf("%s cannot be read: %v", what, err), unknown, asAdministrator)
	if right := deniedBy(err); right != "" {
		f.Denied = []string{right}
	}
	return f
}

// The effect and remedy of every object that may not be read.
const (
	unknown         = "nothing is known about it"
	asAdministrator = "run this again as a user who may read it; an administrator may"
)

// access matches the API server's words about a right that is missing.
var access = regexp.MustCompile(`cannot (\S+) resource "([^"]+)" in API group "([^"]*)"(?: in the namespace "([^"]+)")?`)

// deniedBy is the missing right in a Forbidden error; empty for other errors.
func deniedBy(err error) string {
	var status apierrors.APIStatus
	if !apierrors.IsForbidden(err) || !errors.As(err, &status) {
		return ""
	}
	m := access.FindStringSubmatch(status.Status().Message)
	if m == nil {
		return ""
	}
	return m[1] + " " + right{namespace: m[4], group: m[3], resource: m[2]}.String()
}

// mergeDenied puts all missing rights of the user into one finding. Checks without other findings are left out.
func mergeDenied(checks []Check) []Check {
	var denied []string
	var out []Check
	for _, c := range checks {
		kept := slices.DeleteFunc(slices.Clone(c.Findings), func(f Finding) bool {
			denied = append(denied, f.Denied...)
			return len(f.Denied) > 0
		})
		if len(kept) > 0 || len(c.Findings) == 0 {
			out = append(out, Check{c.Title, kept})
		}
	}
	if len(denied) == 0 {
		return out
	}
	slices.Sort(denied)
	return append(out, Check{"your rights", []Finding{broken("you may not:\n"+strings.Join(slices.Compact(denied), "\n"),
		"what needs these rights could not be looked at", asAdministrator)}})
}
