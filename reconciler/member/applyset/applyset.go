// SPDX-License-Identifier: Apache-2.0

// Package applyset has the requests by which installation and resources apply objects in an application cluster and list them there, in a
// ConfigMap: what is about to be written is listed first, and then what is there. So a killed process leaves no object unlisted.
// ConfigMaps and objects are changed and deleted only as they were read.
package applyset

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// Version is an object as it was read or written.
type Version struct {
	UID             types.UID
	ResourceVersion string
}

// VersionOf an object.
func VersionOf(o client.Object) Version { return Version{o.GetUID(), o.GetResourceVersion()} }

// List is a ConfigMap that lists objects.
type List struct {
	types.NamespacedName

	Labels, Annotations, Data map[string]string
	Finalizers                []string
}

// Read reads the ConfigMap of a List; nil if there is none.
func Read(ctx context.Context, from client.Reader, key types.NamespacedName) (*corev1.ConfigMap, error) {
	var cm corev1.ConfigMap
	err := from.Get(ctx, key, &cm)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading ConfigMap %s: %w", key, err)
	}
	return &cm, nil
}

// Write creates the ConfigMap if was is the zero Version, and otherwise writes it over as it was.
func (l List) Write(ctx context.Context, c client.Client, was Version) (Version, error) {
	cm := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}}
	cm.SetNamespace(l.Namespace)
	cm.SetName(l.Name)
	cm.SetLabels(l.Labels)
	cm.SetAnnotations(l.Annotations)
	cm.SetFinalizers(l.Finalizers)
	err := unstructured.SetNestedStringMap(cm.Object, l.Data, "data")
	if err != nil {
		return was, fmt.Errorf("encoding ConfigMap %s: %w", l.NamespacedName, err)
	}
	if was == (Version{}) {
		err = c.Create(ctx, cm, client.FieldOwner(shipper.FieldOwner))
	} else {
		cm.SetResourceVersion(was.ResourceVersion)
		err = Apply(ctx, c, cm, client.ForceOwnership)
	}
	if err != nil {
		return was, fmt.Errorf("writing ConfigMap %s: %w", l.NamespacedName, err)
	}
	return VersionOf(cm), nil
}

// DeleteList deletes the ConfigMap of a List as it was.
func DeleteList(ctx context.Context, c client.Client, key types.NamespacedName, was Version, how ...client.DeleteOption) error {
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: key.Namespace, Name: key.Name, UID: was.UID, ResourceVersion: was.ResourceVersion,
	}}
	if err := Delete(ctx, c, cm, how...); err != nil {
		return fmt.Errorf("deleting ConfigMap %s: %w", key, err)
	}
	return nil
}

// Foreground has an object deleted after those that it owns.
const Foreground = client.PropagationPolicy(metav1.DeletePropagationForeground)

// Delete deletes an object as it was read: one that was written since stays.
func Delete(ctx context.Context, c client.Client, o client.Object, how ...client.DeleteOption) error {
	was := VersionOf(o)
	return c.Delete(ctx, o, append(how, client.Preconditions{UID: &was.UID, ResourceVersion: &was.ResourceVersion})...)
}

// Cluster is what Remove needs of a connection to an application cluster. *fleet.Member is one.
type Cluster interface {
	Client() client.Client
	Metadata(ctx context.Context, gvk schema.GroupVersionKind, key client.ObjectKey) (*metav1.PartialObjectMetadata, error)
	LiveMetadata(ctx context.Context, gvk schema.GroupVersionKind, key client.ObjectKey) (*metav1.PartialObjectMetadata, error)
}

// Remove deletes an object in the foreground if it goes, and reports whether it is still there. The cache is asked first, so that there is
// one, and its event reports when the object is gone. may decides by what the cache has, nil for nothing, whether the API server is asked;
// goes decides by what the API server has.
func Remove(
	ctx context.Context, c Cluster, gvk schema.GroupVersionKind, key client.ObjectKey,
	may func(cached *metav1.PartialObjectMetadata) bool, goes func(live *metav1.PartialObjectMetadata) (bool, error),
) (there bool, err error) {
	live, err := c.Metadata(ctx, gvk, key)
	if apierrors.IsNotFound(err) {
		live, err = nil, nil
	}
	if err == nil {
		if !may(live) {
			return false, nil
		}
		live, err = c.LiveMetadata(ctx, gvk, key)
	}
	switch {
	case apierrors.IsNotFound(err), meta.IsNoMatchError(err):
		return false, nil
	case err != nil:
		return false, err
	}
	if there, err = goes(live); !there || err != nil || live.DeletionTimestamp != nil {
		return there, err
	}
	err = Delete(ctx, c.Client(), live, Foreground)
	return !apierrors.IsNotFound(err), client.IgnoreNotFound(err)
}

// Apply writes an object by server-side apply. On return the object is as the API server has it.
func Apply(ctx context.Context, c client.Client, object *unstructured.Unstructured, how ...client.ApplyOption) error {
	how = append(how, client.FieldOwner(shipper.FieldOwner))
	return c.Apply(ctx, client.ApplyConfigurationFromUnstructured(object), how...)
}
