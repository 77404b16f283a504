// SPDX-License-Identifier: Apache-2.0

package world

import (
	"fmt"
	"os"
	"strings"
	"time"
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
