// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// process is a program of the fleet, while it runs and afterwards.
type process struct {
	name string
	log  string
	cmd  *exec.Cmd

	done     chan struct{} // closed once the program has exited
	exit     error         // why it exited; read it only after done
	expected atomic.Bool   // set before the fleet stops the program
	replaced atomic.Bool   // another takes its place when it exits on its own
}

// startProcess starts a program whose output is appended to a log file. The kernel kills the program when this process exits.
func startProcess(name, log string, environment []string, path string, args ...string) (*process, error) {
	out, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, fmt.Errorf("opening the log of %s: %w", name, err)
	}
	defer out.Close()
	cmd := exec.Command(path, args...)
	cmd.Env = environment
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = endsWithParent()
	p := &process{name: name, log: log, cmd: cmd, done: make(chan struct{})}
	if err := forkOnLastingThread(cmd.Start); err != nil {
		return nil, fmt.Errorf("starting %s: %w", name, err)
	}
	go func() {
		p.exit = cmd.Wait()
		close(p.done)
	}()
	return p, nil
}

// forks sends functions to the thread that runs them.
var forks = sync.OnceValue(func() chan<- func() {
	work := make(chan func())
	go func() {
		runtime.LockOSThread()
		for f := range work {
			f()
		}
	}()
	return work
})

// forkOnLastingThread runs start on a thread that lives as long as this process: Linux sends the parent-death signal when the
// thread that forked exits, and Go ends threads at any time.
func forkOnLastingThread(start func() error) error {
	result := make(chan error)
	forks() <- func() { result <- start() }
	return <-result
}

// ended reports whether the program has exited.
func (p *process) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// failure returns the error of a program that exited on its own, with the end of its log, or nil while it or another in its place runs.
func (p *process) failure() error {
	if p == nil || !p.ended() || p.expected.Load() || p.replaced.Load() {
		return nil
	}
	return p.explain(fmt.Errorf("%s ended: %w", p.name, errors.Join(p.exit)))
}

// explain adds the end of the program's log to an error.
func (p *process) explain(err error) error {
	return fmt.Errorf("%w\n--- end of %s\n%s", err, p.log, tail(p.log, 20))
}

// signal sends a signal to the program if it still runs.
func (p *process) signal(s syscall.Signal) error {
	if err := p.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("signalling %s: %w", p.name, err)
	}
	return nil
}

// kill kills the program.
func (p *process) kill() error {
	p.expected.Store(true)
	if err := p.signal(syscall.SIGKILL); err != nil {
		return err
	}
	<-p.done
	return nil
}

// stopProcesses sends SIGTERM to every program, waits for all of them together, and kills those that take longer than grace.
func stopProcesses(grace time.Duration, processes ...*process) error {
	var errs []error
	for _, p := range processes {
		errs = append(errs, p.failure())
		p.expected.Store(true)
		errs = append(errs, p.signal(syscall.SIGTERM), p.signal(syscall.SIGCONT))
	}
	timer := time.NewTimer(grace)
	defer timer.Stop()
	for _, p := range processes {
		select {
		case <-p.done:
			continue
		case <-timer.C:
			timer.Reset(0)
		}
		errs = append(errs, p.kill())
	}
	return errors.Join(errs...)
}

// tail returns the last lines of a file, as far as they can be read.
func tail(path string, lines int) []byte {
	const most = 16 << 10
	f, err := os.Open(path)
	if err != nil {
		return []byte(err.Error())
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.Size() > most {
		if _, err := f.Seek(-most, io.SeekEnd); err != nil {
			return []byte(err.Error())
		}
	}
	text, err := io.ReadAll(f)
	if err != nil {
		return []byte(err.Error())
	}
	all := bytes.Split(bytes.TrimSpace(text), []byte("\n"))
	return bytes.Join(all[max(0, len(all)-lines):], []byte("\n"))
}
