// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"shipper.dev/shipper/test/program"
)

// buildScript finds, downloads or builds the programs, and prints their folder.
const buildScript = "hack/controlplane/build.sh"

// Two environment variables set the minor versions of Kubernetes of the management cluster and the application clusters, as
// in 1.33. The second defaults to the first, the first to the newest.
const (
	managementVersion  = "K8S"
	applicationVersion = "K8S_APPLICATIONS"
)

// versions returns the minor versions from the environment; empty means the newest.
func versions() (management, applications string) {
	management = os.Getenv(managementVersion)
	if applications = os.Getenv(applicationVersion); applications == "" {
		applications = management
	}
	return management, applications
}

// Kubectl returns the path of the kubectl of the management cluster's version. It downloads or builds kubectl if need be.
func Kubectl() (string, error) {
	management, _ := versions()
	folder, err := binaries(context.Background(), os.Stderr, management)
	if err != nil {
		return "", err
	}
	return filepath.Join(folder, "kubectl"), nil
}

// binaries returns the folder of the programs of a cluster with a minor version. It reports slow steps to progress.
func binaries(ctx context.Context, progress io.Writer, minor string) (string, error) {
	folder, err := program.Build(ctx, progress, buildScript, managementVersion+"="+minor)
	if err != nil {
		return "", fmt.Errorf("the control plane: %w", err)
	}
	return folder, nil
}
