// SPDX-License-Identifier: Apache-2.0

package pod

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/cmd/shipperctl/install"
	"shipper.dev/shipper/test/fleet"
)

// built names the folder of binaries that were built before, by hack/test-binaries.sh for `make test`.
const built = "SHIPPER_TEST_BIN"

// Built returns the folder of binaries that were built before, or "".
func Built() string { return os.Getenv(built) }

// Build puts binaries into the folder dir, all three unless some are named: links to those that were built before, or else new ones. Go
// keeps what `go run` links, unlike what `go build` does: packages that are tested one after the other link nothing again. A package that
// builds has a test of ReadCode.
func Build(ctx context.Context, dir string, names ...string) error {
	if len(names) == 0 {
		names = []string{"shipper-webhook", "shipper-reconciler", "shipperctl"}
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("making a folder for the binaries: %w", err)
	}
	for _, name := range names {
		if before := Built(); before != "" {
			if err := link(filepath.Join(before, name), filepath.Join(dir, name)); err != nil {
				return fmt.Errorf("using what %s names: %w", built, err)
			}
			continue
		}
		build := exec.CommandContext(ctx, "go", "run", "-exec", fmt.Sprintf("cp -t '%s'", dir), "shipper.dev/shipper/cmd/"+name)
		if out, err := build.CombinedOutput(); err != nil {
			return fmt.Errorf("building %s: %w\n%s", name, err, out)
		}
	}
	return nil
}

// link makes a symbolic link to a file that exists.
func link(to, at string) error {
	if _, err := os.Stat(to); err != nil {
		return err
	}
	return os.Symlink(to, at)
}

// ReadCode reads the folders of the packages that the binaries are made of, for `go test` to know that what it found of a package that
// builds them holds no longer when a file is another one. It takes note of what tests read, not of what is read before them; of binaries
// that were built before, the variable suffices.
func ReadCode(ctx context.Context) error {
	if Built() != "" {
		return nil
	}
	const format = "{{if .Module}}{{if .Module.Main}}{{.Dir}}{{end}}{{end}}"
	out, err := exec.CommandContext(ctx, "go", "list", "-deps", "-f", format, "shipper.dev/shipper/cmd/...").Output()
	if err != nil {
		return fmt.Errorf("listing the packages of Shipper: %w", err)
	}
	for _, folder := range strings.Fields(string(out)) {
		if _, err := os.ReadDir(folder); err != nil {
			return fmt.Errorf("reading the code of Shipper: %w", err)
		}
	}
	return nil
}

// SetUp sets a fleet up as its administrator would, with the shipperctl of the folder bin: the management cluster for a
// webhook that listens on port, then what clusters, the text of a clusters.yaml, says.
func SetUp(ctx context.Context, f *fleet.Fleet, bin, clusters string, port int) error {
	file := filepath.Join(bin, "clusters.yaml")
	if err := os.WriteFile(file, []byte(clusters), 0o600); err != nil {
		return fmt.Errorf("writing clusters.yaml: %w", err)
	}
	if err := SetUpManagement(ctx, f, bin, port); err != nil {
		return err
	}
	// The shortest life there is: a test longer than a quarter of it has its tokens renewed meanwhile.
	if err := Shipperctl(ctx, f, bin, "clusters", "join", "-f", file, "--token-lifetime", "10m"); err != nil {
		return err
	}
	return FailClosed(ctx, f)
}

// FailClosed sets failurePolicy Fail. `clusters join` does so only while a webhook answers, and here it runs before Shipper.
func FailClosed(ctx context.Context, f *fleet.Fleet) error {
	c, err := install.NewClient(f.Management.Config)
	if err != nil {
		return err
	}
	m := &install.Management{Client: c, Report: install.NewReport(io.Discard)}
	return m.SetFailurePolicy(ctx)
}

// SetUpManagement is SetUp without joining any cluster.
func SetUpManagement(ctx context.Context, f *fleet.Fleet, bin string, port int) error {
	if err := Shipperctl(ctx, f, bin, "clusters", "setup", "management", "--webhook-url", WebhookURL(port)); err != nil {
		return err
	}
	// The garbage collector looks for new kinds every 30 s, and at its start.
	return f.Management.RestartControllers()
}

// Shipperctl runs the one of the folder bin as the administrator of a fleet.
func Shipperctl(ctx context.Context, f *fleet.Fleet, bin string, args ...string) error {
	cmd := exec.CommandContext(ctx, filepath.Join(bin, "shipperctl"), args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+f.Kubeconfig)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("shipperctl %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return nil
}

// NewClient is a client for Shipper's kinds and those of Kubernetes.
func NewClient(config *rest.Config) (client.WithWatch, error) {
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), shipper.AddToScheme(scheme)); err != nil {
		return nil, fmt.Errorf("building the scheme: %w", err)
	}
	c, err := client.NewWithWatch(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	return c, nil
}
