// SPDX-License-Identifier: Apache-2.0

// Package examples proves that what people are told to apply can be applied.
package examples

import (
	"bytes"
	"context"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"shipper.dev/shipper/apis/rules/stamp"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/cmd/shipperctl/clusters"
	"shipper.dev/shipper/cmd/shipperctl/root"
	"shipper.dev/shipper/test/env"
	"shipper.dev/shipper/test/fleet"
)

const (
	folder   = "../../examples"
	overlays = "../../manifests/overlays"
)

var theFleet *fleet.Fleet

func TestMain(m *testing.M) {
	os.Exit(env.Main(m, env.Options{SetUp: func(_ context.Context, e *env.Env) error {
		theFleet = e.Fleet
		return nil
	}}))
}

// kubectl runs kubectl on the management cluster and returns what it writes.
func kubectl(t *testing.T, args ...string) string {
	t.Helper()
	path, err := fleet.Kubectl()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), path, append(args, "--kubeconfig", theFleet.Management.Kubeconfig)...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// setUp sets the management cluster up. There is no webhook, and no need of one.
func setUp(t *testing.T, flags ...string) {
	t.Helper()
	cmd := root.NewCommand(io.Discard)
	cmd.SetArgs(append([]string{"clusters", "setup", "management", "--kube-config", theFleet.Kubeconfig}, flags...))
	if err := cmd.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestExamplesApply(t *testing.T) {
	setUp(t, "--webhook-url", "https://localhost:1")
	// No webhook runs here, and Envelopes are refused without an answer of theirs.
	kubectl(t, "delete", "validatingwebhookconfigurations", shipper.GroupName)
	// The namespaces that the examples speak of; a dry run makes none.
	kubectl(t, "create", "namespace", "fairytale-land", "--save-config")
	var seen int
	err := filepath.WalkDir(folder, func(path string, _ fs.DirEntry, err error) error {
		if filepath.Base(path) == "gitops" { // for programs that are not here; test/gitops reads it
			return filepath.SkipDir
		}
		if err != nil || filepath.Ext(path) != ".yaml" || filepath.Base(path) == "clusters.yaml" {
			return err
		}
		seen++
		name, err := filepath.Rel(folder, path)
		if err != nil {
			return err
		}
		t.Run(name, func(t *testing.T) {
			out := kubectl(t, "apply", "--dry-run=server", "--validate=strict", "-f", path)
			if strings.Contains(out, "Warning:") {
				t.Errorf("there are warnings:\n%s", out)
			}
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if seen < 6 {
		t.Errorf("only %d examples were found", seen)
	}
}

func TestExampleOfClustersIsRead(t *testing.T) {
	path := filepath.Join(folder, "clusters.yaml")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	file, err := clusters.Parse(path, text)
	if err != nil {
		t.Fatal(err)
	}
	if len(file.Applications) != 2 || len(file.Management) != 1 {
		t.Errorf("it says %+v", file)
	}
}

func TestQuickStartMakesTheReleaseOfTheDocumentation(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(folder, "01-quick-start", "app.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	app := &shipper.Application{}
	if err := yaml.UnmarshalStrict(text, app); err != nil {
		t.Fatal(err)
	}
	hash, err := stamp.Hash(app.Spec.Template)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"examples/01-quick-start/README.md", "docs/quick-start.md"} {
		text, err := os.ReadFile(filepath.Join("../..", name))
		if err != nil {
			t.Fatal(err)
		}
		if want := "super-server-" + hash + "-0"; !bytes.Contains(text, []byte(want)) {
			t.Errorf("%s does not speak of %s", name, want)
		}
	}
}

// TestOverlaysApply runs last: with what the default overlay installs, nothing can be written without the webhook.
func TestOverlaysApply(t *testing.T) {
	setUp(t, "--webhook-url", "") // as the overlays have it: by the Service
	kubectl(t, "kustomize", filepath.Join(overlays, "cert-manager"))
	kubectl(t, "apply", "--dry-run=server", "--validate=strict", "-f", filepath.Join(overlays, "../network/policy.yaml"))
	for _, overlay := range []string{"default", "ha"} {
		t.Run(overlay, func(t *testing.T) {
			path := filepath.Join(overlays, overlay)
			kubectl(t, "apply", "--server-side", "--force-conflicts", "-k", path)
			out := kubectl(t, "apply", "--server-side", "--force-conflicts", "-k", path)
			if strings.Contains(out, "Warning:") {
				t.Errorf("there are warnings:\n%s", out)
			}
			kubectl(t, "rollout", "status", "deployment/shipper", "-n", "shipper-system", "--timeout=60s")
		})
	}
}
