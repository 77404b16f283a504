// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// buildScript builds the programs, or finds them, and prints their folder.
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

// Kubectl returns the path of the kubectl of the management cluster's version. It builds kubectl if need be.
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
	root, err := checkout()
	if err != nil {
		return "", err
	}
	var out bytes.Buffer
	cmd := exec.CommandContext(ctx, filepath.Join(root, buildScript))
	cmd.Env = append(os.Environ(), managementVersion+"="+minor)
	cmd.Stdout, cmd.Stderr = &out, progress
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("building the control plane with %s: %w", buildScript, err)
	}
	return strings.TrimSpace(out.String()), nil
}

// checkout returns the root of the source tree: that of the working directory, or else the one this file was compiled from.
func checkout() (string, error) {
	var starts []string
	if wd, err := os.Getwd(); err == nil {
		starts = append(starts, wd)
	}
	if _, file, _, ok := runtime.Caller(0); ok {
		starts = append(starts, filepath.Dir(file))
	}
	for _, folder := range starts {
		for ; folder != filepath.Dir(folder); folder = filepath.Dir(folder) {
			if _, err := os.Stat(filepath.Join(folder, buildScript)); err == nil {
				return folder, nil
			}
		}
	}
	return "", errors.New("no checkout of Shipper found: " + buildScript + " is in none of the folders above")
}
