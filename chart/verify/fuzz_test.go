// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/clearsign"
	"github.com/ProtonMail/go-crypto/openpgp/packet"
)

// FuzzProvenance verifies any .prov file with a key that is trusted, and with any keys: nothing ends the process, and what the key
// has not signed is not verified.
func FuzzProvenance(f *testing.F) {
	now := time.Date(2030, time.January, 2, 12, 0, 0, 0, time.UTC)
	// Each process that searches makes the same key.
	at := &packet.Config{Algorithm: packet.PubKeyAlgoEdDSA, Rand: rand.NewChaCha8([32]byte{}), Time: func() time.Time { return now }}
	ann, err := openpgp.NewEntity("ann", "", "ann@example.com", at)
	if err != nil {
		f.Fatal(err)
	}
	digest := strings.Repeat("a", 64)
	of := func(digest string) string {
		return "apiVersion: v2\nname: web\nversion: 1.0.0\n\n...\nfiles:\n  web-1.0.0.tgz: sha256:" + digest + "\n"
	}
	var prov, ring bytes.Buffer
	w, err := clearsign.Encode(&prov, ann.PrivateKey, at)
	if err != nil {
		f.Fatal(err)
	}
	if _, err := w.Write([]byte(of(digest))); err != nil || w.Close() != nil {
		f.Fatal(err)
	}
	if err := ann.Serialize(&ring); err != nil {
		f.Fatal(err)
	}
	f.Add(prov.Bytes(), ring.Bytes())
	const noSignature = "-----BEGIN PGP SIGNATURE-----\n\nAAAA\n-----END PGP SIGNATURE-----"
	f.Add([]byte(startSigned+"\nHash: SHA256\n\n"+of(strings.Repeat("b", 64))+noSignature), []byte{})
	f.Add(bytes.Replace(prov.Bytes(), []byte("sha256:aa"), []byte("sha256:bb"), 1), []byte(startKeys))
	trusted := openpgp.EntityList{ann}
	if by, err := Provenance(prov.Bytes(), trusted, Archive{"web-1.0.0.tgz", digest}, now); by != ann || err != nil {
		f.Fatalf("what is signed is not verified: %v", err)
	}
	f.Fuzz(func(t *testing.T, prov, ring []byte) {
		for _, never := range []Archive{{"web-1.0.0.tgz", strings.Repeat("b", 64)}, {"other-1.0.0.tgz", digest}} {
			if _, err := Provenance(prov, trusted, never, now); err == nil {
				t.Errorf("%v is verified, and was never signed", never)
			}
		}
		keys, err := ParseKeys(ring)
		if err != nil {
			return
		}
		if by, err := Provenance(prov, keys, Archive{"web-1.0.0.tgz", digest}, now); err == nil {
			SignatureOf(by, digest)
		}
	})
}
