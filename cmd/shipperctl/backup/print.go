// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
)

// overview lists every Release of a backup with its Application.
func (b Backup) overview(out io.Writer) {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "NAMESPACE\tRELEASE NAME\tOWNING APPLICATION")
	for _, e := range b {
		for _, r := range e.Releases {
			fmt.Fprintf(table, "%s\t%s\t%s\n", r.Release.GetNamespace(), r.Release.GetName(), e.Application.GetName())
		}
	}
	_ = table.Flush() // a screen that takes nothing more is nobody's to mend
}

// hidden takes the place of what is in Secrets, and of what nobody can read, when a backup is shown.
const hidden = "(not shown)"

// shown is a backup as it may be seen on a screen.
func (b Backup) shown() Backup {
	out := make(Backup, len(b))
	for i, e := range b {
		if e.ClusterSecret != nil {
			e.ClusterSecret = e.ClusterSecret.DeepCopy()
			for _, field := range []string{"data", "stringData"} {
				if values, ok := e.ClusterSecret.Object[field].(map[string]any); ok {
					for key := range values {
						values[key] = hidden
					}
				}
			}
		}
		e.ChartParts = slices.Clone(e.ChartParts)
		for n, part := range e.ChartParts {
			e.ChartParts[n] = part.DeepCopy()
			if spec, ok := e.ChartParts[n].Object["spec"].(map[string]any); ok {
				spec["data"] = hidden
			}
		}
		out[i] = e
	}
	return out
}

// prompter puts questions to the person in front of the screen.
type prompter struct {
	in  *bufio.Reader
	out io.Writer
}

// confirm asks until the answer is one.
func (a prompter) confirm(question string) (bool, error) {
	for {
		fmt.Fprintf(a.out, "%s [y/n]: ", question)
		line, err := a.in.ReadString('\n')
		switch strings.ToLower(strings.TrimSpace(line)) {
		case "y", "yes":
			return true, nil
		case "n", "no":
			return false, nil
		}
		if errors.Is(err, io.EOF) {
			fmt.Fprintln(a.out)
			return false, errors.New("nobody answers: give --yes to restore without being asked; nothing was written")
		}
		if err != nil {
			return false, fmt.Errorf("reading the answer: %w", err)
		}
	}
}
