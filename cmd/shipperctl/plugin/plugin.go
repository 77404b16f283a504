// SPDX-License-Identifier: Apache-2.0

// Package plugin is what makes `kubectl shipper` of shipperctl: called kubectl-shipper, on the PATH, it is a plugin of kubectl, and
// called kubectl_complete-shipper what kubectl asks to complete that plugin's command lines.
package plugin

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

const (
	name      = "shipperctl"
	display   = "kubectl shipper" // as people type it
	file      = "kubectl-shipper"
	completer = "kubectl_complete-shipper"
)

// Adapt makes the whole command line what it was called as, and returns the arguments to execute it with. called are the
// program's, its own name first.
func Adapt(cmd *cobra.Command, called []string) []string {
	if len(called) == 0 {
		return nil
	}
	switch strings.TrimSuffix(filepath.Base(called[0]), ".exe") {
	case completer:
		rename(cmd)
		return append([]string{cobra.ShellCompRequestCmd}, called[1:]...)
	case file:
		rename(cmd)
	}
	return called[1:]
}

// rename has help, usage and completion speak of the plugin.
func rename(cmd *cobra.Command) {
	if cmd.Annotations == nil {
		cmd.Annotations = map[string]string{}
	}
	cmd.Annotations[cobra.CommandDisplayNameAnnotation] = display
	rewrite(cmd)
	// Scripts for shells complete the first word of a line. That is kubectl's, which asks the plugin.
	cmd.CompletionOptions.DisableDefaultCmd = true
	cmd.AddCommand(completion())
}

// rewrite replaces the name in the texts of a command and of those below it.
func rewrite(cmd *cobra.Command) {
	for _, text := range []*string{&cmd.Short, &cmd.Long, &cmd.Example} {
		*text = strings.ReplaceAll(*text, name, display)
	}
	for _, flags := range []*pflag.FlagSet{cmd.Flags(), cmd.PersistentFlags()} {
		flags.VisitAll(func(f *pflag.Flag) { f.Usage = strings.ReplaceAll(f.Usage, name, display) })
	}
	for _, below := range cmd.Commands() {
		rewrite(below)
	}
}

// completion is `kubectl shipper completion`, which prints the program that kubectl asks.
func completion() *cobra.Command {
	return &cobra.Command{
		Use:   "completion",
		Short: "Print the program that kubectl asks to complete kubectl shipper",
		Long: "Print the program that kubectl, from 1.26 on, asks to complete kubectl shipper. It has to be called " + completer +
			" and to be on the PATH; kubectl's own completion has to be set up (kubectl completion --help).",
		Example: "  kubectl shipper completion >~/.local/bin/" + completer + " && chmod +x ~/.local/bin/" + completer,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "#!/bin/sh\nexec %s %s \"$@\"\n", file, cobra.ShellCompRequestCmd)
			return err
		},
	}
}
