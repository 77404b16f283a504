// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/fleet"
)

// observation is what was read of a target in one cluster, and what was done there.
type observation struct {
	// want is the capacity asked for.
	want shipper.ClusterCapacityTarget
	// deployments of the Release that are not going; there should be one.
	deployments []appsv1.Deployment
	// pods of that Deployment, without those that are terminating or finished, by name. Empty unless there is one.
	pods []corev1.Pod
	// scaled is true when spec.replicas was written in this pass.
	scaled bool
	// wasReady is true when the target's status reports Ready for the same spec.
	wasReady bool
	// err is why the cluster could not be read or written.
	err error
}

// observe reads the Deployment and the Pods of a target from the cluster's caches.
func observe(
	ctx context.Context, m *fleet.Member, ct *shipper.CapacityTarget, want shipper.ClusterCapacityTarget,
) observation {
	out := observation{want: want, wasReady: wasReady(ct, want.Name)}
	release := releaseOf(ct)
	of := []client.ListOption{ // nothing that is read is changed
		client.InNamespace(ct.Namespace), client.MatchingFields{fleet.ByRelease: release}, client.UnsafeDisableDeepCopy,
	}
	var deployments appsv1.DeploymentList
	if out.err = m.Client().List(ctx, &deployments, of...); out.err != nil {
		out.err = fmt.Errorf("listing Deployments: %w", out.err)
		return out
	}
	for _, d := range deployments.Items {
		if d.DeletionTimestamp == nil {
			out.deployments = append(out.deployments, d)
		}
	}
	if len(out.deployments) != 1 {
		return out
	}
	var pods corev1.PodList
	if out.err = m.Client().List(ctx, &pods, of...); out.err != nil {
		out.err = fmt.Errorf("listing Pods: %w", out.err)
		return out
	}
	out.pods, out.err = podsOf(&out.deployments[0], pods.Items)
	return out
}

// wasReady reports whether the target's status reports Ready in a cluster for the same spec.
func wasReady(ct *shipper.CapacityTarget, cluster string) bool {
	i := slices.IndexFunc(ct.Status.Clusters, func(c shipper.ClusterCapacityStatus) bool { return c.Name == cluster })
	return i >= 0 && ct.Status.ObservedGeneration == ct.Generation &&
		shipper.ConditionTrue(ct.Status.Clusters[i].Conditions, shipper.TargetReady)
}

// podsOf are the Deployment's Pods that are neither terminating nor finished, by name.
func podsOf(d *appsv1.Deployment, pods []corev1.Pod) ([]corev1.Pod, error) {
	selector, err := metav1.LabelSelectorAsSelector(d.Spec.Selector)
	if err != nil {
		return nil, fmt.Errorf("reading the selector of Deployment %s: %w", d.Name, err)
	}
	var out []corev1.Pod
	for _, pod := range pods {
		finished := pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
		if pod.DeletionTimestamp == nil && !finished && selector.Matches(labels.Set(pod.Labels)) {
			out = append(out, pod)
		}
	}
	slices.SortFunc(out, func(a, b corev1.Pod) int { return cmp.Compare(a.Name, b.Name) })
	return out, nil
}

// releaseOf is the Release's name: that of the target, which the label repeats.
func releaseOf(ct *shipper.CapacityTarget) string {
	if release := ct.Labels[shipper.ReleaseLabel]; release != "" {
		return release
	}
	return ct.Name
}
