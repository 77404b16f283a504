// SPDX-License-Identifier: Apache-2.0

// Package program builds the foreign programs that tests need, reserves ports for them, and starts and stops them.
// None outlives the process that started it.
package program

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Build runs a script of this repository that builds programs unless they are cached, and returns their folder, which
// the script prints. The script is relative to the root of the source tree; variables, as in K8S=1.33, are added to
// its environment. Slow steps are reported to progress.
func Build(ctx context.Context, progress io.Writer, script string, variables ...string) (string, error) {
	root, err := Checkout(script)
	if err != nil {
		return "", err
	}
	var out bytes.Buffer
	cmd := exec.CommandContext(ctx, filepath.Join(root, script))
	cmd.Env = append(os.Environ(), variables...)
	cmd.Stdout, cmd.Stderr = &out, progress
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("building with %s: %w", script, err)
	}
	return strings.TrimSpace(out.String()), nil
}

// Checkout returns the root of the source tree that has a file, of those that the working directory is in.
func Checkout(file string) (string, error) {
	folder, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("looking for a checkout of Shipper: %w", err)
	}
	for ; folder != filepath.Dir(folder); folder = filepath.Dir(folder) {
		if _, err := os.Stat(filepath.Join(folder, file)); err == nil {
			return folder, nil
		}
	}
	return "", errors.New("no checkout of Shipper found: " + file + " is in none of the folders above")
}
