// SPDX-License-Identifier: Apache-2.0

package pod

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"shipper.dev/shipper/test/await"
)

// TestABinaryIsStartedAgainWhenItLostItsLeaseAlone runs shell scripts in place of a binary. Each run adds a line to a file.
func TestABinaryIsStartedAgainWhenItLostItsLeaseAlone(t *testing.T) {
	t.Parallel()
	const lost = `echo 'ERROR Ended {"error": "leader election lost"}'; exit 1`
	for sentence, tc := range map[string]struct {
		first, second string
		restarts      int
		ended         string
	}{
		"it lost its lease":              {lost, "exec sleep 60", 1, ""},
		"it failed":                      {"echo panic: nil map; exit 2", "exec sleep 60", 0, "panic: nil map"},
		"it was asked to end":            {"echo leader election lost; exit 0", "exec sleep 60", 0, "leader election lost"},
		"it lost its lease, then failed": {lost, "echo panic: nil map; exit 2", 1, "panic: nil map"},
	} {
		t.Run(sentence, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			script := filepath.Join(dir, "shipper-reconciler")
			text := "#!/bin/sh\necho >> " + dir + "/runs\nif [ $(wc -l < " + dir + "/runs) = 1 ]; then\n" + tc.first + "\nfi\n" + tc.second + "\n"
			if err := os.WriteFile(script, []byte(text), 0o755); err != nil {
				t.Fatal(err)
			}
			p, err := start("shipper-reconciler", script, filepath.Join(dir, "log"))
			if err != nil {
				t.Fatal(err)
			}
			first := p.Pid()
			p.keep(t.Logf)
			await.Eventually(t, "the last run", func(context.Context) error {
				ended := p.Ended()
				switch {
				case p.Restarts() != tc.restarts:
					return errors.New("it is not that of the test yet")
				case tc.ended == "" && ended != nil:
					return ended
				case tc.ended != "" && ended == nil:
					return errors.New("it runs")
				case ended != nil && !strings.Contains(ended.Error(), tc.ended):
					t.Fatalf("it ended otherwise: %v", ended)
				}
				return nil
			})
			if again := p.Pid() != first; again != (tc.restarts > 0) {
				t.Errorf("another process runs: %t", again)
			}
			if err := p.Stop(); err != nil {
				t.Error(err)
			}
			if got := p.Restarts(); got != tc.restarts {
				t.Errorf("%d restarts after it was stopped", got)
			}
		})
	}
}
