// SPDX-License-Identifier: Apache-2.0

// Clidocs prints docs/cli.md: every command of shipperctl with its usage, flags, defaults and examples, and the exit codes.
package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"shipper.dev/shipper/cmd/shipperctl/cli"
	"shipper.dev/shipper/cmd/shipperctl/root"
)

const head = `<!-- Written by hack/update-cli-docs.sh from cmd/shipperctl. -->
# CLI reference

Every command of ` + "`shipperctl`" + `. What they are for, and what they look like when they run, is in [shipperctl.md](shipperctl.md). As
` + "`kubectl-shipper`" + ` in ` + "`PATH`" + ` it is ` + "`kubectl shipper`" + `, too.

`

func main() {
	var out bytes.Buffer
	cmd := root.NewCommand(io.Discard)
	cmd.InitDefaultCompletionCmd()
	out.WriteString(head)
	list(&out, cmd)
	codes(&out)
	describe(&out, cmd)
	if _, err := out.WriteTo(os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "clidocs:", err)
		os.Exit(1)
	}
}

// list writes a table of all commands that do something.
func list(out io.Writer, root *cobra.Command) {
	fmt.Fprint(out, "| command | does |\n|---|---|\n")
	each(root, func(cmd *cobra.Command) {
		if !cmd.HasAvailableSubCommands() {
			fmt.Fprintf(out, "| [`%s`](#%s) | %s |\n", cmd.CommandPath(), anchor(cmd), cell(cmd.Short))
		}
	})
	fmt.Fprintln(out)
}

// codes writes what exit codes mean.
func codes(out io.Writer) {
	fmt.Fprint(out, "## Exit codes\n\n| code | meaning |\n|---|---|\n")
	for _, m := range cli.ExitCodes {
		fmt.Fprintf(out, "| %d | %s |\n", m.Code, cell(m.Meaning))
	}
	fmt.Fprintln(out)
}

// describe writes a chapter on every command.
func describe(out io.Writer, root *cobra.Command) {
	each(root, func(cmd *cobra.Command) {
		fmt.Fprintf(out, "## %s\n\n%s\n\n```text\n%s\n```\n", cmd.CommandPath(), sentence(cmd.Short), usage(cmd))
		if cmd.Long != "" && !inherited(cmd) {
			fmt.Fprintf(out, "\n%s\n", strings.TrimSpace(cmd.Long))
		}
		if len(cmd.Aliases) > 0 {
			fmt.Fprintf(out, "\nAlso as `%s`.\n", strings.Join(cmd.Aliases, "`, `"))
		}
		flags(out, cmd)
		example(out, cmd)
		fmt.Fprintln(out)
	})
}

// given is what examples need, by their commands, in the words of test/docs. Those of other commands need nothing, or go on from the
// one before.
var given = map[string]string{
	"shipperctl backup prepare":  "a fleet with a release",
	"shipperctl block create":    "a fleet",
	"shipperctl clusters check":  "a fleet; alone",
	"shipperctl doctor":          "a fleet",
	"shipperctl override":        "super-server, blocked by dns-outage",
	"shipperctl plan":            "app.yaml of super-server",
	"shipperctl rollout abort":   "super-server in the canary step",
	"shipperctl rollout advance": "super-server in its first step",
	"shipperctl rollout diff":    "super-server in the canary step",
	"shipperctl version":         "a fleet",
}

// example writes what a command is typed like.
func example(out io.Writer, cmd *cobra.Command) {
	if cmd.Example == "" {
		return
	}
	fmt.Fprintln(out)
	if words := given[cmd.CommandPath()]; words != "" {
		fmt.Fprintf(out, "<!-- given: %s -->\n", words)
	}
	fmt.Fprintln(out, "```console")
	for line := range strings.Lines(cmd.Example) {
		fmt.Fprintln(out, "$ "+strings.TrimSpace(line))
	}
	fmt.Fprintln(out, "```")
}

// inherited reports whether a command's description is that which cobra gives, with the shells' own commands in it: docs/shipperctl.md
// has them, and shows that they work.
func inherited(cmd *cobra.Command) bool {
	for c := cmd; c != nil; c = c.Parent() {
		if c.Name() == "completion" {
			return true
		}
	}
	return false
}

// usage is how a command is typed.
func usage(cmd *cobra.Command) string {
	if cmd.HasAvailableSubCommands() {
		return cmd.CommandPath() + " COMMAND"
	}
	return cmd.UseLine()
}

// flags writes a table of the flags that a command has, its own before those of all commands beside it.
func flags(out io.Writer, cmd *cobra.Command) {
	if cmd.HasAvailableSubCommands() {
		return
	}
	var rows []string
	for _, set := range []*pflag.FlagSet{cmd.NonInheritedFlags(), cmd.InheritedFlags()} {
		set.VisitAll(func(f *pflag.Flag) {
			if !f.Hidden && f.Name != "help" {
				rows = append(rows, row(f))
			}
		})
	}
	if len(rows) > 0 {
		fmt.Fprintf(out, "\n| flag | default | meaning |\n|---|---|---|\n%s\n", strings.Join(rows, "\n"))
	}
}

// row is a flag in a table. A default that its text names is moved to its own column.
func row(f *pflag.Flag) string {
	value, meaning := pflag.UnquoteUsage(f)
	name := "`--" + f.Name + "`"
	if f.Shorthand != "" {
		name = "`-" + f.Shorthand + "`, " + name
	}
	if value != "" {
		name += " " + value
	}
	preset := f.DefValue
	switch preset {
	case "", "false", "[]", "0s", "0", "-1":
		preset = ""
	default:
		preset = "`" + preset + "`"
	}
	for _, telling := range []string{" (default: ", " (default "} {
		if before, told, found := strings.Cut(meaning, telling); found {
			meaning, preset = before, strings.TrimSuffix(told, ")")
		}
	}
	return fmt.Sprintf("| %s | %s | %s |", name, cell(preset), cell(meaning))
}

// each visits all commands that a reader may use, each before those below it.
func each(cmd *cobra.Command, visit func(*cobra.Command)) {
	for _, below := range cmd.Commands() {
		if below.IsAvailableCommand() && below.Name() != "help" {
			visit(below)
			each(below, visit)
		}
	}
}

// anchor is the fragment of a command's chapter.
func anchor(cmd *cobra.Command) string { return strings.ReplaceAll(cmd.CommandPath(), " ", "-") }

// cell is a text in a table.
func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }

// sentence is a text that ends with a full stop.
func sentence(text string) string { return strings.TrimSuffix(text, ".") + "." }
