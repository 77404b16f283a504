// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// Key identifies an object of a cluster. The version of its API is not part of it: all versions show one object.
type Key struct {
	// Group is empty for the core group, Namespace for objects without one.
	Group, Kind, Namespace, Name string
}

// KeyOf is the Key of an object.
func KeyOf(o *unstructured.Unstructured) Key {
	gk := o.GroupVersionKind().GroupKind()
	return Key{gk.Group, gk.Kind, o.GetNamespace(), o.GetName()}
}

// GroupKind is the group and the kind.
func (k Key) GroupKind() schema.GroupKind { return schema.GroupKind{Group: k.Group, Kind: k.Kind} }

// Compare orders keys by group, kind, namespace and name.
func (k Key) Compare(other Key) int {
	return cmp.Or(cmp.Compare(k.Group, other.Group), cmp.Compare(k.Kind, other.Kind),
		cmp.Compare(k.Namespace, other.Namespace), cmp.Compare(k.Name, other.Name))
}

// String names the object for messages, as `Deployment work/web` or `ClusterRole admin`.
func (k Key) String() string {
	if k.Namespace == "" {
		return k.Kind + " " + k.Name
	}
	return k.Kind + " " + k.Namespace + "/" + k.Name
}

// Sort sorts objects by their Keys, in place.
func Sort(objects []unstructured.Unstructured) {
	slices.SortStableFunc(objects, func(a, b unstructured.Unstructured) int { return KeyOf(&a).Compare(KeyOf(&b)) })
}

// IsEnvelope reports whether a kind is Shipper's Envelope, whose content is placed instead of itself.
func IsEnvelope(gk schema.GroupKind) bool { return gk == envelope }

var (
	envelope                 = schema.GroupKind{Group: shipper.GroupName, Kind: "Envelope"}
	secret                   = schema.GroupKind{Kind: "Secret"}
	configMap                = schema.GroupKind{Kind: "ConfigMap"}
	serviceAccount           = schema.GroupKind{Kind: "ServiceAccount"}
	roleBinding              = schema.GroupKind{Group: "rbac.authorization.k8s.io", Kind: "RoleBinding"}
	namespace                = schema.GroupKind{Kind: "Namespace"}
	customResourceDefinition = schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}
)
