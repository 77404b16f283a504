// SPDX-License-Identifier: Apache-2.0

package program

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// Port is a port of 127.0.0.1 that no other caller of ReservePort gets while it is held, even while no process
// listens on it.
type Port struct {
	// Number is between 1 and 65535.
	Number int

	lock *os.File
}

// ReservePort finds a free port below those that the kernel assigns to connections and listeners, so that a program
// can stop and start on the same port. The lock ends with the process at the latest.
func ReservePort() (*Port, error) {
	folder := filepath.Join(os.TempDir(), fmt.Sprintf("shipper-fleet-ports-%d", os.Getuid()))
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return nil, fmt.Errorf("making the folder of port locks: %w", err)
	}
	low, high := portRange()
	for range 1000 {
		port := low + rand.IntN(high-low)
		lock, err := TryLock(filepath.Join(folder, strconv.Itoa(port)))
		if err != nil {
			return nil, fmt.Errorf("locking port %d: %w", port, err)
		}
		if lock == nil {
			continue
		}
		if l, err := net.Listen("tcp", address(port)); err == nil {
			return &Port{Number: port, lock: lock}, l.Close()
		}
		lock.Close()
	}
	return nil, fmt.Errorf("no free port between %d and %d", low, high)
}

// Release releases the port.
func (p *Port) Release() { p.lock.Close() }

// Address is the port with its host, 127.0.0.1.
func (p *Port) Address() string { return address(p.Number) }

func address(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// portRange returns the range of ports to reserve: 12,000 ports below the ephemeral ports, or a default.
func portRange() (low, high int) {
	high = 32768
	if text, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range"); err == nil {
		if fields := strings.Fields(string(text)); len(fields) == 2 {
			if first, err := strconv.Atoi(fields[0]); err == nil && first > 14000 {
				high = first
			}
		}
	}
	return high - 12000, high
}

// TryLock locks a file, which it creates if need be. It returns nil if another process holds the lock.
func TryLock(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	switch err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err {
	case nil:
		return f, nil
	case syscall.EWOULDBLOCK:
		return nil, f.Close()
	default:
		f.Close()
		return nil, err
	}
}
