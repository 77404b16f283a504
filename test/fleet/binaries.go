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

// Kubectl is the path of the kubectl that belongs to the fleet. It is built if need be.
func Kubectl() (string, error) {
	folder, err := binaries(context.Background(), os.Stderr)
	if err != nil {
		return "", err
	}
	return filepath.Join(folder, "kubectl"), nil
}

// binaries is the folder of the programs a cluster is made of. What takes time is told to progress.
func binaries(ctx context.Context, progress io.Writer) (string, error) {
	root, err := checkout()
	if err != nil {
		return "", err
	}
	var out bytes.Buffer
	cmd := exec.CommandContext(ctx, filepath.Join(root, buildScript))
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
