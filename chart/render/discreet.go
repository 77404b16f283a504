// SPDX-License-Identifier: Apache-2.0

package render

import (
	"io"
	"regexp"
)

// Discreet is out without the warnings that Helm logs while it merges values, which quote the values. Use it at the start of a
// process: log.SetOutput(render.Discreet(os.Stderr)).
func Discreet(out io.Writer) io.Writer { return discreet{out} }

type discreet struct{ out io.Writer }

// indiscreet matches Helm's warnings; nothing else in the process logs in this form. The standard logger writes each in one
// call.
var indiscreet = regexp.MustCompile(`^(?i)([0-9/]+ [0-9:.]+ )?warning: `)

// Write is io.Writer.
func (d discreet) Write(line []byte) (int, error) {
	if indiscreet.Match(line) {
		return len(line), nil
	}
	return d.out.Write(line)
}
