// SPDX-License-Identifier: Apache-2.0

package root

import (
	"bytes"
	"io"
	"strings"
	"testing"
)

// TestMisspeltCommandsFail keeps a typing error from passing for success in a pipeline.
func TestMisspeltCommandsFail(t *testing.T) {
	for name, args := range map[string][]string{
		"a sub-command that does not exist":         {"clusters", "jion"},
		"a set-up of something unknown":             {"clusters", "setup", "application"},
		"no sub-command":                            {"clusters"},
		"a backup of nothing to do":                 {"backup"},
		"a backup's misspelt sub-command":           {"backup", "prepar"},
		"nothing to clean":                          {"clean"},
		"something unknown to clean":                {"clean", "clusters"},
		"a cluster that is no flag's":               {"clean", "decommissioned-clusters", "eu-1"},
		"a set-up of nothing":                       {"clusters", "setup"},
		"a cluster that is not named":               {"clusters", "drain"},
		"a flag of another command":                 {"clusters", "cordon", "eu-1", "--webhook-ignore"},
		"a flag that does not exist":                {"clusters", "join", "--fiel", "clusters.yaml"},
		"an argument that a command has no use for": {"clusters", "join", "clusters.yaml"},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := NewCommand(io.Discard)
			cmd.SetArgs(args)
			cmd.SetErr(io.Discard)
			if err := cmd.ExecuteContext(t.Context()); err == nil {
				t.Error("it succeeded")
			}
		})
	}
}

// TestCompletion is about the scripts that shells read.
func TestCompletion(t *testing.T) {
	for shell, want := range map[string]string{
		"bash": "__start_shipperctl", "zsh": "#compdef shipperctl", "fish": "complete -c shipperctl", "powershell": "Register-ArgumentCompleter",
	} {
		var out bytes.Buffer
		cmd := NewCommand(&out)
		cmd.SetArgs([]string{"completion", shell})
		if err := cmd.ExecuteContext(t.Context()); err != nil || !strings.Contains(out.String(), want) {
			t.Errorf("%s: %v\n%.200s", shell, err, out.String())
		}
	}
}
