// SPDX-License-Identifier: Apache-2.0

package bounds

import (
	"context"
	"sync"
	"time"
)

const (
	// maxMemory bounds the memory of all reviews that are not answered yet: arriving, waiting and being judged.
	maxMemory = 96 << 20
	// overhead is the memory of a review besides its body.
	overhead = 32 << 10
)

// review is a review that is not answered yet.
type review struct {
	address   string
	namespace string
	began     time.Time
	// end cancels it, with the reason.
	end context.CancelCauseFunc

	// inFlight.mu guards the rest, and the namespace, which is known once the review has arrived.
	memory int
	judged bool
	// ofAddress and ofParty are the sums of all reviews of the address, and of those of them for the same namespace.
	ofAddress, ofParty *sum
}

// party identifies the reviews of one address for one namespace.
type party struct{ address, namespace string }

// sum is the number and the memory of some reviews.
type sum struct{ reviews, memory int }

// inFlight bounds the memory of all reviews by cancelling some: of the address with the most memory, and there of the namespace
// with the most, the oldest one. It never cancels one that is being judged.
type inFlight struct {
	most int

	mu      sync.Mutex
	reviews map[*review]bool
	memory  int
	// addresses and parties are the sums of those that have reviews.
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

// judge protects a review from being cancelled; false when it already is.
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

// take gives memory to a review, and cancels others, or this one, as long as there is too little. u.mu is held.
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

// loser is the review to cancel next; nil when all are being judged. u.mu is held.
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

// join adds a review to the sum of a key, and returns the sum.
func join[K comparable](sums map[K]*sum, key K, r *review) *sum {
	if sums[key] == nil {
		sums[key] = &sum{}
	}
	sums[key].reviews++
	sums[key].memory += r.memory
	return sums[key]
}

// leave removes a review from the sum of a key.
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
