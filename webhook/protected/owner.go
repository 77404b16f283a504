// SPDX-License-Identifier: Apache-2.0

package protected

import (
	"context"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/webhook/response"
)

var ownersPath = field.NewPath("metadata", "ownerReferences")

// Owner is what an object belongs to: it goes when its owner goes, and its reference to the owner is what the garbage
// collector goes by. Whoever could change the reference could have the object collected.
type Owner struct {
	// Kind is that of the owner, a kind of Shipper's.
	Kind string
	// Now reads the owner as the API server has it at this moment; nil when there is none. While an owner is being
	// deleted with its dependents left behind, the garbage collector takes the references to it away: a view of the
	// owner that is a moment old would put them back, and the dependents would be collected.
	Now func(ctx context.Context) (metav1.Object, error)
}

// Restore puts references to the owner back that meta lacks and old has, while the owner is there and not going.
func (o Owner) Restore(ctx context.Context, a *response.Response, old, meta *metav1.ObjectMeta) error {
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
		a.Set(meta.OwnerReferences, "metadata", "ownerReferences")
	}
	return nil
}

// Check says where meta no longer refers to the owner as old does, or refers to another owner of the same kind, while
// the owner is there and not going. A reference to the owner that was missing may be set right by anybody.
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

// staying is the owner; nil when it is gone or going.
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

// lacking are the references to owners of the kind that refs has and others has not.
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

// names reports whether ref is a reference to owner, this very one, that the garbage collector can follow.
func (o Owner) names(ref metav1.OwnerReference, owner metav1.Object) bool {
	return ref.APIVersion == shipper.GroupVersion.String() && ref.Kind == o.Kind &&
		ref.Name == owner.GetName() && ref.UID == owner.GetUID()
}

// sameOwner reports whether the garbage collector looks for the same owner by both. Under another name it finds none, and deletes.
func sameOwner(a, b metav1.OwnerReference) bool {
	return a.APIVersion == b.APIVersion && a.Kind == b.Kind && a.Name == b.Name && a.UID == b.UID
}
