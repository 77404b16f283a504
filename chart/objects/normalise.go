// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// rule drops fields of a live object that are not placed.
type rule struct {
	// kinds are those of the objects that the rule is for; empty for all.
	kinds []schema.GroupKind
	// reason says why the fields are not placed.
	reason string
	drop   func(object map[string]any)
}

// serverRules are for objects of all kinds, whether a user wrote them into an Envelope or an API server has them.
var serverRules = []rule{
	{reason: "status is what the controllers of one cluster observe", drop: remove("status")},
	{reason: "the API server sets them", drop: each(
		remove("metadata", "uid"), remove("metadata", "resourceVersion"), remove("metadata", "generation"),
		remove("metadata", "creationTimestamp"), remove("metadata", "deletionTimestamp"),
		remove("metadata", "deletionGracePeriodSeconds"), remove("metadata", "managedFields"), remove("metadata", "selfLink"))},
	{reason: "the UIDs of owners differ from cluster to cluster", drop: remove("metadata", "ownerReferences")},
	{reason: "kubectl's copy of the object would be a second copy of the content, and may be out of date",
		drop: annotations("kubectl.kubernetes.io/last-applied-configuration")},
	{reason: "old API servers write null where new ones write nothing: their upgrade must not change digests",
		drop: func(o map[string]any) { dropNullTimestamps(o) }},
	{reason: "Shipper's marks would change the digest of an object that it places onto the management cluster itself", drop: each(
		labels(shipper.AppLabel, shipper.OwnedByLabel, shipper.ReleaseLabel, shipper.ReleaseHashLabel),
		annotations(shipper.InstalledDigestAnnotation, shipper.PlacedOwnerAnnotation))},
	{reason: "Pods with Shipper's labels would join the Service of any Application in their namespace", drop: dropReserved},
	{reason: "the controllers that remove finalizers may be missing in another cluster: the object could not be deleted there",
		drop: remove("metadata", "finalizers")},
}

