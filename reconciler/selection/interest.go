// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"encoding/json"
	"hash/fnv"
	"slices"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// collection is a kind in a namespace; the namespace is empty for kinds without one.
type collection struct {
	resource  schema.GroupVersionResource
	namespace string
}

// interest is which objects of a collection an Application selects.
type interest struct {
	collection
	// name is that of the only object; empty for all.
	name string
	// labels are nil for all.
	labels labels.Selector
}

// distinct are the interests without those that are equal to an earlier one.
func distinct(list []interest) []interest {
	type key struct {
		collection
		name, labels string
		labelled     bool
	}
	var out []interest
	seen := map[key]bool{}
	for _, one := range list {
		k := key{collection: one.collection, name: one.name}
		if one.labels != nil {
			k.labels, k.labelled = one.labels.String(), true
		}
		if !seen[k] {
			seen[k], out = true, append(out, one)
		}
	}
	return out
}

// matches reports whether an object of the collection is selected.
func (i interest) matches(o *metav1.PartialObjectMetadata) bool {
	return (i.name == "" || i.name == o.Name) && (i.labels == nil || i.labels.Matches(labels.Set(o.Labels)))
}

// usualKinds are watched in each namespace that is selected with its content, whether it has such objects or not.
var usualKinds = []schema.GroupKind{
	{Kind: "ConfigMap"}, {Kind: "Secret"}, {Kind: "Service"}, {Kind: "ServiceAccount"}, {Kind: "PersistentVolumeClaim"},
	{Group: "apps", Kind: "Deployment"}, {Group: "apps", Kind: "StatefulSet"}, {Group: "apps", Kind: "DaemonSet"},
	{Group: "batch", Kind: "Job"}, {Group: "batch", Kind: "CronJob"},
	{Group: "rbac.authorization.k8s.io", Kind: "Role"}, {Group: "rbac.authorization.k8s.io", Kind: "RoleBinding"},
	{Group: "networking.k8s.io", Kind: "NetworkPolicy"}, {Group: "networking.k8s.io", Kind: "Ingress"},
	{Group: "autoscaling", Kind: "HorizontalPodAutoscaler"}, {Group: "policy", Kind: "PodDisruptionBudget"},
	{Group: shipper.GroupName, Kind: "Envelope"},
}

// definitions are the CustomResourceDefinitions. A new one is a sign of new objects in a namespace that is selected with its content.
var definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// A watch keeps no other annotations than these.
const (
	// digestAnnotation is a hash of those that the object has.
	digestAnnotation = "digest"
	// statusAnnotation and fieldsAnnotation are hashes of managedFields: of those of the status, and of the others. Only objects without a
	// generation have them.
	statusAnnotation, fieldsAnnotation = "status", "fields"
)

// digest hashes a value that has no encoding error. Keys of maps are sorted.
func digest(value any) string {
	sum := fnv.New64a()
	_ = json.NewEncoder(sum).Encode(value)
	return strconv.FormatUint(sum.Sum64(), 36)
}

// strip reduces an object to what decides whether its content has changed. Watches of large namespaces would take much memory otherwise.
func strip(object any) (any, error) {
	o, ok := object.(*metav1.PartialObjectMetadata)
	if !ok {
		return object, nil // the mark of a deletion that the watch has missed
	}
	out := &metav1.PartialObjectMetadata{TypeMeta: o.TypeMeta, ObjectMeta: metav1.ObjectMeta{
		Name: o.Name, Namespace: o.Namespace, UID: o.UID, ResourceVersion: o.ResourceVersion, Generation: o.Generation,
		DeletionTimestamp: o.DeletionTimestamp, Labels: o.Labels,
		Annotations: map[string]string{digestAnnotation: digest(o.Annotations)},
	}}
	if o.Generation == 0 {
		var status, fields []metav1.ManagedFieldsEntry
		for _, entry := range o.ManagedFields {
			if entry.Subresource == "status" {
				status = append(status, entry)
			} else {
				fields = append(fields, entry)
			}
		}
		out.Annotations[statusAnnotation], out.Annotations[fieldsAnnotation] = digest(status), digest(fields)
	}
	if owner := metav1.GetControllerOf(o); owner != nil {
		out.OwnerReferences = []metav1.OwnerReference{*owner}
	}
	return out, nil
}

