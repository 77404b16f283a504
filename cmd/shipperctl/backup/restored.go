// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"errors"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"shipper.dev/shipper/apis/rules/block"
	"shipper.dev/shipper/apis/rules/stamp"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// creatable is an object without the fields that API servers set, without status, and without owner references: their UIDs are of the
// lost objects, and the garbage collector would delete the object.
func creatable(was *object) *object {
	o := was.DeepCopy()
	for _, field := range []string{
		"uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds",
		"managedFields", "selfLink", "ownerReferences",
	} {
		unstructured.RemoveNestedField(o.Object, "metadata", field)
	}
	unstructured.RemoveNestedField(o.Object, "status")
	return o
}

// setOwner replaces the owner references of o by one to owner, with the flags that it had in the backup.
func setOwner(o, was, owner *object) {
	ref := metav1.OwnerReference{APIVersion: owner.GetAPIVersion(), Kind: owner.GetKind(), Name: owner.GetName()}
	for _, had := range was.GetOwnerReferences() {
		if had.Kind == ref.Kind && had.Name == ref.Name {
			ref.Controller, ref.BlockOwnerDeletion = had.Controller, had.BlockOwnerDeletion
		}
	}
	ref.UID = owner.GetUID()
	o.SetOwnerReferences([]metav1.OwnerReference{ref})
}

// lostOwners are the owners of an object, as it was, of other kinds than those that it has again.
func lostOwners(was, o *object) []string {
	var out []string
	for _, had := range was.GetOwnerReferences() {
		if !slices.ContainsFunc(o.GetOwnerReferences(), func(has metav1.OwnerReference) bool { return has.Kind == had.Kind }) {
			out = append(out, had.Kind+" "+had.Name)
		}
	}
	return out
}

// asFound makes a CapacityTarget or a TrafficTarget ask for nothing: more may run by now, or less, than the backup knows.
// The reconciler adopts the found state first, and then the Release's.
func asFound(target *object) {
	clusters, _, _ := unstructured.NestedSlice(target.Object, "spec", "clusters")
	for i := range clusters {
		cluster, ok := clusters[i].(map[string]any)
		if !ok {
			continue
		}
		for _, asked := range []string{"percent", "weight"} {
			if _, there := cluster[asked]; there {
				cluster[asked] = int64(0)
			}
		}
		cluster["asFound"] = true
	}
	if len(clusters) > 0 {
		_ = unstructured.SetNestedSlice(target.Object, clusters, "spec", "clusters") // as it was read from there
	}
}

// statusOf is the status to restore; nil when there was none. observedGeneration becomes 1 if it was current, and is dropped
// otherwise, and for targets: the reconciler must not act on a status from before the loss.
func statusOf(was *object) map[string]any {
	status, _, _ := unstructured.NestedMap(was.DeepCopy().Object, "status")
	if len(status) == 0 {
		return nil
	}
	observed, there, _ := unstructured.NestedInt64(status, "observedGeneration")
	switch kind := was.GetKind(); {
	case !there:
	case kind != applicationKind.Kind && kind != releaseKind.Kind, observed < was.GetGeneration():
		delete(status, "observedGeneration")
	default:
		status["observedGeneration"] = int64(1)
	}
	return status
}

// overrideKeys are the annotations by which an object overrides RolloutBlocks.
var overrideKeys = []string{
	shipper.RolloutBlockOverrideAnnotation, shipper.RolloutBlockOverrideReasonAnnotation,
	shipper.RolloutBlockOverrideStampAnnotation,
}

// withoutOverrides removes overrides from an object: the blocks are restored after it.
func withoutOverrides(o *object) {
	annotations := o.GetAnnotations()
	for _, k := range overrideKeys {
		delete(annotations, k)
	}
	o.SetAnnotations(annotations)
}

// overridesOf are the annotations by which an object that was restored overrides those of its blocks that are there, by
// the UIDs that they have now; none when nothing is to be overridden.
func overridesOf(was *object, blocks map[types.NamespacedName]types.UID) map[string]string {
	before := was.GetAnnotations()
	var names []types.NamespacedName
	for _, o := range block.Overrides(before) {
		if _, there := blocks[o.Name]; there {
			names = append(names, o.Name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	kept := block.Keep(before, names)
	records := block.Records(kept)
	for i := range records {
		for _, name := range names {
			if records[i].Block == name.String() && records[i].UID != "" {
				records[i].UID = blocks[name]
			}
		}
	}
	out := map[string]string{}
	for _, k := range overrideKeys {
		if kept[k] != "" {
			out[k] = kept[k]
		}
	}
	if text := block.FormatRecords(records); text != "" {
		out[shipper.RolloutBlockOverrideStampAnnotation] = text
	}
	return out
}

// ttlToExpiry turns the TTL of a RolloutBlock into a time: restoring it sets a new creation time.
func ttlToExpiry(o, was *object) error {
	b, err := typed[shipper.RolloutBlock](was)
	if err != nil {
		return err
	}
	if b.Spec.TTL == nil || b.CreationTimestamp.IsZero() {
		return nil
	}
	end := b.CreationTimestamp.Add(b.Spec.TTL.Duration)
	if b.Spec.ExpiresAt != nil && b.Spec.ExpiresAt.Time.Before(end) {
		return nil
	}
	if err := unstructured.SetNestedField(o.Object, end.UTC().Format(time.RFC3339), "spec", "expiresAt"); err != nil {
		return fmt.Errorf("reading %s: %w", describe(was), err)
	}
	return nil
}

// sameApplication reports whether a live Application has the environment and the history of the backup. Then its missing Releases may
// be added.
func sameApplication(live, was *object) (bool, error) {
	a, b, err := bothTyped[shipper.Application](live, was)
	if err != nil {
		return false, err
	}
	const highest = shipper.AppHighestObservedGenerationAnnotation
	return a.Annotations[highest] == b.Annotations[highest] && stamp.SameEnvironment(&a.Spec.Template, &b.Spec.Template), nil
}

func sameRelease(live, was *object) (bool, error) {
	a, b, err := bothTyped[shipper.Release](live, was)
	if err != nil {
		return false, err
	}
	return a.Spec.TargetStep == b.Spec.TargetStep && ptr.Deref(a.Spec.TargetWave, 0) == ptr.Deref(b.Spec.TargetWave, 0) &&
		a.Spec.Environment.Chart.Naming == b.Spec.Environment.Chart.Naming &&
		stamp.SameEnvironment(&a.Spec.Environment, &b.Spec.Environment), nil
}

// typed converts an object to a Go type.
func typed[T any](o *object) (*T, error) {
	into := new(T)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, into); err != nil {
		return nil, fmt.Errorf("reading %s: %w", describe(o), err)
	}
	return into, nil
}

func bothTyped[T any](live, was *object) (is, before *T, err error) {
	is, err = typed[T](live)
	before, err2 := typed[T](was)
	return is, before, errors.Join(err, err2)
}
