// SPDX-License-Identifier: Apache-2.0

package root

import (
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"shipper.dev/shipper/cmd/shipperctl/cli"
)

// TestExamplesAreOfCommands finds examples of commands that there are not, or that have others.
func TestExamplesAreOfCommands(t *testing.T) {
	all := map[string]string{}
	var visit func(*cobra.Command)
	visit = func(cmd *cobra.Command) {
		all[cmd.CommandPath()] = cmd.Example
		for _, below := range cmd.Commands() {
			visit(below)
		}
	}
	visit(NewCommand(io.Discard))
	for path, lines := range examples {
		if want := "  " + strings.Join(lines, "\n  "); all[path] != want {
			t.Errorf("%s has the example %q, want %q", path, all[path], want)
		}
	}
}

// TestExitCodes runs commands that end before they ask any cluster. What clusters answer is in package exit's table.
func TestExitCodes(t *testing.T) {
	nowhere := "--kubeconfig=" + filepath.Join(t.TempDir(), "none")
	for sentence, c := range map[string]struct {
		line string
		want int
	}{
		"help is no failure":                      {"--help", 0},
		"the version":                             {"version", 0},
		"a command without its sub-command":       {"rollout", 2},
		"there is no such command":                {"rolout status web", 2},
		"there is no such command below":          {"rollout stauts web", 2},
		"there is no such flag":                   {"rollout status web --wach", 2},
		"a flag's value is of another kind":       {"rollout advance web --step two", 2},
		"an argument is missing":                  {"rollout status", 2},
		"a time-out without anything to wait for": {"rollout status web --timeout 1m", 2},
		"a time-out that is none":                 {"rollout status web --wait --timeout 0s", 2},
		"all applications, and one of them":       {"rollout status web -A", 2},
		"all applications, and waiting for one":   {"rollout status -A --wait", 2},
		"an argument too many":                    {"rollout status web shop", 2},
		"a flag that must be given is not":        {"clean decommissioned-clusters", 2},
		"a value that makes no sense":             {"rollout status web -o xml", 2},
		"a block without a reason":                {"block create freeze", 2},
		"a time that is none":                     {"block create freeze -m x --start tomorrow", 2},
		"flags that exclude each other":           {"block list --global -n shop", 2},
		"a format that is not known":              {"backup prepare --format xml", 2},
		"a flag of the guard without the guard":   {"clusters join --guard-break-glass-group x", 2},
		"all namespaces, and one of them":         {"list release -A -n shop", 2},
		"blocks of all namespaces, and of one":    {"block list -A -n shop", 2},
		"a webhook's URL that is none":            {"clusters setup management --webhook-url localhost:9443", 2},
		"a group that holds everybody":            {"clusters join --guard --guard-break-glass-group system:authenticated", 2},
		"a step that nothing has":                 {"rollout advance web --step -2", 2},
		"a step back that nothing has":            {"rollout retreat web --step=-1", 2},
		"blocks that have no names":               {"override web --reason x --blocks a/b/c", 2},
		"nothing to render":                       {"chart render app", 2},
		"too much to render":                      {"chart render app web -f app.yaml", 2},
		"two names to render":                     {"chart render app web --app-name other", 2},
		"repositories that are none":              {"chart render app web --chart-repositories ::", 2},
		"there is no such context":                {"rollout status web --context nowhere " + nowhere, 1},
		"the file with the clusters is not there": {"clusters join -f nowhere.yaml", 1},
	} {
		t.Run(sentence, func(t *testing.T) {
			cmd := NewCommand(io.Discard)
			cmd.SetErr(io.Discard)
			cmd.SetArgs(strings.Fields(c.line))
			err := cmd.ExecuteContext(t.Context())
			if got := cli.ExitCode(err); got != c.want {
				t.Errorf("shipperctl %s ended with %d, want %d: %v", c.line, got, c.want, err)
			}
		})
	}
}

func TestUnknownCommandsSuggestTheNearest(t *testing.T) {
	for line, want := range map[string]string{
		"rolout status web":  "Did you mean this?\n\trollout\n",
		"rollout stauts web": "did you mean status?",
		"clusters jion":      "did you mean join?",
	} {
		cmd := NewCommand(io.Discard)
		cmd.SetErr(io.Discard)
		cmd.SetArgs(strings.Fields(line))
		err := cmd.ExecuteContext(t.Context())
		if err == nil || !strings.Contains(err.Error(), want) || cli.ExitCode(err) != cli.Misused {
			t.Errorf("%s: exit code %d, %v; want %s", line, cli.ExitCode(err), err, want)
		}
	}
}

func TestMisuseSaysWhatToType(t *testing.T) {
	for _, c := range []struct{ line, want, command string }{
		{"plan app.yaml", `unexpected argument "app.yaml": name a file with -f`, "plan"},
		{"plan", `required flag(s) "file" not set`, "plan"},
		{"clusters join clusters.yaml", `unexpected argument "clusters.yaml": name a file with -f`, "clusters join"},
		{"rollout status", "an argument is missing: use `shipperctl rollout status APPLICATION`", "rollout status"},
		{"rollout set image web", "an argument is missing: use `shipperctl rollout set image APPLICATION CONTAINER=IMAGE...`",
			"rollout set image"},
		{"rollout advance web 2", "unexpected argument \"2\": use `shipperctl rollout advance APPLICATION`", "rollout advance"},
		{"rollout diff a b c d", "unexpected argument \"d\": use `shipperctl rollout diff APPLICATION [FROM [TO]]`", "rollout diff"},
		{"doctor now", "unexpected argument \"now\": use `shipperctl doctor`", "doctor"},
		{"rollout advance web --step two", `invalid argument "two" for "--step" flag: it has to be a number`, "rollout advance"},
		{
			"rollout status web --timeout 5",
			`invalid argument "5" for "--timeout" flag: time: missing unit in duration "5", such as "30s" or "5m"`, "rollout status",
		},
		{"rollout status -A web", `--all-namespaces shows every application: leave "web" out`, "rollout status"},
		{"rollout stat web", `unknown command "stat" for "shipperctl rollout"; did you mean status?`, "rollout"},
		{"check try errors", `required flag(s) "app" not set`, "check try"},
	} {
		cmd := NewCommand(io.Discard)
		cmd.SetErr(io.Discard)
		cmd.SetArgs(strings.Fields(c.line))
		err := cmd.ExecuteContext(t.Context())
		want := c.want + "; see shipperctl " + c.command + " --help"
		if err == nil || err.Error() != want || cli.ExitCode(err) != cli.Misused {
			t.Errorf("shipperctl %s: exit code %d, %v; want %s", c.line, cli.ExitCode(err), err, want)
		}
	}
}
