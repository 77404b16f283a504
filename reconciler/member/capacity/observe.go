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
	// keptServing is true when Pods that serve were kept in this pass, though fewer are asked for.
	keptServing bool
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
	if out.deployments, out.err = deploymentsOf(ctx, m, ct); out.err != nil || len(out.deployments) != 1 {
		return out
	}
	var pods []corev1.Pod
	if pods, out.err = listPods(ctx, m, ct); out.err != nil {
		return out
	}
	out.pods, out.err = podsOf(&out.deployments[0], pods)
	return out
}

// cached lists what caches have of a target's Release. Nothing that is read is changed.
func cached(ct *shipper.CapacityTarget) []client.ListOption {
	return []client.ListOption{
		client.InNamespace(ct.Namespace), client.MatchingFields{fleet.ByRelease: releaseOf(ct)}, client.UnsafeDisableDeepCopy,
	}
}

// deploymentsOf are the Deployments of a target's Release that are not being deleted.
func deploymentsOf(ctx context.Context, m *fleet.Member, ct *shipper.CapacityTarget) (out []appsv1.Deployment, err error) {
	var list appsv1.DeploymentList
	if err := m.Client().List(ctx, &list, cached(ct)...); err != nil {
		return nil, fmt.Errorf("listing Deployments: %w", err)
	}
	for _, d := range list.Items {
		if d.DeletionTimestamp == nil {
			out = append(out, d)
		}
	}
	return out, nil
}

// listPods are the Pods of a target's Release.
func listPods(ctx context.Context, m *fleet.Member, ct *shipper.CapacityTarget) ([]corev1.Pod, error) {
	var list corev1.PodList
	if err := m.Client().List(ctx, &list, cached(ct)...); err != nil {
		return nil, fmt.Errorf("listing Pods: %w", err)
	}
	return list.Items, nil
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
