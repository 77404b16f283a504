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
	address   string
	namespace string
	began     time.Time
	// end gives it up, with the reason.
	end context.CancelCauseFunc

	// The rest is guarded by underWay.mu, as is the namespace, which is known once the review has arrived.
	memory int
	judged bool
	// ofAddress and ofParty are what all reviews of the address take, and those of them that are about the same namespace.
	ofAddress, ofParty *sum
}

// party is who sends reviews about a namespace.
type party struct{ address, namespace string }

// sum is what some reviews take together.
type sum struct{ reviews, memory int }

// inFlight bounds the memory of all reviews by giving some up: of the address that has the most, and there of the namespace that has the
// most, the one that has been there for the longest. One that is being judged is not given up.
type inFlight struct {
	most int

	mu      sync.Mutex
	reviews map[*review]bool
	memory  int
	// addresses and parties are those that have reviews, and what these take.
	addresses map[string]*sum
	parties   map[party]*sum
}

func newInFlight(most int) *inFlight {
	return &inFlight{most: most, reviews: map[*review]bool{}, addresses: map[string]*sum{}, parties: map[party]*sum{}}
}

func (u *inFlight) add(r *review) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.reviews[r] = true
	r.ofAddress, r.ofParty = join(u.addresses, r.address, r), join(u.parties, r.party(), r)
	u.take(r, overhead)
}

// grow counts n more bytes of a review.
func (u *inFlight) grow(r *review, n int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.reviews[r] {
		u.take(r, n)
	}
}

func (u *inFlight) arrived(r *review, namespace string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.reviews[r] {
		leave(u.parties, r.party(), r)
		r.namespace = namespace
		r.ofParty = join(u.parties, r.party(), r)
	}
}

// judge keeps a review from being given up; false when it has been.
func (u *inFlight) judge(r *review) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	r.judged = true
	return u.reviews[r]
}

func (u *inFlight) remove(r *review) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.drop(r)
}

// take gives memory to a review, and gives up others, or it, as long as there is too little. u.mu is held.
func (u *inFlight) take(r *review, n int) {
	for _, memory := range []*int{&r.memory, &r.ofAddress.memory, &r.ofParty.memory, &u.memory} {
		*memory += n
	}
	for u.memory > u.most {
		loser := u.loser()
		if loser == nil {
			return
		}
		u.drop(loser)
		loser.end(errBusy)
	}
}

func (u *inFlight) drop(r *review) {
	if u.reviews[r] {
		delete(u.reviews, r)
		u.memory -= r.memory
		leave(u.addresses, r.address, r)
		leave(u.parties, r.party(), r)
	}
}

// loser is the review that is given up next; nil when all are being judged. u.mu is held.
func (u *inFlight) loser() *review {
	var worst *review
	for r := range u.reviews {
		if !r.judged && (worst == nil || before(
			r.ofAddress.memory-worst.ofAddress.memory,
			r.ofParty.memory-worst.ofParty.memory,
			int(worst.began.Sub(r.began)))) {
			worst = r
		}
	}
	return worst
}

func (r *review) party() party { return party{r.address, r.namespace} }

// join counts a review in the sum that has a key, and returns that.
func join[K comparable](sums map[K]*sum, key K, r *review) *sum {
	if sums[key] == nil {
		sums[key] = &sum{}
	}
	sums[key].reviews++
	sums[key].memory += r.memory
	return sums[key]
}

// leave no longer counts a review in the sum that has a key.
func leave[K comparable](sums map[K]*sum, key K, r *review) {
	of := sums[key]
	of.memory -= r.memory
	if of.reviews--; of.reviews == 0 {
		delete(sums, key)
	}
}

// before reports whether the first difference is positive.
func before(differences ...int) bool {
	for _, d := range differences {
		if d != 0 {
			return d > 0
		}
	}
	return false
}
