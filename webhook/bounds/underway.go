// SPDX-License-Identifier: Apache-2.0

package bounds

import (
	"context"
	"sync"
	"time"
)

const (
	// maxMemory is what all reviews take that have not been answered: those that arrive, that wait and that are judged.
	maxMemory = 96 << 20
	// overhead is what a review takes beside its body.
	overhead = 32 << 10
)

// review is one that has not been answered yet.
type review struct {
	address string
	began   time.Time
	// end gives it up, with the reason.
	end context.CancelCauseFunc

	// The rest is guarded by underWay.mu. The namespace is known once it has arrived.
	namespace string
	memory    int
	judged    bool
}

// underWay bounds the memory of all reviews by giving some up: of the address that has the most, and there of the namespace that has the
// most, the one that has been there for the longest. One that is being judged is not given up.
type underWay struct {
	most int

	mu      sync.Mutex
	reviews map[*review]bool
	memory  int
}

func newUnderWay(most int) *underWay { return &underWay{most: most, reviews: map[*review]bool{}} }

func (u *underWay) add(r *review) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.reviews[r] = true
	u.take(r, overhead)
}

// grow counts n more bytes of a review.
func (u *underWay) grow(r *review, n int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.reviews[r] {
		u.take(r, n)
	}
}

func (u *underWay) arrived(r *review, namespace string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	r.namespace = namespace
}

// judge keeps a review from being given up; false when it has been.
func (u *underWay) judge(r *review) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	r.judged = true
	return u.reviews[r]
}

func (u *underWay) remove(r *review) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.drop(r)
}

// take gives memory to a review, and gives up others, or it, as long as there is too little. u.mu is held.
func (u *underWay) take(r *review, n int) {
	r.memory += n
	u.memory += n
	for u.memory > u.most {
		loser := u.loser()
		if loser == nil {
			return
		}
		u.drop(loser)
		loser.end(errBusy)
	}
}

func (u *underWay) drop(r *review) {
	if u.reviews[r] {
		delete(u.reviews, r)
		u.memory -= r.memory
	}
}

// loser is the review that is given up next; nil when all are being judged. u.mu is held.
func (u *underWay) loser() *review {
	type party struct{ address, namespace string }
	ofAddress, ofParty := map[string]int{}, map[party]int{}
	for r := range u.reviews {
		ofAddress[r.address] += r.memory
		ofParty[party{r.address, r.namespace}] += r.memory
	}
	var worst *review
	for r := range u.reviews {
		if !r.judged && (worst == nil || before(
			ofAddress[r.address]-ofAddress[worst.address],
			ofParty[party{r.address, r.namespace}]-ofParty[party{worst.address, worst.namespace}],
			int(worst.began.Sub(r.began)))) {
			worst = r
		}
	}
	return worst
}

// before tells whether the first difference is positive.
func before(differences ...int) bool {
	for _, d := range differences {
		if d != 0 {
			return d > 0
		}
	}
	return false
}
