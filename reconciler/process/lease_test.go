// SPDX-License-Identifier: Apache-2.0

package process

import (
	"context"
	"testing"
	"testing/synctest"

	"k8s.io/client-go/rest"
)

// TestTheEventsOfTheLockEndWithTheProcess has a bubble, which fails when a goroutine is left in it.
func TestTheEventsOfTheLockEndWithTheProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		lock, err := newLock(ctx, &rest.Config{Host: "http://management"}, "shipper-system", "first")
		if err != nil {
			t.Fatal(err)
		}
		if lock.Identity() != "first" {
			t.Errorf("the lock is for %q", lock.Identity())
		}
		cancel()
	})
}
