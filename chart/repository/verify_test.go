// SPDX-License-Identifier: Apache-2.0

package repository_test

import (
	"bytes"
	"crypto"
	"encoding/base64"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/armor"
	"github.com/ProtonMail/go-crypto/openpgp/clearsign"
	"github.com/ProtonMail/go-crypto/openpgp/packet"
	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v3/pkg/provenance"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart"
	"shipper.dev/shipper/chart/repository"
	"shipper.dev/shipper/chart/verify"
	"shipper.dev/shipper/test/charts"
)

// signing is a stage on which charts are signed, and the keys of ann are in Secret team/keys.
type signing struct {
	*env
	ann, bob *charts.Signer
	held     map[string]string
}

func newSigning(t *testing.T) *signing {
	t.Helper()
	s := &signing{ann: charts.NewSigner(t, "ann", nil), bob: charts.NewSigner(t, "bob", nil), held: map[string]string{}}
	s.env = newEnv(t, func(o *repository.Options) { o.Secrets = secrets{"team/keys": s.held}.read })
	s.hold(s.ann.Public())
	return s
}

// hold puts keys into the Secret.
func (s *signing) hold(ring []byte) { s.held["pubring.gpg"] = string(ring) }

func (s *signing) chart() shipper.Chart {
	of := s.env.chart("nginx", "0.0.1")
	of.Verify.SecretName = "keys"
	return of
}

// says replaces the digests and the URL in a message by words.
func (s *signing) says(err error) string {
	if err == nil {
		return ""
	}
	return strings.NewReplacer(
		s.repo.URL, "URL", s.ann.Fingerprint(), "ANN", s.bob.Fingerprint(), "BOB",
		s.ann.Fingerprint()[24:], "ann's", s.bob.Fingerprint()[24:], "bob's",
		archive(s.t, "nginx", "0.0.1").Digest, "FIRST", archive(s.t, "nginx", "0.0.2").Digest, "SECOND",
	).Replace(err.Error())
}

const (
	noSignature = `chart "nginx" 0.0.1 has no valid signature: URL/nginx-0.0.1.tgz.prov `
	ofTheSecret = ` (the keys are those of Secret team/keys)`
	helpSigning = "; a chart that is signed (`helm package --sign`) has its .prov file published with it"
)

