// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"strings"

	"shipper.dev/shipper/chart/keyedsemaphore"
)

// guessing is how many times dearer it is to find out what a Secret held by trying than sha256 would make it. Digests are for all to
// see who may see a Release.
const guessing = 100_000

// remembered are the last sums that slowSum made: what a Release has is asked for again with each pass, each cluster and each dry run,
// and is the same. They stand under a name that says nothing without a key of this process.
var remembered = newLRU[[sha256.Size]byte, []byte](1024)

// guesses are the sums that are being made, one at a time of each namespace: a thousand Secrets of one are a minute of one core, and
// nothing of the others.
var guesses = keyedsemaphore.New(4, 1)

var ofThisProcess = []byte(rand.Text())

// slowSum is a sum of what is secret that takes long to try, some 50 ms, and less when it was made before. A salt begins with the
// namespace and a slash, and has no byte 0.
func slowSum(secret []byte, salt string) ([]byte, error) {
	mac := hmac.New(sha256.New, ofThisProcess)
	mac.Write([]byte(salt + "\x00"))
	mac.Write(secret)
	name := [sha256.Size]byte(mac.Sum(nil))
	if sum, known := remembered.get(name); known {
		return sum, nil
	}
	namespace, _, _ := strings.Cut(salt, "/")
	guesses.Wait(namespace)
	defer guesses.Leave(namespace)
	if sum, known := remembered.get(name); known { // while it was waited for
		return sum, nil
	}
	sum, err := pbkdf2.Key(sha256.New, string(secret), []byte(salt), guessing, sha256.Size)
	if err == nil {
		remembered.put(name, sum, 1)
	}
	return sum, err
}
