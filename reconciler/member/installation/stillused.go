// SPDX-License-Identifier: Apache-2.0

package installation

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
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
	if !slices.ContainsFunc(a.inventory, func(entry item) bool { return entry.InPlace && contains(listed, entry) }) {
		return nil, nil // it has none, or they go with it
	}
	pods, err := podsInPlace(ctx, m, it.Namespace)
	if err != nil {
		return nil, err
	}
	var used []item
	for _, entry := range a.inventory {
		gk := entry.gvk().GroupKind()
		isConfiguration := gk.Group == "" && (gk.Kind == "ConfigMap" || gk.Kind == "Secret")
		if !isConfiguration || contains(listed, entry) {
			continue
		}
		if !slices.ContainsFunc(pods, func(pod unstructured.Unstructured) bool { return lots.Uses(&pod, gk.Kind, entry.Name) }) {
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

// podsInPlace are the Pods of a namespace that are not side by side, which have the label of their Release, and are not being deleted.
func podsInPlace(ctx context.Context, m *fleet.Member, namespace string) ([]unstructured.Unstructured, error) {
	var list unstructured.UnstructuredList
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("PodList"))
	if err := m.Live().List(ctx, &list, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("listing Pods: %w", err)
	}
	return slices.DeleteFunc(list.Items, func(pod unstructured.Unstructured) bool {
		return pod.GetLabels()[shipper.ReleaseLabel] != "" || pod.GetDeletionTimestamp() != nil
	}), nil
}