// helmSays reports whether `helm verify` takes a .prov file, too.
func helmSays(t *testing.T, ring openpgp.EntityList, prov []byte, of charts.Archive) bool {
	t.Helper()
	file := filepath.Join(t.TempDir(), of.Name+"-"+of.Version+".tgz")
	for name, content := range map[string][]byte{file: of.Bytes, file + ".prov": prov} {
		if err := os.WriteFile(name, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	_, err := (&provenance.Signatory{KeyRing: ring}).Verify(file, file+".prov")
	return err == nil
}

// signedAnew is a .prov file whose signature is of another sum of what it says. The library reads such a signature, and makes none.
func signedAnew(t *testing.T, by *charts.Signer, prov []byte, sum crypto.Hash) []byte {
	t.Helper()
	message, _ := clearsign.Decode(prov)
	key := by.Key.PrimaryKey
	signature := &packet.Signature{
		Version: 4, SigType: packet.SigTypeText, PubKeyAlgo: key.PubKeyAlgo, Hash: sum, CreationTime: noon, IssuerKeyId: &key.KeyId,
	}
	h := sum.New()
	h.Write(message.Bytes)
	bare := &packet.Config{NonDeterministicSignaturesViaNotation: packet.BoolPointer(false)}
	if err := signature.Sign(h, by.Key.PrivateKey, bare); err != nil {
		t.Fatal(err)
	}
	text, _, _ := bytes.Cut(prov, []byte("-----BEGIN PGP SIGNATURE-----"))
	out := bytes.NewBuffer(slices.Clone(text))
	w, err := armor.Encode(out, openpgp.SignatureType, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := signature.Serialize(w); err != nil || w.Close() != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestAProvenanceIsHeldAgainstTheArchiveAndTheKeys(t *testing.T) {
	first, second := archive(t, "nginx", "0.0.1"), archive(t, "nginx", "0.0.2")
	for sentence, tc := range map[string]struct {
		prov func(s *signing) []byte
		want string
		// strict is where Helm is content.
		strict bool
	}{
		"a good one": {func(s *signing) []byte { return s.ann.Sign(first) }, "", false},
		"none": {
			func(*signing) []byte { return nil },
			"there is no provenance at URL/nginx-0.0.1.tgz.prov: the answer is 404 Not Found" + helpSigning, false,
		},
		"of another key": {
			func(s *signing) []byte { return s.bob.Sign(first) },
			noSignature + "is signed by the key bob's, which is not among the keys" + ofTheSecret, false,
		},
		"of the other version": {
			func(s *signing) []byte { return s.ann.Sign(second) },
			noSignature + "is that of nginx-0.0.2.tgz, not of nginx-0.0.1.tgz" + ofTheSecret, false,
		},
		"of other bytes under the same name": {
			func(s *signing) []byte { return s.ann.Sign(charts.NewArchive("nginx", "0.0.1", second.Bytes)) },
			noSignature + "says that nginx-0.0.1.tgz has the sum sha256:SECOND, but the archive that is pinned has sha256:FIRST" +
				ofTheSecret, false,
		},
		"the other version's, with the name changed": {
			func(s *signing) []byte { return bytes.ReplaceAll(s.ann.Sign(second), []byte("0.0.2"), []byte("0.0.1")) },
			noSignature + "has a signature of something else: it was changed since it was signed" + ofTheSecret, false,
		},
		"two messages, the second a good one": {
			func(s *signing) []byte { return slices.Concat(s.bob.Sign(second), []byte("\n"), s.ann.Sign(first)) },
			noSignature + "has more in it than one signed message" + ofTheSecret, false,
		},
		"a good one, and then another": {
			func(s *signing) []byte { return slices.Concat(s.ann.Sign(first), []byte("\n"), s.bob.Sign(second)) },
			noSignature + "has more in it than one signed message" + ofTheSecret, true,
		},
		"a good one after text that is not signed": {
			func(s *signing) []byte { return slices.Concat([]byte("files:\n"), s.ann.Sign(first)) },
			noSignature + "is not a .prov file, as `helm package --sign` writes it" + ofTheSecret, true,
		},
		"of a sum that can be forged": {
			func(s *signing) []byte { return signedAnew(t, s.ann, s.ann.Sign(first), crypto.SHA1) },
			noSignature + "has a signature of SHA-1, which can be forged: sign it again with SHA-256 or better" + ofTheSecret, false,
		},
		"half of one": {
			func(s *signing) []byte { return s.ann.Sign(first)[:300] },
			noSignature + "is not a whole .prov file" + ofTheSecret, false,
		},
		"one whose signature is not in ASCII": {
			func(s *signing) []byte {
				text, signature, _ := strings.Cut(string(s.ann.Sign(first)), "-----BEGIN PGP SIGNATURE-----\n\n")
				return []byte(text + "-----BEGIN PGP SIGNATURE-----\n\n!!!!" + signature[4:])
			},
			noSignature + "has a signature that is not whole" + ofTheSecret, false,
		},
		"a page": {
			func(*signing) []byte { return []byte("<!DOCTYPE html>") },
			noSignature + "is not a .prov file, as `helm package --sign` writes it" + ofTheSecret, false,
		},
		"a huge one": {
			func(s *signing) []byte {
				return slices.Concat(s.ann.Sign(first), bytes.Repeat([]byte("\n"), verify.MaxProvenanceBytes))
			},
			"URL/nginx-0.0.1.tgz.prov is larger than the 65536 bytes that are accepted" + helpSigning, true,
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			s := newSigning(t)
			prov := tc.prov(s)
			s.repo.PublishProvenance("nginx", "0.0.1", prov)
			got, err := s.Verify(t.Context(), "team", s.chart(), first.Digest)
			if diff := cmp.Diff(tc.want, s.says(err)); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
			if err != nil {
				want := failure{shipper.ChartNotVerified, err.Error(), true, chart.ErrProvenance}
				if got := read(t, err); got != want {
					t.Errorf("got %+v, want %+v", got, want)
				}
			} else if want := (shipper.ChartSignature{
				Digest: first.Digest, Fingerprint: s.ann.Fingerprint(), Identity: "ann <ann@example.com>",
			}); got != want {
				t.Errorf("got %v, want %v", got, want)
			}
			if content := helmSays(t, openpgp.EntityList{s.ann.Key}, prov, first); content != (err == nil || tc.strict) {
				t.Errorf("Helm says otherwise: %t", content)
			}
		})
	}
}

// TestAKeyCountsAsLongAsItIsGood is of one that ends, one that was revoked, and of a signature that is older than either.
func TestAKeyCountsAsLongAsItIsGood(t *testing.T) {
	s := newSigning(t)
	of := archive(t, "nginx", "0.0.1")
	ends := charts.NewSigner(t, "eve", &packet.Config{
		Algorithm: packet.PubKeyAlgoEdDSA, KeyLifetimeSecs: uint32(time.Until(noon.Add(time.Hour)).Seconds()),
	})
	s.repo.PublishProvenance("nginx", "0.0.1", ends.Sign(of))
	s.hold(ends.Public())
	verify := func() string {
		t.Helper()
		_, err := s.Verify(t.Context(), "team", s.chart(), of.Digest)
		return strings.ReplaceAll(s.says(err), ends.Fingerprint(), "EVE")
	}
	if got := verify(); got != "" {
		t.Errorf("while it is good: %s", got)
	}
	s.pass(2 * time.Hour)
	if got, want := verify(), noSignature+"is signed by the key EVE, which has expired"+ofTheSecret; got != want {
		t.Errorf("when it has expired: got %s, want %s", got, want)
	}
	if err := s.ann.Key.RevokeKey(packet.KeyCompromised, "stolen", nil); err != nil {
		t.Fatal(err)
	}
	s.repo.PublishProvenance("nginx", "0.0.1", s.ann.Sign(of))
	s.hold(s.ann.Public())
	s.pass(time.Hour)
	if got, want := verify(), noSignature+"is signed by the key ANN, which was revoked"+ofTheSecret; got != want {
		t.Errorf("when it was revoked: got %s, want %s", got, want)
	}
}

// inASCII is what gpg --armor makes of keys.
func inASCII(t *testing.T, ring []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := armor.Encode(&out, openpgp.PublicKeyType, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = w.Write(ring)
	_ = w.Close()
	out.WriteByte('\n')
	return out.Bytes()
}

func TestKeysAreThoseOfTheSecret(t *testing.T) {
	of := archive(t, "nginx", "0.0.1")
	const failure = "Secret team/keys "
	for sentence, tc := range map[string]struct {
		ring func(s *signing) []byte
		edit func(s *signing, c *shipper.Chart)
		want string
	}{
		"one among others": {ring: func(s *signing) []byte { return slices.Concat(s.bob.Public(), s.ann.Public()) }},
		"in ASCII":         {ring: func(s *signing) []byte { return inASCII(t, s.ann.Public()) }},
		"in ASCII, one by one": {
			ring: func(s *signing) []byte { return slices.Concat(inASCII(t, s.bob.Public()), inASCII(t, s.ann.Public())) },
		},
		"the one that is demanded": {edit: func(s *signing, c *shipper.Chart) { c.Verify.Signer = s.ann.Fingerprint() }},
		"good, but another's is demanded": {
			ring: func(s *signing) []byte { return slices.Concat(s.bob.Public(), s.ann.Public()) },
			edit: func(s *signing, c *shipper.Chart) { c.Verify.Signer = s.bob.Fingerprint() },
			want: noSignature + "is signed by the key ann's, which is not among the keys" + ofTheSecret,
		},
		"without the one that is demanded": {
			edit: func(s *signing, c *shipper.Chart) { c.Verify.Signer = s.bob.Fingerprint() },
			want: failure + "has no key BOB under pubring.gpg, which chart.verify.signer names",
		},
		"not there": {
			edit: func(_ *signing, c *shipper.Chart) { c.Verify.SecretName = "other" },
			want: "there is no Secret team/other",
		},
		"none": {
			ring: func(*signing) []byte { return nil },
			want: failure + "has nothing under pubring.gpg, where the keys that verify charts are to be",
		},
		"no keys": {
			ring: func(*signing) []byte { return []byte("s3cret") },
			want: failure + "has no public keys under pubring.gpg, as `gpg --export` writes them",
		},
		"cut off": {
			ring: func(s *signing) []byte { return s.ann.Public()[:40] },
			want: failure + "has no public keys under pubring.gpg, as `gpg --export` writes them",
		},
		"private": {
			ring: func(s *signing) []byte {
				var out bytes.Buffer
				if err := s.ann.Key.SerializePrivateWithoutSigning(&out, nil); err != nil {
					t.Fatal(err)
				}
				return out.Bytes()
			},
			want: failure + "has a private key under pubring.gpg: only the public ones belong there, as `gpg --export` writes them",
		},
		"too much": {
			ring: func(*signing) []byte { return make([]byte, 256<<10+1) },
			want: failure + "has more than the 256 KiB under pubring.gpg that are accepted",
		},
		"too many": {
			ring: func(s *signing) []byte { return bytes.Repeat(s.ann.Public(), 101) },
			want: failure + "has more than the 100 keys under pubring.gpg that are accepted",
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			s := newSigning(t)
			s.repo.PublishProvenance("nginx", "0.0.1", s.ann.Sign(of))
			if tc.ring != nil {
				s.hold(tc.ring(s))
			}
			named := s.chart()
			if tc.edit != nil {
				tc.edit(s, &named)
			}
			_, err := s.Verify(t.Context(), "team", named, of.Digest)
			if diff := cmp.Diff(tc.want, s.says(err)); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
			if err == nil {
				return
			}
			if got := read(t, err); got.Reason != shipper.ChartNotVerified || !got.Retry {
				t.Errorf("got %+v", got)
			}
			// At admission all of it is known but what the repository has.
			early := s.Verifiable(t.Context(), "team", named, of.Digest)
			if missing := strings.HasPrefix(tc.want, noSignature); (early == nil) != missing {
				t.Errorf("at admission: %v", early)
			}
		})
	}
}

// TestAnArchiveThatIsKnownIsVerifiedAllTheSame loads it before the first verification.
func TestAnArchiveThatIsKnownIsVerifiedAllTheSame(t *testing.T) {
	s := newSigning(t)
	of := archive(t, "nginx", "0.0.1")
	if _, err := s.load("nginx", "0.0.1", of.Digest); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Verify(t.Context(), "team", s.chart(), of.Digest); err == nil {
		t.Error("it counts as verified")
	}
	s.repo.PublishProvenance("nginx", "0.0.1", s.ann.Sign(of))
	if _, err := s.Verify(t.Context(), "team", s.chart(), of.Digest); err == nil {
		t.Error("the repository was asked again at once")
	}
	s.pass(2 * time.Minute)
	if _, err := s.Verify(t.Context(), "team", s.chart(), of.Digest); err != nil {
		t.Errorf("once it is published: %v", err)
	}
	_, err := s.Verify(t.Context(), "team", s.chart(), "")
	if want := `chart "nginx" 0.0.1 cannot be verified before its archive is known: it is being fetched`; err == nil || err.Error() != want {
		t.Errorf("without a digest: %v", err)
	}
}

func TestAnArchiveInAnApplicationHasItsProvenanceBesideIt(t *testing.T) {
	s := newSigning(t)
	of := archive(t, "nginx", "0.0.1")
	named := shipper.Chart{
		Name: "nginx", Version: "0.0.1", Archive: base64.StdEncoding.EncodeToString(of.Bytes), Provenance: string(s.ann.Sign(of)),
		Verify: shipper.ChartVerification{SecretName: "keys"},
	}
	got, err := s.Verify(t.Context(), "team", named, of.Digest)
	if err != nil || got.Fingerprint != s.ann.Fingerprint() {
		t.Errorf("got %v, %v", got, err)
	}
	named.Provenance = string(s.bob.Sign(of))
	want := `chart "nginx" 0.0.1 has no valid signature: chart.provenance is signed by the key bob's, which is not among the keys` +
		ofTheSecret
	if got := s.says(s.Verifiable(t.Context(), "team", named, of.Digest)); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if n := s.repo.Requests(""); n > 0 {
		t.Errorf("the repository was asked %d times", n)
	}
}
