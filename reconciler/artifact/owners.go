// SPDX-License-Identifier: Apache-2.0

package artifact

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// SetOwners makes the Releases of an Application owners of the content that they have. The Application itself owns only the content with
// digest, of which it creates a Release next, and that only until a Release has it. Content without an owner is deleted.
func (s *Resources) SetOwners(ctx context.Context, app *shipper.Application, rels []*shipper.Release, digest string) error {
	changes, err := s.changes(ctx, app, rels, digest)
	if err != nil || len(changes) == 0 {
		return err
	}
	if slices.ContainsFunc(changes, func(c change) bool { return len(c.owners) == 0 }) {
		// The cache may lack a Release that needs the content.
		if rels, err = s.liveReleases(ctx, app); err != nil {
			return err
		}
		if changes, err = s.changes(ctx, app, rels, digest); err != nil {
			return err
		}
	}
	for _, c := range changes {
		if err := s.change(ctx, c); err != nil {
			return fmt.Errorf("setting the owners of ResourceSnapshot %s: %w", client.ObjectKeyFromObject(c.head), err)
		}
	}
	return nil
}

// change is a new list of owners of a head.
type change struct {
	head   *metav1.PartialObjectMetadata
	owners []metav1.OwnerReference
}

func (s *Resources) changes(
	ctx context.Context, app *shipper.Application, rels []*shipper.Release, digest string,
) ([]change, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(shipper.GroupVersion.WithKind(resourceSnapshot + "List"))
	if err := s.client.List(ctx, list, client.InNamespace(app.Namespace)); err != nil {
		return nil, fmt.Errorf("listing ResourceSnapshots in %s: %w", app.Namespace, err)
	}
	return planOwners(app, rels, digest, list.Items), nil
}

// planOwners is pure. Objects that are not heads, or have nothing to do with the Application, are left alone.
func planOwners(
	app *shipper.Application, rels []*shipper.Release, digest string, snapshots []metav1.PartialObjectMetadata,
) []change {
	wanted, next := map[string][]*shipper.Release{}, ""
	for _, rel := range rels {
		if digest := rel.Spec.Environment.ResourcesDigest; digest != "" && rel.DeletionTimestamp == nil {
			name := shipper.ResourceSnapshotName(digest, 1)
			wanted[name] = append(wanted[name], rel)
		}
	}
	if digest != "" {
		next = shipper.ResourceSnapshotName(digest, 1)
	}
	var out []change
	for i := range snapshots {
		head := &snapshots[i]
		if head.DeletionTimestamp != nil {
			continue
		}
		owners := slices.Clone(head.OwnerReferences)
		for _, rel := range wanted[head.Name] {
			if !isOwner(head, rel.UID) {
				owners = append(owners, ownedBy("Release", rel))
			}
		}
		needs := head.Name == next && len(wanted[head.Name]) == 0
		drops := isOwner(head, app.UID) && !needs
		switch {
		case drops:
			owners = slices.DeleteFunc(owners, func(ref metav1.OwnerReference) bool { return ref.UID == app.UID })
		case needs && !isOwner(head, app.UID):
			owners = append(owners, ownedBy("Application", app))
		}
		if drops || len(owners) > len(head.OwnerReferences) {
			out = append(out, change{head, owners})
		}
	}
	return out
}

// change writes owners, or deletes a head that has none, unless the head has changed since it was read.
func (s *Resources) change(ctx context.Context, c change) error {
	if len(c.owners) > 0 {
		return s.setOwners(ctx, c.head, c.owners)
	}
	err := s.client.Delete(ctx, c.head, client.Preconditions{UID: &c.head.UID, ResourceVersion: &c.head.ResourceVersion})
	return client.IgnoreNotFound(err)
}

// setOwners replaces the owners of a head, unless it has changed since it was read.
func (s *Resources) setOwners(ctx context.Context, head *metav1.PartialObjectMetadata, owners []metav1.OwnerReference) error {
	is := head.DeepCopy()
	is.OwnerReferences = owners
	return s.client.Patch(ctx, is, client.MergeFromWithOptions(head, client.MergeFromWithOptimisticLock{}),
		client.FieldOwner(shipper.FieldOwner))
}

// liveReleases reads the Releases of an Application from the API server.
func (s *Resources) liveReleases(ctx context.Context, app *shipper.Application) ([]*shipper.Release, error) {
	var list shipper.ReleaseList
	err := s.reader.List(ctx, &list, client.InNamespace(app.Namespace), client.MatchingLabels{shipper.AppLabel: app.Name})
	if err != nil {
		return nil, fmt.Errorf("listing the Releases of Application %s/%s: %w", app.Namespace, app.Name, err)
	}
	out := make([]*shipper.Release, len(list.Items))
	for i := range list.Items {
		out[i] = &list.Items[i]
	}
	return out, nil
}
