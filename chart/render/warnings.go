// SPDX-License-Identifier: Apache-2.0

package render

import (
	"io"
	"regexp"
)

// WithoutValueWarnings returns out without the warnings that Helm logs while it merges values, because they quote the values. Use it
// at the start of a process: log.SetOutput(render.WithoutValueWarnings(os.Stderr)).
func WithoutValueWarnings(out io.Writer) io.Writer { return warningFilter{out} }

type warningFilter struct{ out io.Writer }

// warning matches Helm's warnings; nothing else in the process logs in this form. The standard logger writes each in one call.
var warning = regexp.MustCompile(`^(?i)([0-9/]+ [0-9:.]+ )?warning: `)

// Write is io.Writer.
func (f warningFilter) Write(line []byte) (int, error) {
	if warning.Match(line) {
		return len(line), nil
	}
	return f.out.Write(line)
}
