// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"fmt"
	"os"
	"path/filepath"

	"shipper.dev/shipper/test/program"
)

// temporaryName begins the names of temporary folders of fleets.
const temporaryName = "shipper-fleet-"

// temporary creates a folder that belongs to this process as long as it holds the lock in it.
func temporary() (string, *os.File, error) {
	dir, err := os.MkdirTemp("", temporaryName)
	if err != nil {
		return "", nil, fmt.Errorf("making the fleet's folder: %w", err)
	}
	// The lock gets its name once it is held: sweep must not see it unlocked before its owner locks it.
	lock, err := program.TryLock(filepath.Join(dir, "lock.new"))
	if err != nil {
		return "", nil, fmt.Errorf("locking the fleet's folder: %w", err)
	}
	if err := os.Rename(filepath.Join(dir, "lock.new"), filepath.Join(dir, "lock")); err != nil {
		return "", nil, fmt.Errorf("locking the fleet's folder: %w", err)
	}
	return dir, lock, nil
}

// sweep removes the folders of fleets whose processes were killed. It ignores errors.
func sweep() {
	locks, _ := filepath.Glob(filepath.Join(os.TempDir(), temporaryName+"*", "lock")) // the pattern is well-formed
	for _, path := range locks {
		lock, err := program.TryLock(path)
		if err != nil || lock == nil {
			continue
		}
		_ = os.RemoveAll(filepath.Dir(path)) // the next sweep removes the rest
		lock.Close()
	}
}
