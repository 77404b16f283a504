// SPDX-License-Identifier: Apache-2.0

package repository

import (
	"context"
	"errors"
	"slices"

	"github.com/ProtonMail/go-crypto/openpgp"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart"
	"shipper.dev/shipper/chart/verify"
)

// keys reads the keys that verify a chart of an Application in a namespace, and returns the name of their Secret.
func (c *Catalog) keys(ctx context.Context, namespace string, want shipper.ChartVerification) (openpgp.EntityList, string, error) {
	secret, where, err := c.secret(ctx, namespace, want.SecretName, chart.ErrKeys)
	if err != nil {
		failure := *chart.AsError(err)
		if errors.Is(err, chart.ErrKeys) {
			failure.Reason = shipper.ChartNotVerified
		}
		return nil, where, &failure
	}
	keys, err := verify.ParseKeys(secret.Data[verify.KeyringKey])
	if err != nil {
		return nil, where, chart.NotVerified(chart.ErrKeys, "Secret %s %s", where, err)
	}
	if want.Signer == "" {
		return keys, where, nil
	}
	// All other keys are not trusted.
	keys = slices.DeleteFunc(keys, func(key *openpgp.Entity) bool { return verify.Fingerprint(key) != want.Signer })
	if len(keys) == 0 {
		return nil, where, chart.NotVerified(chart.ErrKeys, "Secret %s has no key %s under %s, which chart.verify.signer names",
			where, want.Signer, verify.KeyringKey)
	}
	return keys, where, nil
}
