// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// The files of a state besides those of the fleet itself.
const (
	held  = "lock"   // locked by the process that runs the fleet, which also writes its id into it
	ready = "ready"  // exists once the fleet is ready
	log   = "up.log" // output of the process in the background
)

// patience is how long a fleet may take to stop before it is killed.
const patience = 10 * time.Second

// state is the folder of a fleet, or of Shipper on it, that outlives the command that started it.
type state string

func (s state) file(name string) string { return filepath.Join(string(s), name) }

// claim locks the folder for this process, until the lock it returns is closed.
func (s state) claim() (*os.File, error) {
	lock, err := s.openLock()
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, errors.Join(fmt.Errorf("a fleet is up already in %s: %w", s, err), lock.Close())
	}
	err = errors.Join(lock.Truncate(0), os.RemoveAll(s.file(ready)))
	if err == nil {
		_, err = lock.WriteString(strconv.Itoa(os.Getpid()))
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("writing the lock of the fleet: %w", err), lock.Close())
	}
	return lock, nil
}

// openLock opens the lock file. It creates folder and file if need be.
func (s state) openLock() (*os.File, error) {
	if err := s.refuseStrangers(); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(string(s), 0o755); err != nil {
		return nil, fmt.Errorf("making the folder of the fleet: %w", err)
	}
	lock, err := os.OpenFile(s.file(held), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("opening the lock of the fleet: %w", err)
	}
	return lock, nil
}

// refuseStrangers refuses a folder with files in it that is not a fleet's, because down removes the folder.
func (s state) refuseStrangers() error {
	entries, err := os.ReadDir(string(s))
	if errors.Is(err, os.ErrNotExist) || err == nil && len(entries) == 0 {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading the folder of the fleet: %w", err)
	}
	if _, err := os.Stat(s.file(held)); err != nil {
		return fmt.Errorf("%s has files in it and is not the folder of a fleet", s)
	}
	return nil
}

// refuseRemains refuses the folder of a fleet whose process has exited without removing it: the data of its clusters, the
// address of a webhook for example, would not fit a new fleet.
func (s state) refuseRemains() error {
	pid, err := s.holder()
	if err != nil || pid != 0 {
		return err
	}
	if _, err := os.Stat(s.file("etcd")); err != nil {
		return nil //nolint:nilerr // there is none
	}
	return fmt.Errorf("%s has the files of a fleet whose process has ended; its log is %s. Run `make fleet-down` to remove them, "+
		"then `make fleet-up`", s, s.file(log))
}

// holder returns the id of the process that runs the fleet, or 0 if there is none.
func (s state) holder() (int, error) {
	lock, err := os.Open(s.file(held))
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("opening the lock of the fleet: %w", err)
	}
	defer lock.Close()
	switch err := syscall.Flock(int(lock.Fd()), syscall.LOCK_SH|syscall.LOCK_NB); err {
	case nil:
		return 0, nil
	case syscall.EWOULDBLOCK:
	default:
		return 0, fmt.Errorf("testing the lock of the fleet: %w", err)
	}
	text, err := io.ReadAll(lock)
	if err != nil {
		return 0, fmt.Errorf("reading the lock of the fleet: %w", err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return 0, fmt.Errorf("reading the lock of the fleet: %w", err)
	}
	return pid, nil
}

// clear removes the folder.
func (s state) clear() error {
	if err := os.RemoveAll(string(s)); err != nil {
		return fmt.Errorf("removing the folder of the fleet: %w", err)
	}
	return nil
}

// up runs this program with these arguments in the background, unless it runs already, and returns when it is ready.
func (s state) up(ctx context.Context, args ...string) error {
	pid, err := s.holder()
	if err != nil {
		return err
	}
	if pid == 0 {
		return s.launch(ctx, args)
	}
	if _, err := os.Stat(s.file(ready)); err != nil {
		return fmt.Errorf("process %d is starting or stopping in %s", pid, s)
	}
	return nil
}

// launch starts this program in the background and waits until it is ready.
func (s state) launch(ctx context.Context, args []string) error {
	lock, err := s.openLock()
	if err != nil {
		return err
	}
	lock.Close() // it marks the folder as a fleet's; the process in the background claims it
	if err := os.RemoveAll(s.file(ready)); err != nil {
		return fmt.Errorf("removing what an earlier fleet left: %w", err)
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("finding this program: %w", err)
	}
	out, err := os.Create(s.file(log))
	if err != nil {
		return fmt.Errorf("making the log of the fleet: %w", err)
	}
	defer out.Close()
	cmd := exec.Command(self, append(args, "-foreground")...)
	cmd.Stderr = out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("starting it in the background: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	progress, err := os.Open(s.file(log))
	if err != nil {
		return fmt.Errorf("reading the log of the fleet: %w", err)
	}
	defer progress.Close()
	return s.await(ctx, cmd.Process, ended, progress)
}

// await prints the progress of the process in the background until it is ready.
func (s state) await(ctx context.Context, p *os.Process, ended <-chan error, progress io.Reader) error {
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	interrupted := ctx.Done()
	for {
		_, isReady := os.Stat(s.file(ready))
		if _, err := io.Copy(os.Stderr, progress); err != nil {
			return fmt.Errorf("reading the log of the fleet: %w", err)
		}
		if isReady == nil {
			return nil
		}
		select {
		case err := <-ended:
			_, _ = io.Copy(os.Stderr, progress) // an error loses only the last output
			return fmt.Errorf("it did not start: %w", errors.Join(err, ctx.Err()))
		case <-interrupted:
			interrupted = nil
			if err := p.Signal(syscall.SIGTERM); err != nil {
				return fmt.Errorf("stopping it: %w", err)
			}
		case <-ticker.C:
		}
	}
}

// down stops the fleet or Shipper, and removes its folder in either case.
func (s state) down(what string) error {
	pid, err := s.holder()
	if err != nil {
		return err
	}
	if pid == 0 {
		if err := s.refuseStrangers(); err != nil {
			return err
		}
		fmt.Println(what, "was not up.")
		return s.clear()
	}
	if err := syscall.Kill(pid, syscall.SIGTERM); err != nil {
		return fmt.Errorf("stopping process %d: %w", pid, err)
	}
	deadline := time.Now().Add(patience)
	for ; pid != 0; pid, err = s.holder() {
		if err != nil {
			return err
		}
		if time.Now().After(deadline) {
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
				return fmt.Errorf("killing process %d: %w", pid, err)
			}
			deadline = deadline.Add(patience)
		}
		time.Sleep(50 * time.Millisecond)
	}
	fmt.Println(what, "is down.")
	return s.clear()
}
