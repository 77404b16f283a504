// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/fleet"
)

// requests counts what Shipper has asked of API servers, watches and leases aside.
type requests struct {
	management  int
	application int            // of the busiest application cluster
	each        map[string]int // of each application cluster
	writes      int            // of all, those that were not reading
	kinds       map[string]int // of all, by cluster, verb and resource
}

func (r requests) minus(before requests) requests {
	out := requests{
		management: r.management - before.management, writes: r.writes - before.writes,
		each: map[string]int{}, kinds: map[string]int{},
	}
	for kind, n := range r.kinds {
		if n > before.kinds[kind] {
			out.kinds[kind] = n - before.kinds[kind]
		}
	}
	for name, n := range r.each {
		out.each[name] = n - before.each[name]
		out.application = max(out.application, out.each[name])
	}
	return out
}

// count reads the audit logs, which are written before a request is answered.
func (w *world) count() (requests, error) {
	out := requests{each: map[string]int{}, kinds: map[string]int{}}
	var err error
	if out.management, err = out.of(w.fleet.Management, shipper.ManagementServiceAccount); err != nil {
		return out, err
	}
	for _, c := range w.fleet.Applications {
		if out.each[c.Name], err = out.of(c, shipper.ApplicationServiceAccount); err != nil {
			return out, err
		}
	}
	return out, nil
}

// of counts in one cluster.
func (r *requests) of(c *fleet.Cluster, account string) (int, error) {
	file, err := os.Open(c.AuditLog)
	if err != nil {
		return 0, fmt.Errorf("reading what was asked of %s: %w", c.Name, err)
	}
	defer file.Close()
	user := serviceaccount.MakeUsername(shipper.SystemNamespace, account)
	n := 0
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var e auditv1.Event
		if json.Unmarshal(lines.Bytes(), &e) != nil || e.User.Username != user || e.Verb == "watch" ||
			e.Stage != auditv1.StageResponseComplete || e.ObjectRef == nil || e.ObjectRef.Resource == "leases" {
			continue
		}
		n++
		r.kinds[fmt.Sprintf("%s: %s %s %s", c.Name, e.Verb, e.ObjectRef.Resource, e.ObjectRef.Subresource)]++
		if e.Verb != "get" && e.Verb != "list" {
			r.writes++
		}
	}
	return n, lines.Err()
}

// resting is what Shipper does when there is nothing to do.
type resting struct {
	time   time.Duration
	asked  requests
	cores  float64 // of the reconciler
	memory int64   // of the reconciler, in bytes
}

// atRest watches what has been rolled out for a while.
func (w *world) atRest(ctx context.Context, d time.Duration) (resting, error) {
	fmt.Printf("at rest for %s\n", d)
	out := resting{time: d}
	before, err := w.count()
	if err != nil {
		return out, err
	}
	used, _, err := usage(w.pod.Reconciler.Pid())
	if err != nil {
		return out, err
	}
	select {
	case <-time.After(d):
	case <-ctx.Done():
		return out, ctx.Err()
	}
	after, err := w.count()
	if err != nil {
		return out, err
	}
	now, memory, err := usage(w.pod.Reconciler.Pid())
	out.asked, out.cores, out.memory = after.minus(before), (now-used).Seconds()/d.Seconds(), memory
	return out, err
}

// usage is what a process has used of processors, and what it has of memory.
func usage(pid int) (processor time.Duration, memory int64, err error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, 0, fmt.Errorf("reading what a process uses: %w", err)
	}
	// The name, in brackets, may have spaces. After it, utime and stime are fields 12 and 13, in ticks of 10 ms, and rss,
	// in pages, is field 22: proc(5).
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	var user, system, pages int64
	if _, err := fmt.Sscan(fields[11]+" "+fields[12]+" "+fields[21], &user, &system, &pages); err != nil {
		return 0, 0, fmt.Errorf("reading /proc/%d/stat: %w", pid, err)
	}
	return time.Duration(user+system) * 10 * time.Millisecond, pages * int64(os.Getpagesize()), nil
}
