// SPDX-License-Identifier: Apache-2.0

package values

import (
	"crypto/rand"
	"testing"
	"testing/synctest"
)

func TestSumsOfOneTeamLeaveRoomToOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		guesses.Wait("a")
		secret := []byte(rand.Text()) // sums outlive a run of the test
		ended := make(chan string, 2)
		for _, namespace := range []string{"a", "b"} {
			go func() {
				if _, err := slowSum(secret, namespace+"/web/Secret"); err != nil {
					t.Error(err)
				}
				ended <- namespace
			}()
		}
		if first := <-ended; first != "b" {
			t.Errorf("the sum of %s was made first", first)
		}
		guesses.Leave("a")
		<-ended
	})
}

func TestASumThatWasMadeMeanwhileIsNotMadeAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		guesses.Wait("a")
		secret := []byte(rand.Text()) // sums outlive a run of the test
		sums := make(chan []byte, 2)
		for range cap(sums) {
			go func() {
				sum, err := slowSum(secret, "a/web/Secret")
				if err != nil {
					t.Error(err)
				}
				sums <- sum
			}()
		}
		synctest.Wait()
		guesses.Leave("a")
		if one, other := <-sums, <-sums; &one[0] != &other[0] {
			t.Error("it is made twice")
		}
	})
}
