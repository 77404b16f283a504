// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// capacity is the CapacityTarget of a target's Release, empty when there is none.
func (w *Worker) capacity(ctx context.Context, tt *shipper.TrafficTarget) (*shipper.CapacityTarget, error) {
	ct := &shipper.CapacityTarget{}
	key := client.ObjectKey{Namespace: tt.Namespace, Name: releaseOf(tt)}
	if err := w.client.Get(ctx, key, ct); client.IgnoreNotFound(err) != nil {
		return ct, fmt.Errorf("reading CapacityTarget %s: %w", key.Name, err)
	}
	return ct, nil
}

// podlessIn are the clusters where a Release has no Pods at full capacity: its chart renders to nothing there, or to no replicas. Then it
// needs no Service.
func podlessIn(ct *shipper.CapacityTarget) sets.Set[string] {
	out := sets.New[string]()
	for _, c := range ct.Spec.Clusters {
		if c.TotalReplicaCount == 0 {
			out.Insert(c.Name)
		}
	}
	return out
}

// awaitedIn are the clusters where a Release is to have Pods.
func awaitedIn(ct *shipper.CapacityTarget) sets.Set[string] {
	out := sets.New[string]()
	for _, c := range ct.Spec.Clusters {
		if !c.AsFound && c.TotalReplicaCount > 0 && c.Percent > 0 {
			out.Insert(c.Name)
		}
	}
	return out
}
