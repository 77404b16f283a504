// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"shipper.dev/shipper/test/bench/world"
	"shipper.dev/shipper/test/pod"
)

// process is the reconciler, in a process of its own so that its use of resources is measured apart from the API servers'.
type process struct {
	begin
	pid   int
	cmd   *exec.Cmd
	ended chan struct{}
}

// start starts the reconciler.
func (s *simulation) start() error {
	b := begin{Host: s.management.URL, CA: s.management.CA}
	for _, address := range []*string{&b.Metrics, &b.Profiles} {
		port, err := pod.FreePort()
		if err != nil {
			return err
		}
		*address = fmt.Sprintf("127.0.0.1:%d", port)
	}
	raw, err := json.Marshal(b)
	if err != nil {
		return fmt.Errorf("sending a command to the reconciler: %w", err)
	}
	file := filepath.Join(s.dir, "begin.json")
	if err := os.WriteFile(file, raw, 0o600); err != nil {
		return fmt.Errorf("sending a command to the reconciler: %w", err)
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("finding this program: %w", err)
	}
	p := &process{begin: b, ended: make(chan struct{})}
	p.cmd = exec.Command(self, "-reconciler", file, "-workers", strconv.Itoa(s.workers))
	p.cmd.Stdout, p.cmd.Stderr = os.Stderr, os.Stderr
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := p.cmd.Start(); err != nil {
		return fmt.Errorf("starting the reconciler: %w", err)
	}
	go func() {
		_ = p.cmd.Wait() // that it ended is all there is to know
		close(p.ended)
	}()
	p.pid = p.cmd.Process.Pid
	s.reconciler = p
	return nil
}

// kill ends it at once.
func (p *process) kill() {
	if p == nil || p.cmd == nil {
		return
	}
	_ = p.cmd.Process.Kill() // it may have ended
	<-p.ended
}

// used is what the reconciler has and has used.
type used struct {
	heap, resident, goroutines float64 // MiB, but for the last
	processor                  time.Duration
}

// used looks, when garbage has been collected.
func (p *process) used(ctx context.Context) (used, error) {
	for range 2 { // pooled objects are freed by the second collection
		if err := p.get(ctx, p.Profiles+"/debug/pprof/heap?gc=1", io.Discard); err != nil {
			return used{}, err
		}
	}
	read, write := io.Pipe()
	go func() { write.CloseWithError(errors.Join(p.get(ctx, p.Metrics+"/metrics", write), io.EOF)) }()
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(read)
	if err != nil {
		return used{}, fmt.Errorf("reading metrics: %w", err)
	}
	gauge := func(name string) float64 {
		if m := families[name].GetMetric(); len(m) == 1 {
			return m[0].GetGauge().GetValue()
		}
		return 0
	}
	const mib = 1 << 20
	processor, resident, err := world.Usage(p.pid)
	return used{
		heap: gauge("go_memstats_heap_alloc_bytes") / mib, resident: float64(resident) / mib,
		goroutines: gauge("go_goroutines"), processor: processor,
	}, err
}

// get reads a page.
func (p *process) get(ctx context.Context, page string, to io.Writer) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+page, nil)
	if err != nil {
		return fmt.Errorf("asking for %s: %w", page, err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("asking for %s: %w", page, err)
	}
	defer response.Body.Close()
	if _, err = io.Copy(to, response.Body); err != nil {
		return fmt.Errorf("reading %s: %w", page, err)
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("asking for %s: %s", page, response.Status)
	}
	return nil
}
