// SPDX-License-Identifier: Apache-2.0

package pod

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"shipper.dev/shipper/test/program"
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

	cmd    *exec.Cmd
	exited chan struct{} // closed when it has ended
	err    error         // how it ended; read after exited is closed
}

// start starts the binary at path, its output appended to log.
func start(name, path, log string, args ...string) (*Process, error) {
	file, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the log of %s: %w", name, err)
	}
	p := &Process{Name: name, Log: log, cmd: exec.Command(path, args...), exited: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = file, file
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	started := make(chan error)
	go func() {
		// The kernel sends the death signal when the thread that started the child ends: keep it for as long as the child runs.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer file.Close()
		err := p.cmd.Start()
		started <- err
		if err == nil {
			p.err = p.cmd.Wait()
			close(p.exited)
		}
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("starting %s: %w", name, err)
	}
	return p, nil
}

// Pid is the number that the kernel knows it by.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Ended returns nil while the process runs, and afterwards an error with the end of its log.
func (p *Process) Ended() error {
	select {
	case <-p.exited:
		return fmt.Errorf("%s ended (%w):\n%s", p.Name, errors.Join(p.err, errors.New("not asked to")), p.Tail())
	default:
		return nil
	}
}

// Stop ends the process as a kubelet would, and by force after ten seconds, which is an error. A process that has ended
// already is fine.
func (p *Process) Stop() error {
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return nil //nolint:nilerr // there is no process to signal: it has ended
	}
	select {
	case <-p.exited:
		return nil
	case <-time.After(10 * time.Second):
		p.Kill()
		return fmt.Errorf("%s did not end within 10 s of being asked to", p.Name)
	}
}

// Kill ends the process at once, at whatever line it is.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill() // an error means that it has ended
	<-p.exited
}

// Suspend has the process stand still until Resume, as it does on a machine that is suspended, or whose processors are wanted by others.
func (p *Process) Suspend() error { return p.cmd.Process.Signal(syscall.SIGSTOP) }

// Resume has a suspended process go on from where it was.
func (p *Process) Resume() error { return p.cmd.Process.Signal(syscall.SIGCONT) }

// Tail is the end of the process's log.
func (p *Process) Tail() string {
	b, err := os.ReadFile(p.Log)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	return strings.Join(lines[max(0, len(lines)-25):], "\n")
}

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
