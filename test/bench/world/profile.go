// SPDX-License-Identifier: Apache-2.0

package world

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"shipper.dev/shipper/test/pod"
)

// Heaps saves what both processes hold in memory, under a name, for `go tool pprof`, when profiles are wanted.
func (w *World) Heaps(ctx context.Context, name string) error {
	for _, p := range []*pod.Process{w.Pod.Reconciler, w.Pod.Webhook} {
		if err := w.profile(ctx, p, "heap?gc=1", name+"-heap"); err != nil {
			return err
		}
	}
	return nil
}

// Processors begins to save what the reconciler spends time of processors on, under a name, when profiles are wanted. The
// function it returns waits until that is done.
func (w *World) Processors(ctx context.Context, name string, d time.Duration) (wait func() error) {
	done := make(chan error, 1)
	p := w.Pod.Reconciler
	go func() { done <- w.profile(ctx, p, fmt.Sprintf("profile?seconds=%d", int(d.Seconds())), name+"-cpu") }()
	return func() error { return <-done }
}

// profile saves one profile of a process.
func (w *World) profile(ctx context.Context, of *pod.Process, what, name string) error {
	if w.profiles == "" {
		return nil
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, of.Profiles+what, nil)
	if err != nil {
		return fmt.Errorf("profiling %s: %w", of.Name, err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("profiling %s: %w", of.Name, err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("profiling %s: %s", of.Name, answer.Status)
	}
	file, err := os.Create(filepath.Join(w.profiles, of.Name+"-"+name+".pprof"))
	if err != nil {
		return fmt.Errorf("profiling %s: %w", of.Name, err)
	}
	_, err = io.Copy(file, answer.Body)
	if closing := file.Close(); err == nil {
		err = closing
	}
	if err != nil {
		return fmt.Errorf("profiling %s: %w", of.Name, err)
	}
	return nil
}

// keepLogs saves what Shipper has logged beside its profiles.
func (w *World) keepLogs() error {
	logs, err := filepath.Glob(filepath.Join(w.dir, "shipper-*.log"))
	for _, log := range logs {
		var text []byte
		if text, err = os.ReadFile(log); err != nil {
			break
		}
		if err = os.WriteFile(filepath.Join(w.profiles, filepath.Base(log)), text, 0o600); err != nil {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("keeping logs: %w", err)
	}
	return nil
}
