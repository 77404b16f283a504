// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/pflag"
	"sigs.k8s.io/yaml"

	"shipper.dev/shipper/cmd/shipperctl/screen"
)

// Format is an output format.
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

// Type is the placeholder of a value in help.
func (f *Format) Type() string { return "format" }

// Set refuses unknown formats.
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

// Print writes v as JSON or YAML, or else the text for a terminal of width columns; 0 is unbounded.
func (f Format) Print(out io.Writer, v any, text func(width int) string) error {
	var raw []byte
	var err error
	if f.ForPeople() {
		width, _ := screen.Of(out)
		raw = []byte(screen.Printable(text(width)))
	} else if raw, err = f.Marshal(v); err != nil {
		return err
	}
	if _, err := out.Write(raw); err != nil {
		return fmt.Errorf("writing the output: %w", err)
	}
	return nil
}

// Marshal encodes v as JSON, or else as YAML.
func (f Format) Marshal(v any) ([]byte, error) {
	if f == JSON {
		raw, err := json.MarshalIndent(v, "", "  ")
		if err != nil {
			return nil, fmt.Errorf("writing JSON: %w", err)
		}
		return append(raw, '\n'), nil
	}
	raw, err := yaml.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("writing YAML: %w", err)
	}
	return raw, nil
}
