// SPDX-License-Identifier: Apache-2.0

package program

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

// Process is a running program, or one that has exited.
type Process struct {
	// Name is for messages.
	Name string

	log string
	cmd *exec.Cmd

	done     chan struct{} // closed once the program has exited
	exit     error         // why it exited; read it only after done
	expected atomic.Bool   // set before Stop or Kill ends the program
	replaced atomic.Bool   // another takes its place when it exits on its own
}

// Start starts a program whose output is appended to a log file. The kernel kills the program when this process
// exits.
func Start(name, log string, environment []string, path string, args ...string) (*Process, error) {
	out, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, fmt.Errorf("opening the log of %s: %w", name, err)
	}
	defer out.Close()
	cmd := exec.Command(path, args...)
	cmd.Env = environment
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = endsWithParent()
	p := &Process{Name: name, log: log, cmd: cmd, done: make(chan struct{})}
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

// forkOnLastingThread runs start on a thread that lives as long as this process: Linux sends the parent-death signal
// when the thread that forked exits, and Go ends threads at any time.
func forkOnLastingThread(start func() error) error {
	result := make(chan error)
	forks() <- func() { result <- start() }
	return <-result
}

// Pid is the number that the kernel knows the program by.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Done is closed once the program has exited.
func (p *Process) Done() <-chan struct{} { return p.done }

// Expected reports whether Stop or Kill ends the program.
func (p *Process) Expected() bool { return p.expected.Load() }

// SetReplaced says whether the caller starts another program when this one exits on its own: Failure is nil then.
func (p *Process) SetReplaced(replaced bool) { p.replaced.Store(replaced) }

// Ended reports whether the program has exited.
func (p *Process) Ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// Succeeded reports whether the program has exited with 0.
func (p *Process) Succeeded() bool { return p.Ended() && p.exit == nil }

// Failure returns the error of a program that exited on its own, with the end of its log, or nil while it or another
// in its place runs.
func (p *Process) Failure() error {
	if p == nil || !p.Ended() || p.expected.Load() || p.replaced.Load() {
		return nil
	}
	return p.Explain(fmt.Errorf("%s ended: %w", p.Name, errors.Join(p.exit)))
}

// Explain adds the end of the program's log to an error.
func (p *Process) Explain(err error) error {
	return fmt.Errorf("%w\n--- end of %s\n%s", err, p.log, Tail(p.log, 20))
}

// Signal sends a signal to the program if it still runs.
func (p *Process) Signal(s syscall.Signal) error {
	if err := p.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("signalling %s: %w", p.Name, err)
	}
	return nil
}

// Kill kills the program.
func (p *Process) Kill() error {
	p.expected.Store(true)
	if err := p.Signal(syscall.SIGKILL); err != nil {
		return err
	}
	<-p.done
	return nil
}

// Stop sends SIGTERM to every program, waits for all of them together, and kills those that take longer than grace.
func Stop(grace time.Duration, processes ...*Process) error {
	var errs []error
	for _, p := range processes {
		errs = append(errs, p.Failure())
		p.expected.Store(true)
		errs = append(errs, p.Signal(syscall.SIGTERM), p.Signal(syscall.SIGCONT))
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
		errs = append(errs, p.Kill())
	}
	return errors.Join(errs...)
}

// Tail returns the last lines of a file, as far as they can be read.
func Tail(path string, lines int) []byte {
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
