// SPDX-License-Identifier: Apache-2.0

package reconciler

import (
	"context"
	"fmt"

	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// NewClient makes the client of a manager that runs Setup. A Get waits until the cache shows what this process has written to that
// object. A List does not wait: it would wait for every write of its kind, and one tenant's slow admission webhook would delay
// all.
func NewClient(config *rest.Config, o client.Options) (client.Client, error) {
	if o.Cache != nil {
		o.Cache.EnableReadYourWritesConsistency = ptr.To(true)
	}
	c, err := client.New(config, o)
	if err != nil {
		return nil, fmt.Errorf("building the client of the manager: %w", err)
	}
	return readYourWrites{c}, nil
}

type readYourWrites struct{ client.Client }

// List does not wait for writes.
func (c readYourWrites) List(ctx context.Context, list client.ObjectList, o ...client.ListOption) error {
	return c.Client.List(ctx, list, append(o, client.DisableReadYourWritesConsistency)...)
}
