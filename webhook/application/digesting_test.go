// SPDX-License-Identifier: Apache-2.0

package application

import (
	"context"
	"errors"
	"testing"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart/values"
	"shipper.dev/shipper/webhook/response"
)

// TestSecretsAreDigestedForOneWriteAtATime has a write give up that waits for another, and those that ask for nothing slow pass.
func TestSecretsAreDigestedForOneWriteAtATime(t *testing.T) {
	secret := shipper.ValuesSource{SecretKeyRef: &shipper.ValuesKeyRef{Name: "hidden"}}
	plain := shipper.ValuesSource{ConfigMapKeyRef: &shipper.ValuesKeyRef{Name: "plain"}}
	if err := digesting.Enter(t.Context(), "another"); err != nil {
		t.Fatal(err)
	}
	impatient, cancel := context.WithCancel(t.Context())
	cancel()
	digests := func(ctx context.Context, source shipper.ValuesSource) error {
		_, err := digestsOf(ctx, values.Pinned{From: []shipper.ValuesSource{source}}, values.Held{source.String(): []byte("a: 1")})
		return err
	}
	err := digests(impatient, secret)
	if refusal, ok := errors.AsType[*response.Refusal](err); !ok || refusal.Decision != response.Unavailable {
		t.Errorf("the waiting request got %v", err)
	}
	if err := digests(impatient, plain); err != nil {
		t.Errorf("a ConfigMap waits, too: %v", err)
	}
	digesting.Leave("another")
	if err := digests(t.Context(), secret); err != nil {
		t.Errorf("when it is done the next has to wait: %v", err)
	}
}
