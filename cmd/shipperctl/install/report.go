// SPDX-License-Identifier: Apache-2.0

package install

import (
	"fmt"
	"io"
)

// Report tells a person what is being done, one line for each step.
type Report struct {
	out io.Writer
}

// NewReport returns a Report that writes to out.
func NewReport(out io.Writer) *Report {
	return &Report{out: out}
}

// Printf writes one line.
func (r *Report) Printf(format string, args ...any) {
	fmt.Fprintf(r.out, format+"\n", args...)
}

// Step writes what is about to be done, does it, and ends the line with how it went. The error says what was being
// done.
func (r *Report) Step(title string, do func() (string, error)) error {
	fmt.Fprintf(r.out, "%s... ", title)
	answer, err := do()
	if err != nil {
		fmt.Fprintln(r.out, "failed")
		return explain(title, err)
	}
	fmt.Fprintln(r.out, answer)
	return nil
}

// outcome is what became of an object.
type outcome string

const (
	created   outcome = "done"
	updated   outcome = "already exists. Updating... done"
	unchanged outcome = "already exists. Skipping"
)

// found is the outcome as the answer to a question whether something exists.
func (o outcome) found() string {
	switch o {
	case created:
		return "no. Creating... done"
	case updated:
		return "yes. Updating... done"
	default:
		return "yes. Skipping"
	}
}
