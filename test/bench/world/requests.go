// SPDX-License-Identifier: Apache-2.0

package world

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"time"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/fleet"
)

// Requests counts what Shipper has asked of API servers, watches and leases aside, and the events about holders of leases.
type Requests struct {
	// Management is how many the management cluster got.
	Management int
	// Application is how many the busiest application cluster got.
	Application int
	// Reads and Writes are how many of all only read, and how many did not.
	Reads, Writes int
	// Kinds are all, by cluster, verb and resource.
	Kinds map[string]int

	each map[string]int // of each application cluster
}

// Minus is what came after before.
func (r Requests) Minus(before Requests) Requests {
	out := Requests{
		Management: r.Management - before.Management, Reads: r.Reads - before.Reads, Writes: r.Writes - before.Writes,
		each: map[string]int{}, Kinds: map[string]int{},
	}
	for kind, n := range r.Kinds {
		if n > before.Kinds[kind] {
			out.Kinds[kind] = n - before.Kinds[kind]
		}
	}
	for name, n := range r.each {
		out.each[name] = n - before.each[name]
		out.Application = max(out.Application, out.each[name])
	}
	return out
}

// Explain lists what was asked for, the most frequent first.
func (r Requests) Explain(w io.Writer) {
	kinds := slices.SortedFunc(maps.Keys(r.Kinds), func(a, b string) int {
		return cmp.Or(cmp.Compare(r.Kinds[b], r.Kinds[a]), cmp.Compare(a, b))
	})
	for _, kind := range kinds {
		fmt.Fprintf(w, "%6d  %s\n", r.Kinds[kind], kind)
	}
}

// Count reads the audit logs, which are written before a request is answered.
func (w *World) Count() (Requests, error) {
	out := Requests{each: map[string]int{}, Kinds: map[string]int{}}
	for _, c := range append([]*fleet.Cluster{w.Fleet.Management}, w.Fleet.Applications...) {
		t := w.logs[c.Name]
		if t == nil {
			account := shipper.ApplicationServiceAccount
			if c == w.Fleet.Management {
				account = shipper.ManagementServiceAccount
			}
			t = &tally{name: c.Name, user: serviceaccount.MakeUsername(shipper.SystemNamespace, account), kinds: map[string]int{}}
			w.logs[c.Name] = t
		}
		if err := t.read(c.AuditLog); err != nil {
			return out, fmt.Errorf("reading what was asked of %s: %w", c.Name, err)
		}
		if c == w.Fleet.Management {
			out.Management = t.reads + t.writes
		} else {
			out.each[c.Name] = t.reads + t.writes
		}
		out.Reads, out.Writes = out.Reads+t.reads, out.Writes+t.writes
		maps.Copy(out.Kinds, t.kinds)
	}
	return out, nil
}

// FirstWrite is when Shipper first wrote to an application cluster since Count was last called; zero when it has not.
func (w *World) FirstWrite() time.Time {
	var first time.Time
	for _, c := range w.Fleet.Applications {
		if t := w.logs[c.Name]; t != nil && !t.firstWrite.IsZero() && (first.IsZero() || t.firstWrite.Before(first)) {
			first = t.firstWrite
		}
	}
	return first
}

// tally is what an audit log says of a user, as far as it was read.
type tally struct {
	name, user    string
	seen          int64 // bytes
	reads, writes int
	kinds         map[string]int
	firstWrite    time.Time // of what was read last
}

// read takes what was written to the log since it last was read. A line that is being written waits for the next time.
func (t *tally) read(log string) error {
	file, err := os.Open(log)
	if err != nil {
		return err
	}
	defer file.Close()
	if _, err := file.Seek(t.seen, io.SeekStart); err != nil {
		return err
	}
	t.firstWrite = time.Time{}
	lines := bufio.NewReaderSize(file, 1<<20)
	for {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		t.seen += int64(len(line))
		t.take(line)
	}
}

// take counts one request.
func (t *tally) take(line []byte) {
	var e auditv1.Event
	if json.Unmarshal(line, &e) != nil || e.User.Username != t.user || e.Verb == "watch" ||
		e.Stage != auditv1.StageResponseComplete || e.ObjectRef == nil || ofLease(e.ObjectRef) {
		return
	}
	t.kinds[fmt.Sprintf("%s: %s %s %s", t.name, e.Verb, e.ObjectRef.Resource, e.ObjectRef.Subresource)]++
	if e.Verb == "get" || e.Verb == "list" {
		t.reads++
		return
	}
	t.writes++
	if t.firstWrite.IsZero() {
		t.firstWrite = e.RequestReceivedTimestamp.Time
	}
}

// ofLease reports whether something is a lease or an event about one, which alone is of the first version of that API.
func ofLease(o *auditv1.ObjectReference) bool {
	return o.Resource == "leases" || o.Resource == "events" && o.APIGroup == ""
}