// liveRules are for objects that an API server has. Their fields in an Envelope are a user's.
var liveRules = []rule{
	{reason: "it has been used: the object has a name", drop: remove("metadata", "generateName")},
	{
		kinds: []schema.GroupKind{namespace}, reason: "each API server sets them",
		drop: each(remove("spec", "finalizers"), labels("kubernetes.io/metadata.name")),
	},
	{kinds: []schema.GroupKind{{Kind: "Service"}}, reason: "addresses and ports are allocated in each cluster", drop: dropAllocations},
	{
		kinds:  []schema.GroupKind{{Group: "batch", Kind: "Job"}},
		reason: "the API server generates a selector by the UID of the Job, unless a user wrote one", drop: dropGeneratedSelector,
	},
	{
		kinds:  []schema.GroupKind{{Kind: "PersistentVolumeClaim"}},
		reason: "volumes are bound and provisioned in each cluster, unless a user chose one", drop: each(
			unbind("volumeName"), annotations("pv.kubernetes.io/bind-completed", boundByController,
				"volume.kubernetes.io/selected-node", "volume.kubernetes.io/storage-provisioner",
				"volume.beta.kubernetes.io/storage-provisioner")),
	},
	{
		kinds:  []schema.GroupKind{{Kind: "PersistentVolume"}},
		reason: "the UID of a claim differs from cluster to cluster", drop: each(
			unbind("claimRef"), remove("spec", "claimRef", "uid"), remove("spec", "claimRef", "resourceVersion"),
			annotations(boundByController)),
	},
	{kinds: []schema.GroupKind{serviceAccount}, reason: "tokens are issued in each cluster", drop: dropTokens},
	{
		kinds:  []schema.GroupKind{{Group: "apps", Kind: "Deployment"}, {Group: "apps", Kind: "ReplicaSet"}},
		reason: "the Deployment's controller counts the revisions in each cluster", drop: annotations("deployment.kubernetes.io/revision"),
	},
	{
		kinds:  []schema.GroupKind{{Group: "apps", Kind: "DaemonSet"}},
		reason: "the API server counts the changes of the template", drop: annotations("deprecated.daemonset.template.generation"),
	},
	{
		kinds:  []schema.GroupKind{{Group: "autoscaling", Kind: "HorizontalPodAutoscaler"}},
		reason: "autoscaling/v1 shows status as annotations", drop: annotations("autoscaling.alpha.kubernetes.io/conditions",
			"autoscaling.alpha.kubernetes.io/current-metrics"),
	},
	{
		kinds:  []schema.GroupKind{{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole"}},
		reason: "a controller of each cluster fills in the rules of an aggregated ClusterRole", drop: dropAggregated,
	},
}

// Normalise is what is placed of a live object: a copy without what its cluster added. Values that the API server chose and that a user
// may also have written, such as nodePort, are dropped; defaults that are alike in most clusters stay.
func Normalise(o *unstructured.Unstructured) *unstructured.Unstructured {
	return apply(o, serverRules, liveRules)
}

// apply is a copy of an object to which rules were applied.
func apply(o *unstructured.Unstructured, lists ...[]rule) *unstructured.Unstructured {
	out := o.DeepCopy()
	gk := out.GroupVersionKind().GroupKind()
	for _, rules := range lists {
		for _, r := range rules {
			if len(r.kinds) == 0 || slices.Contains(r.kinds, gk) {
				r.drop(out.Object)
			}
		}
	}
	return out
}

const boundByController = "pv.kubernetes.io/bound-by-controller"

// each does all of some functions, in order.
func each(drops ...func(map[string]any)) func(map[string]any) {
	return func(o map[string]any) {
		for _, drop := range drops {
			drop(o)
		}
	}
}

// remove removes a field, and the maps around it that become empty.
func remove(fields ...string) func(map[string]any) {
	return func(o map[string]any) { removeField(o, fields) }
}

func removeField(o map[string]any, fields []string) {
	if len(fields) == 1 {
		delete(o, fields[0])
		return
	}
	inner, ok := o[fields[0]].(map[string]any)
	if !ok {
		return
	}
	removeField(inner, fields[1:])
	if len(inner) == 0 {
		delete(o, fields[0])
	}
}

// annotations removes annotations of the object.
func annotations(keys ...string) func(map[string]any) {
	return entries(keys, "metadata", "annotations")
}

// labels removes labels of the object.
func labels(keys ...string) func(map[string]any) { return entries(keys, "metadata", "labels") }

// entries removes the entries of a map. Their keys may contain dots.
func entries(keys []string, fields ...string) func(map[string]any) {
	return func(o map[string]any) {
		for _, key := range keys {
			removeField(o, append(slices.Clone(fields), key))
		}
	}
}

// dropNullTimestamps removes creationTimestamp: null, which templates within an object may have.
func dropNullTimestamps(value any) {
	switch v := value.(type) {
	case []any:
		for _, element := range v {
			dropNullTimestamps(element)
		}
	case map[string]any:
		for _, element := range v {
			dropNullTimestamps(element)
		}
		metadata, ok := v["metadata"].(map[string]any)
		if !ok {
			return
		}
		if at, found := metadata["creationTimestamp"]; found && at == nil {
			removeField(v, []string{"metadata", "creationTimestamp"})
		}
	}
}

// dropReserved removes Shipper's labels and annotations from the metadata of all templates in an object. Custom resources have templates
// of Pods too, under names like podMetadata. A schema in a CustomResourceDefinition has none.
func dropReserved(o map[string]any) {
	if o["kind"] == customResourceDefinition.Kind {
		return
	}
	for field, value := range o {
		if field != "metadata" {
			dropReservedIn(value)
		}
	}
}

func dropReservedIn(value any) {
	switch v := value.(type) {
	case []any:
		for _, element := range v {
			dropReservedIn(element)
		}
	case map[string]any:
		for field, element := range v {
			if metadata, ok := element.(map[string]any); ok && strings.HasSuffix(strings.ToLower(field), "metadata") {
				removeKeys(metadata, "labels", shipper.ReservedLabel)
				removeKeys(metadata, "annotations", shipper.ReservedAnnotation)
			}
			dropReservedIn(element)
		}
	}
}

// removeKeys removes the entries of a map in a field, and the map if it becomes empty.
func removeKeys(o map[string]any, field string, reserved func(key string) bool) {
	inner, ok := o[field].(map[string]any)
	if !ok {
		return
	}
	for key := range inner {
		if reserved(key) {
			removeField(o, []string{field, key})
		}
	}
}

// dropAllocations removes the addresses and node ports of a Service. A Service without an address keeps clusterIP: None.
func dropAllocations(o map[string]any) {
	if ip, _, _ := unstructured.NestedString(o, "spec", "clusterIP"); ip != "None" {
		removeField(o, []string{"spec", "clusterIP"})
	}
	removeField(o, []string{"spec", "clusterIPs"})
	removeField(o, []string{"spec", "healthCheckNodePort"})
	ports, _, _ := unstructured.NestedFieldNoCopy(o, "spec", "ports")
	list, _ := ports.([]any)
	for _, element := range list {
		if port, ok := element.(map[string]any); ok {
			delete(port, "nodePort")
		}
	}
}

// dropGeneratedSelector removes the selector of a Job, and the labels that belong to it, unless manualSelector is true.
func dropGeneratedSelector(o map[string]any) {
	if manual, _, _ := unstructured.NestedBool(o, "spec", "manualSelector"); manual {
		return
	}
	removeField(o, []string{"spec", "selector"})
	generated := []string{"controller-uid", "job-name", "batch.kubernetes.io/controller-uid", "batch.kubernetes.io/job-name"}
	entries(generated, "spec", "template", "metadata", "labels")(o)
	labels(generated...)(o) // the API server copies the labels of the template to a Job without labels
	annotations("batch.kubernetes.io/job-tracking")(o)
}

// unbind removes a field of the spec of a volume or a claim if a controller wrote it.
func unbind(field string) func(map[string]any) {
	return func(o map[string]any) {
		if _, bound, _ := unstructured.NestedString(o, "metadata", "annotations", boundByController); bound {
			removeField(o, []string{"spec", field})
		}
	}
}

// token is the end of the name of a Secret that Kubernetes before 1.24 made for a ServiceAccount.
var token = regexp.MustCompile(`^-token-[a-z0-9]{5}$`)

// dropTokens removes the references of a ServiceAccount to Secrets with its tokens.
func dropTokens(o map[string]any) {
	refs, ok := o["secrets"].([]any)
	if !ok {
		return
	}
	name, _, _ := unstructured.NestedString(o, "metadata", "name")
	refs = slices.DeleteFunc(refs, func(element any) bool {
		ref, _ := element.(map[string]any)
		of, _ := ref["name"].(string)
		return len(of) > len(name) && of[:len(name)] == name && token.MatchString(of[len(name):])
	})
	if o["secrets"] = refs; len(refs) == 0 {
		delete(o, "secrets")
	}
}

// dropAggregated removes the rules of a ClusterRole that has an aggregationRule.
func dropAggregated(o map[string]any) {
	if o["aggregationRule"] != nil {
		delete(o, "rules")
	}
}
