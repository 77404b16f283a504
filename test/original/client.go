// SPDX-License-Identifier: Apache-2.0

package original

import (
	"context"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// limited is how long the clients of the original wait between two requests: their rate limit makes them as slow as a person who edits.
const limited = 400 * time.Millisecond

// Edit changes an Application as the original's own end-to-end tests do: it reads the Application, replaces it when the rate limit allows
// that, and does not try again.
func Edit(ctx context.Context, c client.Client, key client.ObjectKey, edit func(*shipper.Application)) error {
	app := &shipper.Application{}
	if err := c.Get(ctx, key, app); err != nil {
		return fmt.Errorf("reading Application %s: %w", key, err)
	}
	select {
	case <-time.After(limited):
	case <-ctx.Done():
		return ctx.Err()
	}
	edit(app)
	if err := c.Update(ctx, app); err != nil {
		return fmt.Errorf("replacing Application %s %s after it was read: %w", key, limited, err)
	}
	return nil
}
