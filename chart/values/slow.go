// SPDX-License-Identifier: Apache-2.0

package values

import (
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"strings"

	"shipper.dev/shipper/chart/keyedsemaphore"
	"shipper.dev/shipper/chart/lru"
)

// guessing is the number of hash rounds, which makes it slow to guess the content of a Secret from its digest. All users who
// can read a Release can read its digests.
const guessing = 100_000

// remembered caches the last results of slowSum: every pass, cluster and dry run needs the same ones. Its keys reveal nothing
// without a key of this process.
var remembered = lru.New[[sha256.Size]byte, []byte](1024)

// guesses bounds the computations, one at a time for each namespace: a namespace with a thousand Secrets uses one core for a
// minute, and does not delay the others.
var guesses = keyedsemaphore.New(4, 1)

var ofThisProcess = []byte(rand.Text())

// slowSum is a hash of a secret that takes some 50 ms, and less when cached. A salt begins with the namespace and a slash, and
// has no byte 0.
func slowSum(secret []byte, salt string) ([]byte, error) {
	mac := hmac.New(sha256.New, ofThisProcess)
	mac.Write([]byte(salt + "\x00"))
	mac.Write(secret)
	name := [sha256.Size]byte(mac.Sum(nil))
	if sum, known := remembered.Get(name); known {
		return sum, nil
	}
	namespace, _, _ := strings.Cut(salt, "/")
	guesses.Wait(namespace)
	defer guesses.Leave(namespace)
	if sum, known := remembered.Get(name); known { // computed while this waited
		return sum, nil
	}
	sum, err := pbkdf2.Key(sha256.New, string(secret), []byte(salt), guessing, sha256.Size)
	if err == nil {
		remembered.Put(name, sum, 1)
	}
	return sum, err
}
