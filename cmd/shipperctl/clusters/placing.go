// SPDX-License-Identifier: Apache-2.0

package clusters

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"shipper.dev/shipper/chart/objects"
	"shipper.dev/shipper/cmd/shipperctl/install"
)

// placing has the flag about the rights to place in application clusters.
type placing struct {
	asked bool // --placements was given; without it, what is there stays
	on    bool // its value
}

// do gives, takes or keeps the rights in one cluster.
func (p placing) do(ctx context.Context, m member) error {
	switch {
	case !p.asked:
		return nil
	case p.on:
		return m.Placements(ctx)
	default:
		return m.NoPlacements(ctx)
	}
}

// checkPlacements refuses names that are none, and namespaces whose objects are never placed.
func checkPlacements(namespaces []string) error {
	for _, name := range namespaces {
		if name == install.AllPlaced {
			continue
		}
		if len(validation.IsDNS1123Label(name)) > 0 {
			return fmt.Errorf("--placements: %q is no name of a namespace; '*' is all", name)
		}
		if refusal := (objects.Policy{}).Refused(corev1.SchemeGroupVersion.WithKind("Namespace"), "", name); refusal != nil {
			return fmt.Errorf("--placements: objects of namespace %s are never placed: %s", name, refusal.Reason)
		}
	}
	return nil
}
