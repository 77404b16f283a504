// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
)

// TestAPanicInOneClusterIsThatOfTheCaller has one of several panic: in a goroutine that nobody watches over it would end the process.
func TestAPanicInOneClusterIsThatOfTheCaller(t *testing.T) {
	var ended atomic.Int32
	caught := func() (caught any) {
		defer func() { caught = recover() }()
		Each(5, 2, func(i int) {
			if i == 1 {
				panic("nobody knows")
			}
			ended.Add(1)
		})
		return nil
	}()
	if said := fmt.Sprint(caught); !strings.HasPrefix(said, "nobody knows") || !strings.Contains(said, "each_test.go") || ended.Load() != 4 {
		t.Errorf("%d of the others ended, and it says: %s", ended.Load(), said)
	}
}
