// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/fleet"
	"shipper.dev/shipper/reconciler/targets"
)

// InitialSelector names the Release that a new Service of an Application selects in a cluster; empty if several share the traffic, or none
// has any: then it selects by label. A Release with all the traffic needs it: its Pods may lack the label, and Pods of others may have kept
// it, so a Service that selected by label would be empty, or serve the wrong Pods. Pods reads those of the cluster, by fleet.ByApp.
type InitialSelector func(
	ctx context.Context, pods client.Reader, namespace string, of Selectors, cluster string,
) (release string, err error)

// NewInitialSelector goes by the TrafficTargets that c knows.
func NewInitialSelector(c client.Client) InitialSelector {
	return func(ctx context.Context, pods client.Reader, namespace string, of Selectors, cluster string) (string, error) {
		var all shipper.TrafficTargetList
		if err := c.List(ctx, &all, client.InNamespace(namespace), client.MatchingLabels{shipper.AppLabel: of.App}); err != nil {
			return "", fmt.Errorf("listing the TrafficTargets of %s: %w", of.App, err)
		}
		var there corev1.PodList
		if err := pods.List(ctx, &there, client.InNamespace(namespace), client.MatchingFields{fleet.ByApp: of.App}); err != nil {
			return "", fmt.Errorf("listing Pods: %w", err)
		}
		alone := ""
		for i := range all.Items {
			tt := &all.Items[i]
			going, err := targets.Ended(ctx, c, tt)
			if err != nil {
				return "", err
			}
			if going || !weighs(tt, of, cluster, there.Items) {
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

// weighs reports whether a target has traffic in a cluster: it requests some or, while it is left as found, has Pods with the label.
// A Release that is new has none, and stays as it was found for as long as its steps give it no traffic.
func weighs(tt *shipper.TrafficTarget, of Selectors, cluster string, pods []corev1.Pod) bool {
	i := slices.IndexFunc(tt.Spec.Clusters, func(c shipper.ClusterTrafficTarget) bool { return c.Name == cluster })
	if i < 0 || !tt.Spec.Clusters[i].AsFound {
		return i >= 0 && tt.Spec.Clusters[i].Weight > 0
	}
	return slices.ContainsFunc(pods, func(pod corev1.Pod) bool {
		return pod.Labels[shipper.ReleaseLabel] == releaseOf(tt) && of.labels(&pod) &&
			pod.Annotations[shipper.HookRunAnnotation] == "" && !gone(&pod)
	})
}
