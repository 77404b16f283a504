// SPDX-License-Identifier: Apache-2.0

package root

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"shipper.dev/shipper/test/fleet"
	"shipper.dev/shipper/test/pod"
)

// sample is a command line like shipperctl's, small.
func sample(out *bytes.Buffer) *cobra.Command {
	root := &cobra.Command{Use: programName, Short: "Short of shipperctl", SilenceUsage: true}
	root.SetOut(out)
	below := &cobra.Command{
		Use: "rollout NAME", Example: "  shipperctl rollout web", ValidArgs: []string{"web"},
		Run: func(cmd *cobra.Command, args []string) { cmd.Println(cmd.CommandPath(), args) },
	}
	below.Flags().Bool("quiet", false, "as shipperctl is")
	root.AddCommand(below)
	return root
}

func TestItIsWhatItIsCalledAs(t *testing.T) {
	const (
		plain = "Usage:\n  shipperctl rollout NAME [flags]\n\nExamples:\n  shipperctl rollout web\n\n" +
			"Flags:\n  -h, --help    help for rollout\n      --quiet   as shipperctl is\n"
		plugin = "Usage:\n  kubectl shipper rollout NAME [flags]\n\nExamples:\n  kubectl shipper rollout web\n\n" +
			"Flags:\n  -h, --help    help for rollout\n      --quiet   as kubectl shipper is\n"
	)
	for sentence, c := range map[string]struct {
		called string
		want   string
	}{
		"shipperctl":                        {"/usr/bin/shipperctl rollout --help", plain},
		"any other name":                    {"sctl rollout --help", plain},
		"the plugin":                        {"/usr/bin/kubectl-shipper rollout --help", plugin},
		"the plugin on Windows":             {"kubectl-shipper.exe rollout --help", plugin},
		"the plugin runs":                   {"kubectl-shipper rollout web", "kubectl shipper rollout [web]\n"},
		"what kubectl asks for completions": {"kubectl_complete-shipper rollout w", "web\n:4\n"},
		"the program that kubectl asks":     {"kubectl-shipper completion", "#!/bin/sh\nexec kubectl-shipper __complete \"$@\"\n"},
	} {
		t.Run(sentence, func(t *testing.T) {
			var out bytes.Buffer
			cmd := sample(&out)
			cmd.SetErr(&bytes.Buffer{})
			cmd.SetArgs(AdaptToName(cmd, strings.Fields(c.called)))
			if err := cmd.ExecuteContext(t.Context()); err != nil {
				t.Error(err)
			}
			if diff := cmp.Diff(c.want, out.String()); diff != "" {
				t.Errorf("output (-want +got):\n%s", diff)
			}
		})
	}
}

func TestGoKnowsWhatCodeIsTested(t *testing.T) {
	if err := pod.ReadCode(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// TestKubectlFindsThePlugin calls a kubectl, which calls shipperctl as it is installed.
func TestKubectlFindsThePlugin(t *testing.T) {
	kubectl, err := fleet.Kubectl()
	if err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir()
	if err := pod.Build(t.Context(), bin, programName); err != nil {
		t.Fatal(err)
	}
	for _, link := range []string{pluginFile, completerFile} {
		if err := os.Symlink(programName, filepath.Join(bin, link)); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	t.Setenv("KUBECONFIG", filepath.Join(bin, "none"))
	asked := func(words ...string) (string, error) { return output(t.Context(), kubectl, words...) }
	for _, c := range []struct{ line, begins, contains string }{
		{"shipper version", "kubectl shipper ", ", go1."},
		{"shipper rollout status --help", "", "kubectl shipper rollout status"},
		{"__complete shipper rollout sta", "", "status\t"},
		{"plugin list", "", pluginFile},
	} {
		out, err := asked(strings.Fields(c.line)...)
		if err != nil || !strings.HasPrefix(out, c.begins) || !strings.Contains(out, c.contains) || strings.Contains(out, programName+" ") {
			t.Errorf("kubectl %s: %v\n%s", c.line, err, out)
		}
	}
	if out, err := asked("shipper", "rolout"); err == nil || !strings.HasPrefix(out, "kubectl shipper: ") {
		t.Errorf("a command that is not there: %v\n%s", err, out)
	}
}

// output is what a program prints, on both ways.
func output(ctx context.Context, program string, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, program, args...).CombinedOutput()
	return string(out), err
}
