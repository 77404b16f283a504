// SPDX-License-Identifier: Apache-2.0

package root

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

const (
	programName   = "shipperctl"
	pluginName    = "kubectl shipper" // as people type it
	pluginFile    = "kubectl-shipper"
	completerFile = "kubectl_complete-shipper"
)

// AdaptToName adapts the command line to the name that the program was called by, and returns the arguments to execute it with. called
// are the program's arguments, its own name first.
func AdaptToName(cmd *cobra.Command, called []string) []string {
	if len(called) == 0 {
		return nil
	}
	switch strings.TrimSuffix(filepath.Base(called[0]), ".exe") {
	case completerFile:
		renameToPlugin(cmd)
		return append([]string{cobra.ShellCompRequestCmd}, called[1:]...)
	case pluginFile:
		renameToPlugin(cmd)
	}
	return called[1:]
}

// renameToPlugin puts the plugin's name into help, usage and completion.
func renameToPlugin(cmd *cobra.Command) {
	if cmd.Annotations == nil {
		cmd.Annotations = map[string]string{}
	}
	cmd.Annotations[cobra.CommandDisplayNameAnnotation] = pluginName
	each(cmd, replaceName)
	// Scripts for shells complete the first word of a line. That is kubectl's, which asks the plugin.
	cmd.CompletionOptions.DisableDefaultCmd = true
	cmd.AddCommand(newPluginCompletion())
}

// replaceName replaces the name in the texts of a command.
func replaceName(cmd *cobra.Command) {
	for _, text := range []*string{&cmd.Short, &cmd.Long, &cmd.Example} {
		*text = strings.ReplaceAll(*text, programName, pluginName)
	}
	for _, flags := range []*pflag.FlagSet{cmd.Flags(), cmd.PersistentFlags()} {
		flags.VisitAll(func(f *pflag.Flag) { f.Usage = strings.ReplaceAll(f.Usage, programName, pluginName) })
	}
}

// newPluginCompletion returns `kubectl shipper completion`, which prints kubectl's completion plugin.
func newPluginCompletion() *cobra.Command {
	return &cobra.Command{
		Use:   "completion",
		Short: "Print the program that kubectl asks to complete kubectl shipper",
		Long: "Print the program that kubectl, from 1.26 on, asks to complete kubectl shipper. It has to be called " + completerFile +
			" and to be on the PATH; kubectl's own completion has to be set up (kubectl completion --help).",
		Example: "  kubectl shipper completion >~/.local/bin/" + completerFile + " && chmod +x ~/.local/bin/" + completerFile,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "#!/bin/sh\nexec %s %s \"$@\"\n", pluginFile, cobra.ShellCompRequestCmd)
			return err
		},
	}
}
