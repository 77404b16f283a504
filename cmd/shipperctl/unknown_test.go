// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"testing"

	"shipper.dev/shipper/cmd/shipperctl/clusters"
)

// TestMisspeltCommandsFail keeps a typing error from passing for success in a pipeline.
func TestMisspeltCommandsFail(t *testing.T) {
	for name, args := range map[string][]string{
		"a sub-command that does not exist":         {"jion"},
		"a set-up of something unknown":             {"setup", "application"},
		"no sub-command":                            {},
		"a set-up of nothing":                       {"setup"},
		"a flag that does not exist":                {"join", "--fiel", "clusters.yaml"},
		"an argument that a command has no use for": {"join", "clusters.yaml"},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := clusters.NewCommand()
			cmd.SetArgs(args)
			cmd.SetOut(io.Discard)
			cmd.SetErr(io.Discard)
			if err := cmd.ExecuteContext(t.Context()); err == nil {
				t.Error("it succeeded")
			}
		})
	}
}
