// SPDX-License-Identifier: Apache-2.0

package restore

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// ctl is shipperctl with a kubeconfig.
type ctl struct {
	*testing.T
	kubeconfig string
}

// run returns the output.
func (c ctl) run(answers string, args ...string) (string, error) {
	cmd := exec.CommandContext(c.Context(), filepath.Join(world.lost.Dir, "shipperctl"), args...)
	cmd.Env, cmd.Stdin = append(os.Environ(), "KUBECONFIG="+c.kubeconfig), strings.NewReader(answers)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	return out.String(), err
}

func (c ctl) succeeds(answers string, args ...string) string {
	c.Helper()
	out, err := c.run(answers, args...)
	if err != nil {
		c.Fatalf("shipperctl %v: %v\n%s", args, err, out)
	}
	return out
}

func (c ctl) fails(answers string, args ...string) string {
	c.Helper()
	out, err := c.run(answers, args...)
	if err == nil {
		c.Fatalf("shipperctl %v succeeded:\n%s", args, out)
	}
	return out
}

func contains(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("it says\n%s\nand should say\n%s", text, part)
		}
	}
}
