// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"strings"
	"time"
)

// FaultKind is what is wrong.
type FaultKind string

// The kinds of faults.
const (
	// Hang makes requests and watch events wait until the fault is over; the requests then fail.
	Hang FaultKind = "hang"
	// Refuse ends watches, and refuses connections.
	Refuse FaultKind = "refuse"
	// Status answers requests with Fault.Status; they have no effect.
	Status FaultKind = "status"
	// Slow delays each request by Fault.Delay.
	Slow FaultKind = "slow"
	// LoseAnswers lets requests take effect, and breaks the connection before their answers.
	LoseAnswers FaultKind = "lose answers"
	// CutWatches ends watches when the fault begins.
	CutWatches FaultKind = "cut watches"
	// LateWatches delays watch events by Fault.Delay.
	LateWatches FaultKind = "late watches"
	// ExpireWatches ends watches, and answers those that continue from a resource version with 410.
	ExpireWatches FaultKind = "expire watches"
	// StandStill stops a process and lets it go on later: answers and events that it has not read wait, writes that it has not sent fail
	// afterwards, and its Lease is renewed last.
	StandStill FaultKind = "stand still"
	// Kill ends the life of a process when the fault begins.
	Kill FaultKind = "kill"
)

// Fault is something that goes wrong for a while. It is plain data: a seed is a list of them.
type Fault struct {
	Kind FaultKind `json:"kind"`
	// Host is the server that has the fault. Empty: all servers.
	Host string `json:"host,omitempty"`
	// Path is in the paths of the requests that have the fault. Empty: all requests.
	Path string `json:"path,omitempty"`
	// Process is the process whose requests have the fault. Empty: all processes, and no user.
	Process string `json:"process,omitempty"`
	// After is when the fault begins, from when it was added, and For how long it lasts.
	After time.Duration `json:"after,omitempty"`
	For   time.Duration `json:"for,omitempty"`
	// Percent is how many of the requests have the fault. 0: all.
	Percent int `json:"percent,omitempty"`
	// Delay is that of Slow and LateWatches.
	Delay time.Duration `json:"delay,omitempty"`
	// Status is that of Status.
	Status int `json:"status,omitempty"`
}

// String is one line.
func (f Fault) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s from %s for %s", f.Kind, f.After, f.For)
	for name, value := range map[string]string{"host": f.Host, "path": f.Path, "process": f.Process} {
		if value != "" {
			fmt.Fprintf(&b, ", %s %s", name, value)
		}
	}
	if f.Status != 0 {
		fmt.Fprintf(&b, ", %d", f.Status)
	}
	if f.Percent != 0 {
		fmt.Fprintf(&b, ", %d%% of requests", f.Percent)
	}
	if f.Delay != 0 {
		fmt.Fprintf(&b, ", by %s", f.Delay)
	}
	return b.String()
}

// window is a Fault with its times.
type window struct {
	Fault
	from, to time.Time
}

// active reports whether the fault is there at a time, for requests of a process to a host.
func (w window) active(at time.Time, host, process string) bool {
	return !at.Before(w.from) && at.Before(w.to) && w.concerns(host, process)
}

// concerns reports whether a process has the fault with a host.
func (w window) concerns(host, process string) bool {
	return (w.Host == "" || w.Host == host) && (w.Process == process || w.Process == "" && process != userName)
}
