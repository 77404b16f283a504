// SPDX-License-Identifier: Apache-2.0

package protected

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

var ownersPath = field.NewPath("metadata", "ownerReferences")

// Owner is the owner of an object. The garbage collector deletes the object with its owner, by the reference: a user who could
// change the reference could have the object deleted.
type Owner struct {
	// Kind is the kind of the owner, one of Shipper's.
	Kind string
	// Now reads the owner from the API server; nil when it does not exist. While an owner is deleted and its dependents
	// orphaned, the garbage collector removes their references. A stale cache would make the webhook restore the references,
	// and the garbage collector delete the dependents.
	Now func(ctx context.Context) (metav1.Object, error)
}

// ForeignOwners has an error if an object gets an owner of another kind than this one of Shipper's: whoever deletes that owner has the
// garbage collector delete the object, as if it were deleted.
func ForeignOwners(old, meta *metav1.ObjectMeta, kind string) field.ErrorList {
	for _, ref := range meta.OwnerReferences {
		same := func(was metav1.OwnerReference) bool { return sameOwner(was, ref) }
		foreign := ref.Kind != kind || !strings.HasPrefix(ref.APIVersion, shipper.GroupName+"/")
		if foreign && !slices.ContainsFunc(old.OwnerReferences, same) {
			return field.ErrorList{field.Forbidden(ownersPath, fmt.Sprintf(
				"%s %s may not become an owner: the garbage collector would delete this object with it", ref.Kind, ref.Name))}
		}
	}
	return nil
}

// IsController reports whether a user is the garbage collector or the namespace controller: a user with the right to it has made them
// delete. The last name is theirs where controllers have no accounts of their own.
func IsController(username string) bool {
	return slices.Contains([]string{
		"system:serviceaccount:kube-system:generic-garbage-collector", "system:serviceaccount:kube-system:namespace-controller",
		"system:kube-controller-manager",
	}, username)
}

// Restore restores references to the owner that old has and meta lacks, while the owner exists and is not being deleted.
func (o Owner) Restore(ctx context.Context, old, meta *metav1.ObjectMeta) error {
	lost := o.lacking(old.OwnerReferences, meta.OwnerReferences)
	if len(lost) == 0 {
		return nil
	}
	owner, err := o.staying(ctx)
	if err != nil || owner == nil {
		return err
	}
	lost = slices.DeleteFunc(lost, func(ref metav1.OwnerReference) bool { return !o.names(ref, owner) })
	if len(lost) > 0 {
		meta.OwnerReferences = append(slices.Clone(meta.OwnerReferences), lost...)
	}
	return nil
}

// Check returns an error if meta drops old's reference to the owner, or refers to another owner of the kind, while the owner
// exists and is not being deleted. Any user may add a missing reference.
func (o Owner) Check(ctx context.Context, old, meta *metav1.ObjectMeta) (field.ErrorList, error) {
	lost := o.lacking(old.OwnerReferences, meta.OwnerReferences)
	added := o.lacking(meta.OwnerReferences, old.OwnerReferences)
	if len(lost)+len(added) == 0 {
		return nil, nil
	}
	owner, err := o.staying(ctx)
	if err != nil || owner == nil {
		return nil, err
	}
	right := func(ref metav1.OwnerReference) bool { return o.names(ref, owner) }
	wrong := func(ref metav1.OwnerReference) bool { return !right(ref) }
	if !slices.ContainsFunc(lost, right) && !slices.ContainsFunc(added, wrong) {
		return nil, nil
	}
	return field.ErrorList{field.Forbidden(ownersPath, fmt.Sprintf(
		"the reference to %s is written by Shipper; leave it at %s with uid %s", o.Kind, owner.GetName(), owner.GetUID()))}, nil
}

// staying is the owner; nil when it does not exist or is being deleted.
func (o Owner) staying(ctx context.Context) (metav1.Object, error) {
	owner, err := o.Now(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading the owner: %w", err)
	}
	if owner == nil || owner.GetDeletionTimestamp() != nil {
		return nil, nil
	}
	return owner, nil
}

// lacking are the references to owners of the kind that are in refs and not in others.
func (o Owner) lacking(refs, others []metav1.OwnerReference) []metav1.OwnerReference {
	var out []metav1.OwnerReference
	for _, ref := range refs {
		same := func(other metav1.OwnerReference) bool { return sameOwner(ref, other) }
		if ref.Kind == o.Kind && strings.HasPrefix(ref.APIVersion, shipper.GroupName+"/") && !slices.ContainsFunc(others, same) {
			out = append(out, ref)
		}
	}
	return out
}

// names reports whether ref refers to owner, by name and UID, so that the garbage collector finds it.
func (o Owner) names(ref metav1.OwnerReference, owner metav1.Object) bool {
	return ref.APIVersion == shipper.GroupVersion.String() && ref.Kind == o.Kind &&
		ref.Name == owner.GetName() && ref.UID == owner.GetUID()
}

// sameOwner reports whether the garbage collector finds the same owner by both. If it finds none, it deletes the object.
func sameOwner(a, b metav1.OwnerReference) bool {
	return a.APIVersion == b.APIVersion && a.Kind == b.Kind && a.Name == b.Name && a.UID == b.UID
}

// Orphans reports whether a deletion keeps the dependents of an object: its options say so or, where they say nothing, its finalizers.
func Orphans(req *admission.Request, old *metav1.ObjectMeta) bool {
	var options metav1.DeleteOptions
	if len(req.Options.Raw) > 0 && json.Unmarshal(req.Options.Raw, &options) != nil {
		return false
	}
	switch {
	case options.PropagationPolicy != nil:
		return *options.PropagationPolicy == metav1.DeletePropagationOrphan
	case options.OrphanDependents != nil: //nolint:staticcheck // API servers still obey it
		return *options.OrphanDependents //nolint:staticcheck // as above
	}
	return slices.Contains(old.Finalizers, metav1.FinalizerOrphanDependents)
}
