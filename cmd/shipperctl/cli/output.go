// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/pflag"
	"sigs.k8s.io/yaml"
)

// Format is how something is told.
type Format string

// The formats.
const (
	// Table is for people, as is no format.
	Table Format = "table"
	// JSON and YAML are for programs.
	JSON Format = "json"
	YAML Format = "yaml"
)

var _ pflag.Value = new(Format)

// Register adds -o to the flags of a command.
func (f *Format) Register(flags *pflag.FlagSet) {
	flags.VarP(f, "output", "o", "json or yaml for programs, table for people (default table)")
}

// String is the format as it is given.
func (f *Format) String() string { return string(*f) }

// Type is what help shows in place of a value.
func (f *Format) Type() string { return "format" }

// Set refuses what is no format.
func (f *Format) Set(text string) error {
	switch Format(text) {
	case Table, JSON, YAML:
		*f = Format(text)
		return nil
	}
	return fmt.Errorf("there are json, yaml and table")
}

// ForPeople reports whether nothing but people read it.
func (f Format) ForPeople() bool { return f != JSON && f != YAML }

// Print writes v for programs, or the text for people.
func (f Format) Print(out io.Writer, v any, people func() string) error {
	var text []byte
	var err error
	switch f {
	case JSON:
		text, err = json.MarshalIndent(v, "", "  ")
		text = append(text, '\n')
	case YAML:
		text, err = yaml.Marshal(v)
	default:
		text = []byte(people())
	}
	if err != nil {
		return fmt.Errorf("writing %s: %w", f, err)
	}
	if _, err := out.Write(text); err != nil {
		return fmt.Errorf("writing the output: %w", err)
	}
	return nil
}
