// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Behind lists where the cluster's controllers and kubelets have not caught up in a namespace: Pods that are being deleted,
// and Deployments, ReplicaSets and EndpointSlices whose status differs from the Pods. When it is empty, only users write
// there.
func (c *Cluster) Behind(ctx context.Context, namespace string) ([]string, error) {
	admin, err := c.Client(nil)
	if err != nil {
		return nil, err
	}
	var (
		pods     corev1.PodList
		sets     appsv1.ReplicaSetList
		above    appsv1.DeploymentList
		services corev1.ServiceList
		tables   discoveryv1.EndpointSliceList
	)
	for _, list := range []client.ObjectList{&pods, &sets, &above, &services, &tables} {
		if err := admin.List(ctx, list, client.InNamespace(namespace)); err != nil {
			return nil, fmt.Errorf("listing what is in %s of %s: %w", namespace, c.Name, err)
		}
	}
	var out []string
	for _, pod := range pods.Items {
		if pod.DeletionTimestamp != nil {
			out = append(out, "Pod "+pod.Name+" is going")
		}
	}
	for _, rs := range sets.Items {
		says := count{rs.Status.Replicas, rs.Status.ReadyReplicas}
		out = append(out, mismatch("ReplicaSet "+rs.Name, says, pods.Items, rs.Spec.Selector, rs.Status.ObservedGeneration < rs.Generation)...)
	}
	for _, d := range above.Items {
		says := count{d.Status.Replicas, d.Status.ReadyReplicas}
		out = append(out, mismatch("Deployment "+d.Name, says, pods.Items, d.Spec.Selector, d.Status.ObservedGeneration < d.Generation)...)
	}
	for _, s := range services.Items {
		if diff := cmp.Diff(served(pods.Items, s.Spec.Selector), readiness(tables.Items, s.Name)); s.Spec.Selector != nil && diff != "" {
			out = append(out, "Service "+s.Name+" (-Pods +endpoints, true when ready)\n"+diff)
		}
	}
	return out, nil
}

// count counts Pods.
type count struct{ All, Ready int32 }

// mismatch returns a message if a reported number of Pods differs from the actual one, or if the controller has not observed the
// generation.
func mismatch(who string, says count, pods []corev1.Pod, of *metav1.LabelSelector, behind bool) []string {
	if are := countOf(pods, of); says != are || behind {
		return []string{fmt.Sprintf("%s reports %+v Pods, there are %+v", who, says, are)}
	}
	return nil
}

func countOf(pods []corev1.Pod, of *metav1.LabelSelector) (n count) {
	selector, err := metav1.LabelSelectorAsSelector(of)
	if err != nil {
		return count{-1, -1} // never: the API server has validated it
	}
	for i := range pods {
		if selector.Matches(labels.Set(pods[i].Labels)) {
			n.All++
			if PodReady(&pods[i]) {
				n.Ready++
			}
		}
	}
	return n
}

// served returns the readiness of the Pods with an address that a selector matches, by name.
func served(pods []corev1.Pod, selector map[string]string) map[string]bool {
	out := map[string]bool{}
	for i := range pods {
		if pods[i].Status.PodIP != "" && labels.SelectorFromSet(selector).Matches(labels.Set(pods[i].Labels)) {
			out[pods[i].Name] = PodReady(&pods[i])
		}
	}
	return out
}

// readiness returns the readiness of the Pods in a Service's EndpointSlices, by name.
func readiness(tables []discoveryv1.EndpointSlice, service string) map[string]bool {
	out := map[string]bool{}
	for _, slice := range tables {
		if slice.Labels[discoveryv1.LabelServiceName] == service {
			maps.Copy(out, named(slice))
		}
	}
	return out
}

func named(slice discoveryv1.EndpointSlice) map[string]bool {
	out := map[string]bool{}
	for _, e := range slice.Endpoints {
		if e.TargetRef != nil {
			out[e.TargetRef.Name] = ptr.Deref(e.Conditions.Ready, false)
		}
	}
	return out
}

// PodReady reports whether a Pod is ready, even if it is being deleted.
func PodReady(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}