// concerns reports whether a change from one stripped object to another may change content. Either is nil if the object is new or gone.
func concerns(before, after *metav1.PartialObjectMetadata) bool {
	for _, o := range []*metav1.PartialObjectMetadata{before, after} {
		if o != nil && metav1.GetControllerOf(o) != nil {
			return false // its owner makes it in every cluster
		}
	}
	switch {
	case before == nil || after == nil || before.UID != after.UID:
		return true
	case before.ResourceVersion == after.ResourceVersion:
		return false // a watch that began again
	case after.Generation == 0 && !statusWritten(before, after):
		return true // the API server does not count the changes of this kind
	default: // otherwise a status was written
		return before.Generation != after.Generation || !labels.Equals(before.Labels, after.Labels) ||
			before.Annotations[digestAnnotation] != after.Annotations[digestAnnotation] ||
			(before.DeletionTimestamp == nil) != (after.DeletionTimestamp == nil)
	}
}

// statusWritten reports whether only a status was written of an object without a generation, such as a HorizontalPodAutoscaler. Another
// write changes other managedFields, but for one by the same manager, of the same fields, in the same second: that changes neither.
func statusWritten(before, after *metav1.PartialObjectMetadata) bool {
	return before.Annotations[statusAnnotation] != after.Annotations[statusAnnotation] &&
		before.Annotations[fieldsAnnotation] == after.Annotations[fieldsAnnotation]
}

// interests are the interests of Applications, by collection. The zero value has none.
type interests struct {
	byApp        map[types.NamespacedName][]interest
	byCollection map[collection]map[types.NamespacedName]bool
	// collections counts those of a resource.
	collections map[schema.GroupVersionResource]int
}

// set replaces the interests of an Application.
func (i *interests) set(app types.NamespacedName, list []interest) {
	if i.byApp == nil {
		i.byApp, i.byCollection = map[types.NamespacedName][]interest{}, map[collection]map[types.NamespacedName]bool{}
		i.collections = map[schema.GroupVersionResource]int{}
	}
	for _, old := range i.byApp[app] {
		if apps := i.byCollection[old.collection]; apps != nil {
			if delete(apps, app); len(apps) == 0 {
				delete(i.byCollection, old.collection)
				i.collections[old.resource]--
			}
		}
	}
	delete(i.byApp, app)
	if len(list) == 0 {
		return
	}
	i.byApp[app] = list
	for _, one := range list {
		if i.byCollection[one.collection] == nil {
			i.byCollection[one.collection] = map[types.NamespacedName]bool{}
			i.collections[one.resource]++
		}
		i.byCollection[one.collection][app] = true
	}
}

// of are the Applications that select an object, as it was or as it is.
func (i *interests) of(resource schema.GroupVersionResource, versions ...*metav1.PartialObjectMetadata) []types.NamespacedName {
	var out []types.NamespacedName
	seen := map[types.NamespacedName]bool{}
	for _, o := range versions {
		if o == nil {
			continue
		}
		at := collection{resource, o.Namespace}
		for app := range i.byCollection[at] {
			selects := func(one interest) bool { return one.collection == at && one.matches(o) }
			if !seen[app] && slices.ContainsFunc(i.byApp[app], selects) {
				seen[app], out = true, append(out, app)
			}
		}
	}
	return out
}

// at are the Applications that are interested in a collection, or, without a namespace, in any collection of a resource.
func (i *interests) at(p collection) []types.NamespacedName {
	var out []types.NamespacedName
	for one, apps := range i.byCollection {
		if one.resource == p.resource && (p.namespace == "" || one.namespace == p.namespace) {
			for app := range apps {
				out = append(out, app)
			}
		}
	}
	return out
}
