// SPDX-License-Identifier: Apache-2.0

package root

import (
	"strings"

	"github.com/spf13/cobra"
)

// examples are shown by --help and in docs/cli.md, where a test runs them.
var examples = map[string][]string{
	"shipperctl backup prepare":    {"shipperctl backup prepare -v --include-rollout-blocks -f backup.yaml"},
	"shipperctl block create":      {`shipperctl block create year-end -m "closing of the books" --ttl 48h`},
	"shipperctl block lift":        {"shipperctl block lift year-end"},
	"shipperctl block list":        {"shipperctl block list -A"},
	"shipperctl clusters check":    {"shipperctl clusters check eu-west-1"},
	"shipperctl clusters cordon":   {"shipperctl clusters cordon eu-west-1"},
	"shipperctl clusters list":     {"shipperctl clusters list"},
	"shipperctl clusters uncordon": {"shipperctl clusters uncordon eu-west-1"},
	"shipperctl list contender":    {"shipperctl list contender --clusters eu-west-1"},
	"shipperctl list release":      {"shipperctl list release -o json"},
	"shipperctl override":          {`shipperctl override super-server --reason "the fix for the outage"`},
	"shipperctl plan":              {"shipperctl plan -f app.yaml"},
	"shipperctl rollout abort":     {"shipperctl rollout abort super-server"},
	"shipperctl rollout advance":   {"shipperctl rollout advance super-server"},
	"shipperctl rollout diff":      {"shipperctl rollout diff super-server"},
	"shipperctl rollout history":   {"shipperctl rollout history super-server"},
	"shipperctl rollout retreat":   {"shipperctl rollout retreat super-server"},
	"shipperctl rollout status":    {"shipperctl rollout status super-server", "shipperctl rollout status super-server -o json"},
	"shipperctl version":           {"shipperctl version --server"},
	"shipperctl doctor":            {"shipperctl doctor"},
}

// exemplify gives a command and those below it their examples.
func exemplify(cmd *cobra.Command) {
	if lines := examples[cmd.CommandPath()]; lines != nil && cmd.Example == "" {
		cmd.Example = "  " + strings.Join(lines, "\n  ")
	}
	for _, below := range cmd.Commands() {
		exemplify(below)
	}
}
