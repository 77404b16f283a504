// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

// TestPlanSeesFieldsThatAreGone takes a value out of a manifest: plan names the Release that kubectl apply would make.
func TestPlanSeesFieldsThatAreGone(t *testing.T) {
	quickStart(t)
	t.Parallel()
	for name, how := range map[string][]string{"kubectl apply": nil, "kubectl apply --server-side": {"--server-side"}} {
		t.Run(name, func(t *testing.T) {
			u := begin(t)
			manifest := u.application(u.Env.Charts.URL, "0.0.1", "stable")
			before := strings.Replace(manifest, "values:\n", "values:\n      note: was here\n", 1)
			apply := append([]string{"apply", "-f", "-"}, how...)
			out, err := u.run(u.Ctx, before, apply...)
			u.Must("applying\n"+out, err)
			u.Release(0)

			release := regexp.MustCompile(`Release (\S+) of chart`)
			out, err = u.run(u.Ctx, manifest, append(apply, "--dry-run=server")...)
			u.Must("applying in a dry run\n"+out, err)
			want := release.FindStringSubmatch(out)
			if want == nil {
				t.Fatalf("the dry run makes no Release:\n%s", out)
			}
			plan := exec.CommandContext(u.Ctx, installed(t, "shipperctl"), "plan", "-n", u.Namespace, "-f", "-")
			plan.Env = append(os.Environ(), "KUBECONFIG="+world.fleet.Kubeconfig)
			plan.Stdin = strings.NewReader(manifest)
			said, err := plan.CombinedOutput()
			u.Must("planning\n"+string(said), err)
			if got := release.FindStringSubmatch(string(said)); got == nil || got[1] != want[1] {
				t.Errorf("plan says\n%s\nwant Release %s", said, want[1])
			}
		})
	}
}
