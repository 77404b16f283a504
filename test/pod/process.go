// SPDX-License-Identifier: Apache-2.0

package pod

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"syscall"
	"time"

	"shipper.dev/shipper/test/program"
)

const (
	// leaseLost is in the log of a binary that another replica leads instead of, and of one that ends as it was asked to, which exits with 0.
	leaseLost = "leader election lost"
	// grace is how long a binary may take to end.
	grace = 10 * time.Second
)

// Process is a running binary. It dies with the program that started it, whatever ends that.
type Process struct {
	// Name of the binary.
	Name string
	// Log is the file its output goes to.
	Log string
	// Metrics is the URL that its metrics are read at.
	Metrics string
	// Profiles is the URL below which its profiles are read; "" unless Options.Profiled.
	Profiles string

	path string
	args []string

	mu       sync.Mutex
	running  *program.Process // the last one that was started
	began    int              // bytes of the log before it
	restarts int              // of those that lost their lease
	over     bool             // nothing is started again
}

// start starts the binary at path, its output appended to log.
func start(name, path, log string, args ...string) (*Process, error) {
	p := &Process{Name: name, Log: log, path: path, args: args}
	if err := p.run(); err != nil {
		return nil, err
	}
	return p, nil
}

func (p *Process) run() error {
	before, err := os.ReadFile(p.Log)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("reading the log of %s: %w", p.Name, err)
	}
	next, err := program.Start(p.Name, p.Log, os.Environ(), p.path, p.args...)
	if err == nil {
		p.running, p.began = next, len(before)
	}
	return err
}

// keep starts the binary again, as a kubelet does, each time that it has exited because it lost its lease: on a busy machine it may not
// renew that in time. Other exits are faults, and Ended returns them.
func (p *Process) keep(progressf func(string, ...any)) {
	p.current().SetReplaced(true)
	go func() {
		for p.restart() {
			progressf("%s lost its lease, and was started again; its log is %s", p.Name, p.Log)
		}
	}()
}

// restart waits until the binary exits, and reports whether it was started again.
func (p *Process) restart() bool {
	was := p.current()
	<-was.Done()
	p.mu.Lock()
	defer p.mu.Unlock()
	log, err := os.ReadFile(p.Log)
	if p.over || err != nil || was.Succeeded() || !bytes.Contains(log[p.began:], []byte(leaseLost)) || p.run() != nil {
		was.SetReplaced(false)
		return false
	}
	p.running.SetReplaced(true)
	p.restarts++
	return true
}

func (p *Process) current() *program.Process {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.running
}

// Restarts is how often the binary was started again after it had lost its lease.
func (p *Process) Restarts() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.restarts
}

// Pid is the number that the kernel knows it by.
func (p *Process) Pid() int { return p.current().Pid() }

// Ended returns nil while the process runs or is started again, and otherwise an error with the end of its log.
func (p *Process) Ended() error { return p.current().Failure() }

// Stop ends the process as a kubelet would, and by force after ten seconds, which is an error. A process that has ended
// already is fine.
func (p *Process) Stop() error {
	running := p.last()
	if err := running.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	select {
	case <-running.Done():
		return nil
	case <-time.After(grace):
		return errors.Join(fmt.Errorf("%s did not end within %s of being asked to", p.Name, grace), running.Kill())
	}
}

// Kill ends the process at once, at whatever line it is.
func (p *Process) Kill() { _ = p.last().Kill() } // an error means that it has ended

// last is the process that runs, or ran last: none is started after it.
func (p *Process) last() *program.Process {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.over = true
	return p.running
}

// Suspend has the process stand still until Resume, as it does on a machine that is suspended, or whose processors are wanted by others.
func (p *Process) Suspend() error { return p.current().Signal(syscall.SIGSTOP) }

// Resume has a suspended process go on from where it was.
func (p *Process) Resume() error { return p.current().Signal(syscall.SIGCONT) }

// Tail is the end of the process's log.
func (p *Process) Tail() string { return string(program.Tail(p.Log, 25)) }

// held keeps the locks of ports that FreePort returned until this process ends.
var held struct {
	sync.Mutex
	ports []*program.Port
}

// FreePort returns a port of 127.0.0.1 that no other call returns in any process before this one ends. The kernel assigns it to no
// connection before a program listens on it.
func FreePort() (int, error) {
	port, err := program.ReservePort()
	if err != nil {
		return 0, fmt.Errorf("finding a free port: %w", err)
	}
	held.Lock()
	defer held.Unlock()
	held.ports = append(held.ports, port)
	return port.Number, nil
}
