// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/client-go/discovery"
)

// Discover asks an API server for its version and for all that it serves, in the form charts ask for it.
func Discover(ctx context.Context, d *discovery.DiscoveryClient) (version string, apis []string, err error) {
	found, err := d.ServerVersionWithContext(ctx)
	if err != nil {
		return "", nil, fmt.Errorf("asking for the version: %w", err)
	}
	// An API server behind this one that does not answer leaves its groups out; that is no reason to leave the cluster
	// out.
	_, resources, err := d.ServerGroupsAndResourcesWithContext(ctx)
	var partly *discovery.ErrGroupDiscoveryFailed
	if err != nil && !errors.As(err, &partly) {
		return "", nil, fmt.Errorf("asking for the APIs: %w", err)
	}
	return found.GitVersion, apiVersions(resources), nil
}
