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

// Which minor versions of Kubernetes the management cluster and the application clusters run is said by two environment variables,
// as in 1.33. Without the second all run the same, without the first the newest that there is.
const (
	managementVersion  = "K8S"
	applicationVersion = "K8S_APPLICATIONS"
)

// versions are the minor versions that the environment asks for; empty means the newest.
func versions() (management, applications string) {
	management = os.Getenv(managementVersion)
	if applications = os.Getenv(applicationVersion); applications == "" {
		applications = management
	}
	return management, applications
}

// Kubectl is the path of the kubectl that belongs to the fleet's management cluster. It is built if need be.
func Kubectl() (string, error) {
	management, _ := versions()
	folder, err := binaries(context.Background(), os.Stderr, management)
	if err != nil {
		return "", err
	}
	return filepath.Join(folder, "kubectl"), nil
}

// binaries is the folder of the programs a cluster is made of that runs a minor version. What takes time is told to progress.
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

// checkout is the root of the source tree: that of the working directory, or else the one this file was compiled from.
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
