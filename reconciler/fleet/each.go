// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"fmt"
	"runtime/debug"
	"sync"
)

// Parallel is how many clusters a reconciler works in at the same time.
const Parallel = 16

// Each calls do for 0 to n-1, at most limit at the same time, and returns when all have returned. It panics when one of them did, in
// the caller's goroutine, where a controller makes an error of it: in one of its own nobody could, and the process would end.
func Each(n, limit int, do func(i int)) {
	var all sync.WaitGroup
	var panicked sync.Once
	var caught any
	slots := make(chan struct{}, limit)
	for i := range n {
		slots <- struct{}{}
		all.Go(func() {
			defer func() {
				if p := recover(); p != nil {
					panicked.Do(func() { caught = fmt.Sprintf("%v\n%s", p, debug.Stack()) })
				}
				<-slots
			}()
			do(i)
		})
	}
	all.Wait()
	if caught != nil {
		panic(caught) //nolint:forbidigo // it is one already, and is caught there
	}
}
