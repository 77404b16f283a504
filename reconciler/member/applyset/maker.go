// SPDX-License-Identifier: Apache-2.0

package applyset

import (
	"context"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Made is the object for which another one was made; the zero value is none.
type Made struct{ Kind, Name string }

// String is as in `StatefulSet "db"`.
func (m Made) String() string { return fmt.Sprintf("%s %q", m.Kind, m.Name) }

// Maker returns the object for which a controller made another one: its controller or, where the controllers of Kubernetes set no owner
// reference, the object that its name points to.
func Maker(ctx context.Context, from client.Reader, gk schema.GroupKind, live *metav1.PartialObjectMetadata) (Made, error) {
	if ref := metav1.GetControllerOf(live); ref != nil {
		return Made{ref.Kind, ref.Name}, nil
	}
	switch key := client.ObjectKeyFromObject(live); gk {
	case schema.GroupKind{Kind: "PersistentVolumeClaim"}:
		return claimer(ctx, from, key)
	case schema.GroupKind{Kind: "Endpoints"}:
		return selecting(ctx, from, key)
	}
	return Made{}, nil
}

// claimer returns the StatefulSet whose Pods use a claim: its name is that of a template, of the StatefulSet and of a Pod.
func claimer(ctx context.Context, from client.Reader, key client.ObjectKey) (Made, error) {
	base := strings.TrimRight(key.Name, "0123456789")
	if base == key.Name || !strings.HasSuffix(base, "-") {
		return Made{}, nil
	}
	var list appsv1.StatefulSetList
	if err := from.List(ctx, &list, client.InNamespace(key.Namespace)); err != nil {
		return Made{}, fmt.Errorf("listing StatefulSets: %w", err)
	}
	for i := range list.Items {
		set := &list.Items[i]
		for j := range set.Spec.VolumeClaimTemplates {
			if set.Spec.VolumeClaimTemplates[j].Name+"-"+set.Name+"-" == base {
				return Made{"StatefulSet", set.Name}, nil
			}
		}
	}
	return Made{}, nil
}

// selecting returns the Service for whose Pods Kubernetes writes Endpoints.
func selecting(ctx context.Context, from client.Reader, key client.ObjectKey) (Made, error) {
	var service corev1.Service
	if err := from.Get(ctx, key, &service); err != nil {
		if apierrors.IsNotFound(err) {
			return Made{}, nil
		}
		return Made{}, fmt.Errorf("reading Service %s: %w", key.Name, err)
	}
	if len(service.Spec.Selector) == 0 {
		return Made{}, nil
	}
	return Made{"Service", service.Name}, nil
}
