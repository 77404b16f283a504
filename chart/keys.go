// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"context"
	"errors"
	"slices"

	"github.com/ProtonMail/go-crypto/openpgp"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// keys reads the keys that verify a chart of an Application in a namespace, and returns the name of their Secret.
func (c *Catalog) keys(ctx context.Context, namespace string, want shipper.ChartVerification) (openpgp.EntityList, string, error) {
	secret, where, err := c.secret(ctx, namespace, want.SecretName, ErrKeys)
	if err != nil {
		failure := *asError(err)
		if errors.Is(err, ErrKeys) {
			failure.Reason = shipper.ChartNotVerified
		}
		return nil, where, &failure
	}
	keys, err := keysOf(secret.Data[keyringKey])
	if err != nil {
		return nil, where, notVerified(ErrKeys, "Secret %s %s", where, err)
	}
	if want.Signer == "" {
		return keys, where, nil
	}
	// All other keys are not trusted.
	keys = slices.DeleteFunc(keys, func(key *openpgp.Entity) bool { return fingerprintOf(key) != want.Signer })
	if len(keys) == 0 {
		return nil, where, notVerified(ErrKeys, "Secret %s has no key %s under %s, which chart.verify.signer names",
			where, want.Signer, keyringKey)
	}
	return keys, where, nil
}
