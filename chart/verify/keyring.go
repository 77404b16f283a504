// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"bytes"
	"crypto/dsa" //nolint:staticcheck // such old keys still sign
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/armor"
	"github.com/ProtonMail/go-crypto/openpgp/packet"

	"shipper.dev/shipper/chart"
)

const (
	// KeyringKey is the key of a Secret that has the keys to verify charts: the name of Helm's keyring file.
	KeyringKey = "pubring.gpg"
	// maxKeyring and maxKeys bound them.
	maxKeyring, maxKeys = 256 << 10, 100
	// maxOwnSignatures bounds the signatures in keys, all of which are verified whenever the keys are read: two for each key,
	// its name and its subkey, and room for renewed ones.
	maxOwnSignatures = 400
	// maxKeyBits bounds one key. The time to verify a signature grows with the third power.
	maxKeyBits, maxSubgroupBits = 16384, 512
	// startKeys is the first line of ASCII-armored keys.
	startKeys = "-----BEGIN PGP PUBLIC KEY BLOCK-----"
)

// ParseKeys parses the output of `gpg --export`. Errors are phrases that follow the name of the Secret.
func ParseKeys(ring []byte) (openpgp.EntityList, error) {
	switch {
	case len(ring) == 0:
		return nil, fmt.Errorf("has nothing under %s, where the keys that verify charts are to be", KeyringKey)
	case len(ring) > maxKeyring:
		return nil, fmt.Errorf("has more than the %d KiB under %s that are accepted", maxKeyring>>10, KeyringKey)
	}
	large, many := false, false
	keys, err := chart.Guard(func() (openpgp.EntityList, error) {
		keys, err := readKeys(ring)
		large, many = errors.Is(err, errKeySize), errors.Is(err, errKeyCount)
		return keys, err
	})
	switch {
	case many:
		return nil, fmt.Errorf("has keys under %s with more than the %d signatures of their own that are accepted: export them with "+
			"`--export-options export-minimal`", KeyringKey, maxOwnSignatures)
	case large:
		return nil, fmt.Errorf("has a key under %s that is larger than the %d bits, or of a DSA subgroup larger than the %d, that are accepted",
			KeyringKey, maxKeyBits, maxSubgroupBits)
	case err != nil || len(keys) == 0:
		return nil, fmt.Errorf("has no public keys under %s, as `gpg --export` writes them", KeyringKey)
	case len(keys) > maxKeys:
		return nil, fmt.Errorf("has more than the %d keys under %s that are accepted", maxKeys, KeyringKey)
	case slices.ContainsFunc(keys, func(key *openpgp.Entity) bool { return key.PrivateKey != nil }):
		return nil, fmt.Errorf("has a private key under %s: only the public ones belong there, as `gpg --export` writes them", KeyringKey)
	}
	return keys, nil
}

// readKeys parses binary keys, or ASCII-armored blocks.
func readKeys(ring []byte) (openpgp.EntityList, error) {
	var s scales
	blocks := bytes.Split(ring, []byte(startKeys))
	if len(blocks) == 1 {
		return readRing(ring, &s)
	}
	var out openpgp.EntityList
	for _, block := range blocks[1:] {
		plain, err := armor.Decode(bytes.NewReader(slices.Concat([]byte(startKeys), block)))
		if err != nil {
			return nil, err
		}
		ring, err := io.ReadAll(plain.Body)
		if err != nil {
			return nil, err
		}
		keys, err := readRing(ring, &s)
		if err != nil {
			return nil, err
		}
		out = append(out, keys...)
	}
	return out, nil
}

// readRing parses keys within bounds: parsing verifies the signatures in them.
func readRing(ring []byte, s *scales) (openpgp.EntityList, error) {
	packets := packet.NewReader(bytes.NewReader(ring))
	for range ring { // each takes a byte at least; invalid packets are skipped here, as in parsing
		found, err := packets.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err := s.weigh(found); err != nil {
			return nil, err
		}
	}
	return openpgp.ReadKeyRing(bytes.NewReader(ring))
}

// scales estimate the cost of parsing keys.
type scales struct {
	primary    *packet.PublicKey
	subkey     bool // the next packets are about a subkey
	signatures int
}

// weigh is an error when a packet exceeds a bound.
func (s *scales) weigh(found packet.Packet) error {
	if private, ok := found.(*packet.PrivateKey); ok {
		found = &private.PublicKey
	}
	switch p := found.(type) {
	case *packet.PublicKey:
		if s.subkey = p.IsSubkey; !s.subkey {
			s.primary = p
		}
		return sized(p)
	case *packet.UserId, *packet.UserAttribute:
		s.subkey = false
	case *packet.Signature:
		if s.subkey || s.primary != nil && p.CheckKeyIdOrFingerprint(s.primary) {
			s.signatures++
		}
	}
	if s.signatures > maxOwnSignatures {
		return errKeyCount
	}
	return nil
}

// errKeyCount means that keys have more signatures than any real ones.
var errKeyCount = errors.New("too many signatures")

// errKeySize means that a key is larger than any real one.
var errKeySize = errors.New("too large a key")

// sized is nil for a key whose signatures are quick to verify.
func sized(key *packet.PublicKey) error {
	if bits, err := key.BitLength(); err == nil && bits > maxKeyBits {
		return errKeySize
	}
	if old, ok := key.PublicKey.(*dsa.PublicKey); ok && old.Q.BitLen() > maxSubgroupBits {
		return errKeySize
	}
	return nil
}
