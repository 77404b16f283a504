// SPDX-License-Identifier: Apache-2.0

package world

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"shipper.dev/shipper/test/pod"
)

// Usage is what a process has used of processors, and what it has of memory, in bytes.
func Usage(pid int) (processor time.Duration, memory int64, err error) {
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

// Memory is what a process has.
type Memory struct {
	// Resident is what it has of the machine, in bytes, its program among it.
	Resident int64
	// Live is what of it was in use when garbage was last collected.
	Live int64
}

// MemoryOf asks the machine and the process itself.
func MemoryOf(ctx context.Context, p *pod.Process) (m Memory, err error) {
	if _, m.Resident, err = Usage(p.Pid()); err != nil {
		return m, err
	}
	live, err := Metric(ctx, p, "go_gc_heap_live_bytes ")
	m.Live = int64(live)
	return m, err
}

// Metric is the sum of the metrics of a process whose lines begin with prefix. It is an error if there is none.
func Metric(ctx context.Context, p *pod.Process, prefix string) (sum float64, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.Metrics, nil)
	if err != nil {
		return 0, fmt.Errorf("reading the metrics of %s: %w", p.Name, err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, fmt.Errorf("reading the metrics of %s: %w", p.Name, err)
	}
	defer response.Body.Close()
	found, lines := false, bufio.NewScanner(response.Body)
	for lines.Scan() {
		if line := lines.Text(); strings.HasPrefix(line, prefix) {
			n, err := strconv.ParseFloat(line[strings.LastIndexByte(line, ' ')+1:], 64)
			if err != nil {
				return 0, fmt.Errorf("reading the metrics of %s: %w", p.Name, err)
			}
			sum, found = sum+n, true
		}
	}
	if err := lines.Err(); err != nil || !found {
		return 0, errors.Join(err, fmt.Errorf("%s has no metric %s", p.Name, prefix))
	}
	return sum, nil
}

// Minus is what came after before.
func (m Memory) Minus(before Memory) Memory {
	return Memory{Resident: m.Resident - before.Resident, Live: m.Live - before.Live}
}
