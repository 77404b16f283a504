// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// resourceEntries are the complete ResourceSnapshots of the Releases of b, with notes on what is left out.
func (f contents) resourceEntries(b Backup) (out Backup, notes []string) {
	there := byName(f.snapshots)
	done := map[types.NamespacedName]bool{}
	for _, o := range allReleases(b) {
		digest := stringAt(o, "spec", "environment", "resourcesDigest")
		name := types.NamespacedName{Namespace: o.GetNamespace(), Name: shipper.ResourceSnapshotName(digest, 1)}
		if digest == "" || done[name] {
			continue
		}
		done[name] = true
		head := there[name]
		if head == nil {
			notes = append(notes, fmt.Sprintf("resource snapshot %q, the content of %s, is not there: it is left out", name, describe(o)))
			continue
		}
		e, whole := f.resourceEntry(head, digest, there)
		if !whole {
			notes = append(notes, fmt.Sprintf("%s is not whole: it is left out", describe(head)))
			continue
		}
		if number(head, "secrets") > 0 && f.contentSecrets == nil {
			notes = append(notes, fmt.Sprintf("%s is saved without its Secrets: with --include-secrets they are saved, too", describe(head)))
		}
		out = append(out, e)
	}
	return out, notes
}

// resourceEntry is a head with its parts and, if they were read, its Secrets.
func (f contents) resourceEntry(head *object, digest string, there map[types.NamespacedName]*object) (e Entry, whole bool) {
	if isDeleting(head) {
		return Entry{}, false
	}
	e.ResourceSnapshot = withoutManagedFields(head)
	for n := int32(2); int64(n) <= number(head, "parts"); n++ {
		part := there[contentName(head, digest, n)]
		if part == nil || isDeleting(part) {
			return Entry{}, false
		}
		e.ResourceParts = append(e.ResourceParts, withoutManagedFields(part))
	}
	for n := int32(1); f.contentSecrets != nil && int64(n) <= number(head, "secrets"); n++ {
		secret := f.contentSecrets[contentName(head, digest, n)]
		if secret == nil || isDeleting(secret) {
			return Entry{}, false
		}
		e.ResourceSecrets = append(e.ResourceSecrets, withoutManagedFields(secret))
	}
	return e, true
}

// allReleases are the Releases of a backup.
func allReleases(b Backup) []*object {
	var out []*object
	for _, e := range b {
		if e.Application != nil {
			out = append(out, releasesOf(e)...)
		}
	}
	return out
}

// contentName is the name of a part, and of the Secret with that number, of the content with a head.
func contentName(head *object, digest string, n int32) types.NamespacedName {
	return types.NamespacedName{Namespace: head.GetNamespace(), Name: shipper.ResourceSnapshotName(digest, n)}
}

// readContentSecrets reads the Secrets of ResourceSnapshots. Other Secrets with their names are left out.
func readContentSecrets(ctx context.Context, from client.Reader, snapshots []object) (map[types.NamespacedName]*object, error) {
	out := map[types.NamespacedName]*object{}
	for _, head := range pointers(snapshots) {
		if number(head, "part") != 1 {
			continue
		}
		for n := int32(1); int64(n) <= number(head, "secrets"); n++ {
			name := contentName(head, stringAt(head, "spec", "digest"), n)
			secret, err := get(ctx, from, secretKind, name)
			if err != nil {
				return nil, err
			}
			if secret != nil && stringAt(secret, "type") == shipper.ResourcesSecretType {
				out[name] = secret
			}
		}
	}
	return out, nil
}

// resources restores the content of Releases. It has no owner until Shipper sets those Releases as its owners.
func (r *restorer) resources(ctx context.Context, e Entry) error {
	if e.ResourceSnapshot == nil {
		return nil
	}
	head, err := r.ensure(ctx, e.ResourceSnapshot, creatable(e.ResourceSnapshot), nil)
	if err != nil {
		return err
	}
	for _, part := range slices.Concat(e.ResourceParts, e.ResourceSecrets) {
		o := creatable(part)
		setOwner(o, part, head)
		if _, err := r.ensure(ctx, part, o, nil); err != nil {
			return err
		}
	}
	return nil
}

func (r *restorer) envelope(ctx context.Context, e Entry) error {
	if e.Envelope == nil {
		return nil
	}
	_, err := r.ensure(ctx, e.Envelope, creatable(e.Envelope), nil)
	return err
}

// ownedLater reports whether Shipper sets the owners of an object when it runs again.
func ownedLater(o *object) bool {
	kind := o.GroupVersionKind()
	return kind == snapshotKind || kind == contentKind
}
