// SPDX-License-Identifier: Apache-2.0

package root

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"shipper.dev/shipper/cmd/shipperctl/cli"
)

// explain adds the command's --help to an error about its use.
func explain(cmd *cobra.Command, err error) error {
	if strings.Contains(err.Error(), " --help") {
		return err
	}
	return errors.New(err.Error() + "; see " + cmd.CommandPath() + " --help")
}

// suggest adds the nearest commands to an error about an unknown one. Cobra does so for the first level only.
func suggest(cmd *cobra.Command, args []string, err error) error {
	if !cmd.HasSubCommands() || len(args) == 0 {
		return err
	}
	cmd.SuggestionsMinimumDistance = max(cmd.SuggestionsMinimumDistance, 2)
	near := cmd.SuggestionsFor(args[0])
	if longer := slices.DeleteFunc(slices.Clone(near), func(name string) bool { return !strings.HasPrefix(name, args[0]) }); len(longer) > 0 {
		near = longer // "stat" is the beginning of status, and not a misspelled set
	}
	if len(near) == 0 {
		return err
	}
	return fmt.Errorf("%w; did you mean %s?", err, strings.Join(near, " or "))
}

// printMisuse gives wrong arguments of a command, and missing flags, their exit code.
func printMisuse(cmd *cobra.Command) {
	check := cmd.Args
	if check == nil {
		return
	}
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		err := explainArguments(cmd, args, check(cmd, args))
		if err == nil {
			err = cmd.ValidateRequiredFlags() // cobra's own error has neither a code nor advice
		}
		if err != nil {
			return cli.WithCode(cli.Misused, explain(cmd, suggest(cmd, args, err)))
		}
		return nil
	}
}

// explainArguments says which argument is missing or unexpected, where cobra counts them or takes them for commands.
func explainArguments(cmd *cobra.Command, args []string, err error) error {
	if err == nil || cmd.HasSubCommands() {
		return err
	}
	usage := strings.TrimSuffix(cmd.UseLine(), " [flags]")
	tooFew := strings.HasPrefix(err.Error(), "requires at least ")
	switch unknown := strings.HasPrefix(err.Error(), "unknown command "); {
	case !unknown && !tooFew && !strings.HasPrefix(err.Error(), "accepts "):
		return err
	case unknown && cmd.Flags().Lookup("file") != nil:
		return fmt.Errorf("unexpected argument %q: name a file with -f", args[0])
	case len(args) > 0 && !tooFew:
		return fmt.Errorf("unexpected argument %q: use `%s`", args[len(args)-1], usage)
	default:
		return fmt.Errorf("an argument is missing: use `%s`", usage)
	}
}

// parseErrors are what Go's parsers say of a flag's value.
var parseErrors = regexp.MustCompile(`strconv\.Parse\w+: parsing ".*": .*$`)

// explainFlag replaces what Go's parsers say of a flag's value.
func explainFlag(err error) error {
	text := parseErrors.ReplaceAllString(err.Error(), "it has to be a number")
	if strings.Contains(text, "missing unit in duration") {
		text += `, such as "30s" or "5m"`
	}
	return errors.New(text)
}
