// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"io"
	"regexp"
)

// Discreet is out without what Helm says while it merges values, which it says to the standard logger, whole values included. It is
// for who sets up a process: log.SetOutput(chart.Discreet(os.Stderr)).
func Discreet(out io.Writer) io.Writer { return discreet{out} }

type discreet struct{ out io.Writer }

// indiscreet are Helm's warnings, which nothing else in the process words so. The standard logger writes each whole, at once.
var indiscreet = regexp.MustCompile(`^(?i)([0-9/]+ [0-9:.]+ )?warning: `)

// Write is io.Writer.
func (d discreet) Write(line []byte) (int, error) {
	if indiscreet.Match(line) {
		return len(line), nil
	}
	return d.out.Write(line)
}
