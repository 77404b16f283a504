// SPDX-License-Identifier: Apache-2.0

package kill

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
)

// lives runs a reconciler that is started again whenever it is killed.
type lives struct {
	gate *gate
	path string
	log  string
	args []string

	stop context.CancelFunc
	done chan struct{}

	mu  sync.Mutex
	err error // the exit of a run that was not killed
}

// live starts the reconciler, and starts it again, until ctx ends or stop is called.
func (l *lives) live(ctx context.Context) {
	ctx, l.stop = context.WithCancel(ctx)
	l.done = make(chan struct{})
	go func() {
		defer close(l.done)
		// The kernel sends the death signal when the thread that started a child exits.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		for ctx.Err() == nil {
			if err := l.once(ctx); err != nil {
				l.mu.Lock()
				l.err = err
				l.mu.Unlock()
				return
			}
		}
	}()
}

// halt stops the reconciler for good.
func (l *lives) halt() {
	l.stop()
	<-l.done
}

// once is one run of the reconciler.
func (l *lives) once(ctx context.Context) error {
	file, err := os.OpenFile(l.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("opening the reconciler's log: %w", err)
	}
	defer file.Close()
	cmd := exec.Command(l.path, l.args...)
	cmd.Stdout, cmd.Stderr = file, file
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("starting the reconciler: %w", err)
	}
	exited := make(chan error, 1)
	over := make(chan struct{})
	go func() {
		exited <- cmd.Wait()
		close(over)
	}()
	killed := false // written in kill alone, read after the process has exited
	l.gate.begin(func() {
		killed = true
		_ = cmd.Process.Kill() // an error means that it has exited
		<-over
	})
	select {
	case <-ctx.Done():
		_ = cmd.Process.Kill()
		<-over
		l.gate.end()
		return nil
	case err = <-exited:
	}
	l.gate.end() // waits for the gate, which is locked while the process is killed
	if !killed {
		return fmt.Errorf("the reconciler ended by itself: %w\n%s", errors.Join(err, errors.New("not asked to")), l.tail())
	}
	return nil
}

// failure returns an error if the reconciler exited without being killed.
func (l *lives) failure() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

// tail returns the end of the reconciler's log.
func (l *lives) tail() string {
	b, err := os.ReadFile(l.log)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	return strings.Join(lines[max(0, len(lines)-25):], "\n")
}
