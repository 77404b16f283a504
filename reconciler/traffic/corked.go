// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// Corked tells of which one Release a Service of an Application that is made in a cluster is to select the Pods from the beginning;
// of none where several share the traffic, or nobody has any. Pods of a Release that has all of it may lack the label that lets
// traffic in, and Pods of others may have kept it: a Service that begins to select by label would be empty, or serve those.
type Corked func(ctx context.Context, namespace, app, cluster string) (release string, err error)

// NewCorked goes by the TrafficTargets that c knows.
func NewCorked(c client.Client) Corked {
	r := &Reconciler{client: c}
	return func(ctx context.Context, namespace, app, cluster string) (string, error) {
		var all shipper.TrafficTargetList
		if err := c.List(ctx, &all, client.InNamespace(namespace), client.MatchingLabels{shipper.AppLabel: app}); err != nil {
			return "", fmt.Errorf("listing the TrafficTargets of %s: %w", app, err)
		}
		alone := ""
		for i := range all.Items {
			tt := &all.Items[i]
			going, err := r.going(ctx, tt)
			if err != nil {
				return "", err
			}
			if going || !weighs(tt, cluster) {
				continue
			}
			if alone != "" {
				return "", nil
			}
			alone = releaseOf(tt)
		}
		return alone, nil
	}
}

// weighs tells whether a target has traffic in a cluster, or had it when it was found.
func weighs(tt *shipper.TrafficTarget, cluster string) bool {
	for _, c := range tt.Spec.Clusters {
		if c.Name == cluster {
			return c.Weight > 0 || c.AsFound
		}
	}
	return false
}
