// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"fmt"
	"maps"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Behind tells with what the cluster's controllers and kubelets have not caught up in a namespace: Pods that are still going, and
// Deployments, ReplicaSets and EndpointSlices that do not tell of the Pods that are there. When it is empty nobody but a user has
// anything left to write there. Who looks for what somebody writes to a cluster at rest waits for that first.
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
		slices   discoveryv1.EndpointSliceList
	)
	for _, list := range []client.ObjectList{&pods, &sets, &above, &services, &slices} {
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
		if are := countOf(pods.Items, rs.Spec.Selector); says != are || rs.Status.ObservedGeneration < rs.Generation {
			out = append(out, fmt.Sprintf("ReplicaSet %s tells of %+v Pods, there are %+v", rs.Name, says, are))
		}
	}
	for _, d := range above.Items {
		says := count{d.Status.Replicas, d.Status.ReadyReplicas}
		if are := countOf(pods.Items, d.Spec.Selector); says != are || d.Status.ObservedGeneration < d.Generation {
			out = append(out, fmt.Sprintf("Deployment %s tells of %+v Pods, there are %+v", d.Name, says, are))
		}
	}
	for _, s := range services.Items {
		if diff := cmp.Diff(served(pods.Items, s.Spec.Selector), told(slices.Items, s.Name)); s.Spec.Selector != nil && diff != "" {
			out = append(out, "Service "+s.Name+" (-Pods +endpoints, true when ready)\n"+diff)
		}
	}
	return out, nil
}

// count is of Pods.
type count struct{ All, Ready int32 }

func countOf(pods []corev1.Pod, of *metav1.LabelSelector) (n count) {
	selector, err := metav1.LabelSelectorAsSelector(of)
	if err != nil {
		return count{-1, -1} // never: the API server has checked it
	}
	for i := range pods {
		if selector.Matches(labels.Set(pods[i].Labels)) {
			n.All++
			if ready(&pods[i]) {
				n.Ready++
			}
		}
	}
	return n
}

// served are the Pods that a selector takes and that have an address: whether they are ready, by name.
func served(pods []corev1.Pod, selector map[string]string) map[string]bool {
	out := map[string]bool{}
	for i := range pods {
		if pods[i].Status.PodIP != "" && labels.SelectorFromSet(selector).Matches(labels.Set(pods[i].Labels)) {
			out[pods[i].Name] = ready(&pods[i])
		}
	}
	return out
}

// told are the Pods that a Service's slices name: whether they are ready, by name.
func told(slices []discoveryv1.EndpointSlice, service string) map[string]bool {
	out := map[string]bool{}
	for _, slice := range slices {
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

func ready(pod *corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}
