// SPDX-License-Identifier: Apache-2.0

package keyedsemaphore_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"shipper.dev/shipper/chart/keyedsemaphore"
)

// TestOrderOfWaiters enqueues parties one after the other, all before the first leaves. Each stays for a second.
func TestOrderOfWaiters(t *testing.T) {
	tests := map[string]struct {
		room, each int
		come       string
		want       string // the parties admitted in each second
	}{
		"alone":                                      {1, 1, "a a a", "a | a | a"},
		"as many as there is room for":               {2, 2, "a a a", "a a | a"},
		"no more of a party than its share":          {4, 2, "a a a a b", "a a b | a a"},
		"parties take turns":                         {1, 1, "a a a b b c", "a | a | b | c | a | b"},
		"one behind many is next":                    {2, 2, "a a a a a a b", "a a | b a | a a | a"},
		"a party at its share does not delay others": {2, 1, "a a a b c c", "a b | c a | c a"},
		"there is always room for one":               {0, 0, "a b", "a | b"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				semaphore, began := keyedsemaphore.New(tc.room, tc.each), time.Now()
				in := make(chan string, 100)
				for _, party := range strings.Fields(tc.come) {
					go func() {
						if err := semaphore.Enter(t.Context(), party); err != nil {
							t.Error(err)
						}
						in <- fmt.Sprint(int(time.Since(began).Seconds()), party)
						time.Sleep(time.Second)
						semaphore.Leave(party)
					}()
					synctest.Wait()
				}
				time.Sleep(time.Hour)
				got := map[string]int{}
				for range len(strings.Fields(tc.come)) {
					got[<-in]++
				}
				want := map[string]int{}
				for second, parties := range strings.Split(tc.want, " | ") {
					for party := range strings.FieldsSeq(parties) {
						want[fmt.Sprint(second, party)]++
					}
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Error(diff)
				}
			})
		})
	}
}

func TestACancelledWaiterGetsNoSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		semaphore := keyedsemaphore.New(1, 1)
		semaphore.Wait("a")
		reason := errors.New("late for dinner")
		impatient, cancel := context.WithTimeoutCause(t.Context(), time.Second, reason)
		defer cancel()
		if err := semaphore.Enter(impatient, "b"); !errors.Is(err, reason) {
			t.Errorf("he gave up because of %v", err)
		}
		semaphore.Leave("a")
		semaphore.Wait("c") // or the test hangs
		semaphore.Leave("c")
	})
}
