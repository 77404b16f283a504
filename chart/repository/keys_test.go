// SPDX-License-Identifier: Apache-2.0

package repository_test

import (
	"bytes"
	"crypto/dsa" //nolint:staticcheck // some have such keys
	"errors"
	"io"
	"math/big"
	"testing"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/armor"
	"github.com/ProtonMail/go-crypto/openpgp/packet"

	"shipper.dev/shipper/chart"
)

// The library goes through the names of a key in any order, and some orders make it panic.
func TestAKeyWithNamesThatCannotBeChosenFromDoesNoHarm(t *testing.T) {
	s := newSigning(t)
	first := archive(t, "nginx", "0.0.1")
	s.repo.PublishProvenance("nginx", "0.0.1", s.ann.Sign(first))
	s.hold(halfRevoked(t, s.ann.Key))
	verified := 0
	for n := range 200 {
		s.clock.SetTime(noon.Add(time.Duration(n) * time.Hour))
		switch by, err := s.Verify(t.Context(), "team", s.chart(), first.Digest); {
		case err == nil && by.Fingerprint == s.ann.Fingerprint():
			verified++
		case !errors.Is(err, chart.ErrProvenance):
			t.Fatalf("by %v: %v", by, err)
		}
	}
	if verified == 0 {
		t.Error("it was never ann's")
	}
}

// halfRevoked is a key with two names, of which the first is nothing but revoked. Both are from a day in the future on: not yet.
func halfRevoked(t *testing.T, key *openpgp.Entity) []byte {
	t.Helper()
	own := key.PrimaryIdentity()
	revoked := func(name string) *packet.Signature {
		out := &packet.Signature{
			Version: 4, SigType: packet.SigTypeCertificationRevocation, PubKeyAlgo: key.PrimaryKey.PubKeyAlgo,
			Hash: (&packet.Config{}).Hash(), CreationTime: noon.AddDate(50, 0, 0), IssuerKeyId: &key.PrimaryKey.KeyId,
		}
		if err := out.SignUserId(name, key.PrimaryKey, key.PrivateKey, nil); err != nil {
			t.Fatal(err)
		}
		return out
	}
	gone := packet.NewUserId("gone", "", "")
	var out bytes.Buffer
	for _, part := range []interface{ Serialize(to io.Writer) error }{
		key.PrimaryKey, gone, revoked(gone.Id), own.UserId, own.SelfSignature, revoked(own.UserId.Id),
	} {
		if err := part.Serialize(&out); err != nil {
			t.Fatal(err)
		}
	}
	return out.Bytes()
}

func TestKeysThatTakeLongToVerifyAreRefused(t *testing.T) {
	number := func(bits int) *big.Int {
		return new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), uint(bits)), big.NewInt(12345))
	}
	const refused = "Secret team/keys has a key under pubring.gpg that is larger than the 16384 bits, " +
		"or of a DSA subgroup larger than the 512, that are accepted"
	for sentence, tc := range map[string]struct {
		p, q int
		want string
	}{
		"as gpg makes them": {3072, 256, ""},
		"a large modulus":   {32768, 256, refused},
		"a large subgroup":  {3072, 32768, refused},
	} {
		for _, armored := range []bool{false, true} {
			s := newSigning(t)
			old := packet.NewDSAPublicKey(noon, &dsa.PublicKey{
				Parameters: dsa.Parameters{P: number(tc.p), Q: number(tc.q), G: big.NewInt(2)}, Y: number(tc.p - 1),
			})
			var ring bytes.Buffer
			if err := old.Serialize(&ring); err != nil {
				t.Fatal(err)
			}
			ring.Write(s.ann.Public())
			s.hold(ring.Bytes())
			if armored {
				var text bytes.Buffer
				w, err := armor.Encode(&text, openpgp.PublicKeyType, nil)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := w.Write(ring.Bytes()); err != nil || w.Close() != nil {
					t.Fatal(err)
				}
				s.hold(text.Bytes())
			}
			err := s.Verifiable(t.Context(), "team", s.chart(), "")
			if tc.want == refused && (err == nil || err.Error() != refused) || tc.want != refused && err != nil {
				t.Errorf("%s (in ASCII: %v): %v", sentence, armored, err)
			}
		}
	}
}

func TestKeysThatSayMuchOfThemselvesAreRefused(t *testing.T) {
	const refused = "Secret team/keys has keys under pubring.gpg with more than the 400 signatures of their own that are accepted: " +
		"export them with `--export-options export-minimal`"
	for _, tc := range []struct {
		signatures int
		want       string
	}{{400, ""}, {401, refused}} {
		s := newSigning(t)
		own := s.ann.Key.PrimaryIdentity()
		parts := []interface{ Serialize(to io.Writer) error }{s.ann.Key.PrimaryKey, own.UserId}
		for range tc.signatures {
			parts = append(parts, own.SelfSignature)
		}
		var ring bytes.Buffer
		for _, part := range parts {
			if err := part.Serialize(&ring); err != nil {
				t.Fatal(err)
			}
		}
		s.hold(ring.Bytes())
		got := ""
		if err := s.Verifiable(t.Context(), "team", s.chart(), ""); err != nil {
			got = err.Error()
		}
		if got != tc.want {
			t.Errorf("of %d: got %q, want %q", tc.signatures, got, tc.want)
		}
	}
}
