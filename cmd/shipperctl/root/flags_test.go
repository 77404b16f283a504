// SPDX-License-Identifier: Apache-2.0

package root

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// reaching are all commands that reach a management cluster, each with what it needs besides the flags that all have. Words
// in capitals stand for files.
var reaching = map[string]string{
	"audit":                         "",
	"backup prepare":                "-f OUT",
	"backup restore":                "-f EMPTY",
	"block create":                  "freeze -m why",
	"block lift":                    "freeze",
	"block list":                    "",
	"chart render app":              "web",
	"chart render release":          "web-0",
	"check list":                    "",
	"check try":                     "errors --app web",
	"clean decommissioned-clusters": "--decommissionedClusters eu",
	"clean finalizers":              "",
	"clusters check":                "eu",
	"clusters cordon":               "eu",
	"clusters drain":                "eu",
	"clusters grant":                "priorityclasses.scheduling.k8s.io/a --reason why -f CLUSTERS",
	"clusters join":                 "-f CLUSTERS",
	"clusters list":                 "",
	"clusters remove":               "eu",
	"clusters revoke":               "eu",
	"clusters setup management":     "",
	"clusters uncordon":             "eu",
	"doctor":                        "",
	"list contender":                "",
	"list release":                  "",
	"notification test":             "slack",
	"override":                      "web --reason why",
	"placement explain":             "web",
	"plan":                          "-f APP",
	"rollout abort":                 "web",
	"rollout advance":               "web",
	"rollout approve":               "web",
	"rollout diff":                  "web",
	"rollout history":               "web",
	"rollout pause":                 "web --reason why",
	"rollout refuse":                "web --reason why",
	"rollout reject":                "web --reason why",
	"rollout resume":                "web",
	"rollout retreat":               "web",
	"rollout retry-checks":          "web",
	"rollout rollback":              "web",
	"rollout set image":             "web web=nginx",
	"rollout status":                "web",
	"rollout test":                  "web-0",
	"shipyard abort":                "web-1 --reason why",
	"shipyard approve":              "web-1",
	"shipyard bind":                 "shop",
	"shipyard list":                 "",
	"shipyard pause":                "web-1 --reason why",
	"shipyard resume":               "web-1",
	"shipyard retry":                "web-1",
	"shipyard run":                  "shop",
	"shipyard show":                 "shop",
	"shipyard status":               "web-1",
	"shipyard wait":                 "web-1",
	"version":                       "--server",
}

// TestEveryCommandSaysWhichClusterIsMeant by the same flags, in the spellings of the documentation and of kubectl.
func TestEveryCommandSaysWhichClusterIsMeant(t *testing.T) {
	folder := t.TempDir()
	paths := strings.NewReplacer("OUT", filepath.Join(folder, "out.yaml"), "EMPTY", filepath.Join(folder, "backup.yaml"),
		"CLUSTERS", filepath.Join(folder, "clusters.yaml"), "APP", filepath.Join(folder, "app.yaml"))
	for name, text := range map[string]string{
		"backup.yaml":   "[]",
		"clusters.yaml": "applicationClusters:\n- {name: eu, region: eu}\n",
		"app.yaml":      "{apiVersion: shipper.booking.com/v1alpha1, kind: Application, metadata: {name: web, namespace: shop}}",
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	config := clientcmdapi.NewConfig()
	config.Clusters["a"] = &clientcmdapi.Cluster{Server: "https://127.0.0.1:1"}
	config.AuthInfos["a"] = &clientcmdapi.AuthInfo{}
	config.Contexts["a"], config.CurrentContext = &clientcmdapi.Context{Cluster: "a", AuthInfo: "a"}, "a"
	known := filepath.Join(folder, "config")
	if err := clientcmd.WriteToFile(*config, known); err != nil {
		t.Fatal(err)
	}
	nowhere := filepath.Join(folder, "nowhere")
	told := `there is no context "elsewhere" in the kubeconfig, only: a; name the right one`
	for _, way := range []struct {
		name, kubeconfig, host string
		flags                  []string
		want                   string
	}{
		{"a file that is not there, as documented", "", "", []string{"--kube-config", nowhere}, nowhere + ": no such file"},
		{"a file that is not there, as of kubectl", "", "", []string{"--kubeconfig", nowhere}, nowhere + ": no such file"},
		{"a context that is not there, as documented", known, "", []string{"--management-cluster-context", "elsewhere"}, told},
		{"a context that is not there, as of kubectl", known, "", []string{"--context", "elsewhere"}, told},
		{"no kubeconfig, and no Pod", nowhere, "", nil,
			"there is no kubeconfig in " + nowhere + ": name one with --kubeconfig or in $KUBECONFIG"},
		{"no kubeconfig, in a Pod", nowhere, "127.0.0.1", nil, "reading the account of this Pod: "},
	} {
		t.Run(way.name, func(t *testing.T) {
			t.Setenv("KUBECONFIG", way.kubeconfig)
			t.Setenv("KUBERNETES_SERVICE_HOST", way.host)
			t.Setenv("KUBERNETES_SERVICE_PORT", "1")
			leaves(NewCommand(io.Discard), func(cmd *cobra.Command) {
				_, path, _ := strings.Cut(cmd.CommandPath(), " ")
				more, ok := reaching[path]
				if !ok {
					t.Errorf("nothing is known of the command %s", path)
					return
				}
				var out bytes.Buffer
				all := NewCommand(&out)
				all.SetErr(&out)
				all.SetArgs(append(strings.Fields(path+" "+paths.Replace(more)), way.flags...))
				err := all.ExecuteContext(t.Context())
				if err == nil || !strings.Contains(err.Error(), way.want) {
					t.Errorf("shipperctl %s: the error is\n%v\nand should contain\n%s\n%s", path, err, way.want, out.String())
				}
			})
		})
	}
}

// TestHelpSaysADefaultOnce also looks for backquotes, which pflag takes for the type of a value.
func TestHelpSaysADefaultOnce(t *testing.T) {
	var all func(cmd *cobra.Command)
	all = func(cmd *cobra.Command) {
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			one := pflag.NewFlagSet("", pflag.ContinueOnError)
			one.AddFlag(f)
			if line := one.FlagUsages(); strings.Count(line, "(default") > 1 {
				t.Errorf("%s: %s", cmd.CommandPath(), line)
			}
			if what, _ := pflag.UnquoteUsage(f); strings.Contains(what, " ") {
				t.Errorf("%s --%s has the type %q", cmd.CommandPath(), f.Name, what)
			}
		})
		for _, one := range cmd.Commands() {
			all(one)
		}
	}
	all(NewCommand(io.Discard))
}

// alone are the commands that reach no cluster.
var alone = []string{"chart check", "completion", "convert", "help"}

// leaves calls do for every command that does something itself and reaches a cluster.
func leaves(cmd *cobra.Command, do func(*cobra.Command)) {
	_, path, _ := strings.Cut(cmd.CommandPath(), " ")
	if len(cmd.Commands()) == 0 && !slices.Contains(alone, path) {
		do(cmd)
	}
	for _, child := range cmd.Commands() {
		leaves(child, do)
	}
}
