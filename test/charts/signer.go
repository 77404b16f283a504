// SPDX-License-Identifier: Apache-2.0

package charts

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/packet"
	"helm.sh/helm/v3/pkg/provenance"
)

// Signer signs charts with a key that is made for it, as `helm package --sign` does.
type Signer struct {
	// Key is both halves of it.
	Key *openpgp.Entity

	t testing.TB
}

// NewSigner makes a key with a name; without a config, one like gpg's.
func NewSigner(t testing.TB, name string, config *packet.Config) *Signer {
	t.Helper()
	if config == nil {
		config = &packet.Config{Algorithm: packet.PubKeyAlgoEdDSA}
	}
	key, err := openpgp.NewEntity(name, "", name+"@example.com", config)
	if err != nil {
		t.Fatal(err)
	}
	return &Signer{Key: key, t: t}
}

// Fingerprint is that of the key, as gpg writes it.
func (s *Signer) Fingerprint() string { return fmt.Sprintf("%X", s.Key.PrimaryKey.Fingerprint) }

// Public is the public half, as `gpg --export` writes it.
func (s *Signer) Public() []byte {
	s.t.Helper()
	var out bytes.Buffer
	if err := s.Key.Serialize(&out); err != nil {
		s.t.Fatal(err)
	}
	return out.Bytes()
}

// Sign is the .prov file of an archive. Its bytes must be a chart.
func (s *Signer) Sign(archive Archive) []byte {
	s.t.Helper()
	file := filepath.Join(s.t.TempDir(), archive.Name+"-"+archive.Version+".tgz")
	if err := os.WriteFile(file, archive.Bytes, 0o600); err != nil {
		s.t.Fatal(err)
	}
	text, err := (&provenance.Signatory{Entity: s.Key}).ClearSign(file)
	if err != nil {
		s.t.Fatal(err)
	}
	return []byte(text)
}
