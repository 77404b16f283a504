// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"shipper.dev/shipper/test/charts"
	"shipper.dev/shipper/test/env"
	"shipper.dev/shipper/test/pod"
)

// webhook is the binary, which runs with the credentials of its service account.
type webhook struct {
	name                 string // of its log
	bin, kubeconfig, dir string
	port                 int
	flags                []string

	healthPort, metricsPort int
	process                 *exec.Cmd
	ended                   chan error
}

// start starts the binary and returns when it is ready.
func (w *webhook) start(ctx context.Context) error {
	var err error
	if w.healthPort, err = pod.FreePort(); err != nil {
		return err
	}
	if w.metricsPort, err = pod.FreePort(); err != nil {
		return err
	}
	log, err := os.OpenFile(w.log(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	w.process = exec.Command(filepath.Join(w.bin, "shipper-webhook"), append([]string{
		"--kubeconfig", w.kubeconfig, "--extra-dns-names", "localhost", "--shutdown-delay", "100ms", "--log-level", "1",
		"--outgoing-urls", "https://judge.example.com, http://*:80",
		"--addr", fmt.Sprintf("127.0.0.1:%d", w.port), "--health-addr", fmt.Sprintf("127.0.0.1:%d", w.healthPort),
		"--metrics-addr", fmt.Sprintf("127.0.0.1:%d", w.metricsPort),
		charts.Flag,
		"--chart-cache-dir", filepath.Join(w.dir, "charts-"+w.name),
	}, w.flags...)...)
	w.process.Env = append(os.Environ(), "TMPDIR=/nonexistent") // as in a Pod whose root file system is read-only
	w.process.Stdout, w.process.Stderr = log, log
	w.process.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	w.ended = make(chan error, 1)
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // the kernel kills the child when the thread that started it ends
		err := w.process.Start()
		started <- err
		if err == nil {
			w.ended <- w.process.Wait()
		}
	}()
	if err := <-started; err != nil {
		return err
	}
	return w.ready(ctx)
}

// stop stops the binary as a kubelet would.
func (w *webhook) stop() error {
	if err := w.process.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	select {
	case err := <-w.ended:
		return err
	case <-time.After(env.Patience):
		return fmt.Errorf("the webhook did not exit within %s of SIGTERM", env.Patience)
	}
}

func (w *webhook) ready(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	err := env.Until(ctx, "the webhook", func(ctx context.Context) error {
		select {
		case err := <-w.ended:
			cancel(err)
			return fmt.Errorf("it ended: %w", err)
		default:
		}
		if code := w.get(ctx, w.healthPort, "/readyz"); code != http.StatusOK {
			return fmt.Errorf("/readyz says %d", code)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("%w: %s", err, w.said())
	}
	return nil
}

// get returns the status of the webhook's response, 0 if there is none.
func (w *webhook) get(ctx context.Context, port int, path string) int {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("http://127.0.0.1:%d%s", port, path), nil)
	if err != nil {
		return 0
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0
	}
	response.Body.Close()
	return response.StatusCode
}

func (w *webhook) log() string { return filepath.Join(w.dir, w.name+".log") }

func (w *webhook) said() string {
	text, err := os.ReadFile(w.log())
	if err != nil {
		return err.Error()
	}
	return string(text[max(0, len(text)-4000):])
}
