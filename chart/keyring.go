// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/ProtonMail/go-crypto/openpgp"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

const (
	// keyringKey is where a Secret has the keys that verify charts: the name of the file that Helm takes them from.
	keyringKey = "pubring.gpg"
	// maxKeyring and maxKeys bound them.
	maxKeyring, maxKeys = 256 << 10, 100
	// startKeys is how keys in ASCII begin.
	startKeys = "-----BEGIN PGP PUBLIC KEY BLOCK-----"
)

// keys reads the keys that verify a chart of an Application in a namespace, and says where they are.
func (c *Catalog) keys(ctx context.Context, namespace string, verify shipper.ChartVerification) (openpgp.EntityList, string, error) {
	data, where, err := c.secret(ctx, namespace, verify.SecretName, ErrKeys)
	if err != nil {
		told := *asError(err)
		if errors.Is(err, ErrKeys) {
			told.Reason = shipper.ChartNotVerified
		}
		return nil, where, &told
	}
	keys, err := keysOf(data[keyringKey])
	if err != nil {
		return nil, where, notVerified(ErrKeys, "Secret %s %s", where, err)
	}
	if verify.Signer == "" {
		return keys, where, nil
	}
	// All others are strangers.
	keys = slices.DeleteFunc(keys, func(key *openpgp.Entity) bool { return fingerprintOf(key) != verify.Signer })
	if len(keys) == 0 {
		return nil, where, notVerified(ErrKeys, "Secret %s has no key %s under %s, which chart.verify.signer names",
			where, verify.Signer, keyringKey)
	}
	return keys, where, nil
}

// keysOf understands what `gpg --export` writes. Errors are phrases that follow the name of the Secret.
func keysOf(ring []byte) (openpgp.EntityList, error) {
	switch {
	case len(ring) == 0:
		return nil, fmt.Errorf("has nothing under %s, where the keys that verify charts are to be", keyringKey)
	case len(ring) > maxKeyring:
		return nil, fmt.Errorf("has more than the %d KiB under %s that are accepted", maxKeyring>>10, keyringKey)
	}
	keys, err := guard(func() (openpgp.EntityList, error) { return readKeys(ring) })
	switch {
	case err != nil || len(keys) == 0:
		return nil, fmt.Errorf("has no public keys under %s, as `gpg --export` writes them", keyringKey)
	case len(keys) > maxKeys:
		return nil, fmt.Errorf("has more than the %d keys under %s that are accepted", maxKeys, keyringKey)
	case slices.ContainsFunc(keys, func(key *openpgp.Entity) bool { return key.PrivateKey != nil }):
		return nil, fmt.Errorf("has a private key under %s: only the public ones belong there, as `gpg --export` writes them", keyringKey)
	}
	return keys, nil
}

// readKeys reads keys as they are, or in ASCII, one block after another.
func readKeys(ring []byte) (openpgp.EntityList, error) {
	blocks := bytes.Split(ring, []byte(startKeys))
	if len(blocks) == 1 {
		return openpgp.ReadKeyRing(bytes.NewReader(ring))
	}
	var out openpgp.EntityList
	for _, block := range blocks[1:] {
		keys, err := openpgp.ReadArmoredKeyRing(bytes.NewReader(slices.Concat([]byte(startKeys), block)))
		if err != nil {
			return nil, err
		}
		out = append(out, keys...)
	}
	return out, nil
}
