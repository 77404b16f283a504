// SPDX-License-Identifier: Apache-2.0

package fleet

import "sync"

// Parallel is how many clusters a reconciler works in at the same time.
const Parallel = 16

// Each calls do for 0 to n-1, at most limit at the same time, and returns when all have returned.
func Each(n, limit int, do func(i int)) {
	var all sync.WaitGroup
	slots := make(chan struct{}, limit)
	for i := range n {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			do(i)
		})
	}
	all.Wait()
}
