// SPDX-License-Identifier: Apache-2.0

package installation

import (
	"context"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart/lots"
	"shipper.dev/shipper/reconciler/fleet"
)

// stays reports whether the Application of a target is there and stays: its workloads in place do, then, if another Release has them.
func (w *Worker) stays(ctx context.Context, it *shipper.InstallationTarget) (bool, error) {
	var app shipper.Application
	err := w.client.Get(ctx, client.ObjectKey{Namespace: it.Namespace, Name: it.Labels[shipper.AppLabel]}, &app)
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("reading Application %s: %w", it.Labels[shipper.AppLabel], err)
	}
	return err == nil && app.DeletionTimestamp == nil, nil
}

// stillUsed are the ConfigMaps and Secrets of a target that goes, and that Pods in place still use: after an abort these are replaced one
// after the other, and those of a StatefulSet with OnDelete when users delete them.
func stillUsed(ctx context.Context, m *fleet.Member, it *shipper.InstallationTarget, a *anchor) ([]item, error) {
	of := client.MatchingLabels{shipper.AppLabel: it.Labels[shipper.AppLabel]}
	others, err := anchorsBut(ctx, m.Live(), it, client.InNamespace(it.Namespace), of)
	if err != nil {
		return nil, err
	}
	listed := inventories(m, others)
	stays := func(entry item) bool { return entry.InPlace && contains(listed, entry) }
	if !slices.ContainsFunc(a.inventory, stays) {
		return nil, nil // it has none, or they go with it
	}
	var pods unstructured.UnstructuredList
	pods.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("PodList"))
	if err := m.Live().List(ctx, &pods, client.InNamespace(it.Namespace)); err != nil {
		return nil, fmt.Errorf("listing Pods: %w", err)
	}
	pods.Items = slices.DeleteFunc(pods.Items, func(pod unstructured.Unstructured) bool {
		inPlace := slices.ContainsFunc(a.inventory, func(entry item) bool { return stays(entry) && runs(entry, &pod) })
		return !inPlace || pod.GetDeletionTimestamp() != nil
	})
	var used []item
	for _, entry := range a.inventory {
		gk := entry.gvk().GroupKind()
		isConfiguration := gk.Group == "" && (gk.Kind == "ConfigMap" || gk.Kind == "Secret")
		if !isConfiguration || contains(listed, entry) {
			continue
		}
		if !slices.ContainsFunc(pods.Items, func(pod unstructured.Unstructured) bool { return lots.Uses(&pod, gk.Kind, entry.Name) }) {
			continue
		}
		live, err := m.LiveMetadata(ctx, entry.gvk(), entry.key())
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if goes(it, entry, live) {
			used = append(used, entry)
		}
	}
	return used, nil
}

// runs reports whether a workload in place has made a Pod. A Deployment names its ReplicaSets by a label that it gives their Pods, as
// reconciler/member/traffic knows them: a ReplicaSet of another owner may have such a name.
func runs(workload item, pod *unstructured.Unstructured) bool {
	owner := metav1.GetControllerOf(pod)
	if owner == nil {
		return false
	}
	kind, name := owner.Kind, owner.Name
	if kind == "ReplicaSet" {
		of, made := strings.CutSuffix(name, "-"+pod.GetLabels()[appsv1.DefaultDeploymentUniqueLabelKey])
		if !made {
			return false
		}
		kind, name = "Deployment", of
	}
	return kind == workload.Kind && name == workload.Name
}
