// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"shipper.dev/shipper/apis/rules/shipyard"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// maxRevisions bounds the revisions that are kept in memory, of at most 64 KiB each.
const maxRevisions = 256

// revisions keep what Shipyards were when runs were resolved: a ControllerRevision for each, as those of StatefulSets, which all its runs
// share. They are deleted with the Shipyard, and when it gets another revision and no run has them any more. The digest in the status of a
// run says which content is Shipper's.
type revisions struct {
	client client.Client // without a cache: each revision is read once
	kept   *lru.Cache
}

func newRevisions(c client.Client) *revisions {
	return &revisions{client: c, kept: lru.New(maxRevisions)}
}

// revisionKey is by which a revision is kept in memory.
type revisionKey struct {
	client.ObjectKey

	digest string
}

func keyOf(namespace string, of *shipper.ShipyardRevision) revisionKey {
	return revisionKey{client.ObjectKey{Namespace: namespace, Name: of.Name}, of.Digest}
}

// of is the revision of a resolved run; nil if it is gone, or another one has its name.
func (r *revisions) of(ctx context.Context, run *shipper.SequenceRun) (*shipper.ShipyardSnapshot, error) {
	key := keyOf(run.Namespace, &run.Status.Resolved.Revision)
	if kept, there := r.kept.Get(key); there {
		snapshot, _ := kept.(*shipper.ShipyardSnapshot)
		return snapshot, nil
	}
	snapshot, err := r.read(ctx, key)
	if err == nil && snapshot != nil {
		r.kept.Add(key, snapshot)
	}
	return snapshot, err
}

func (r *revisions) read(ctx context.Context, key revisionKey) (*shipper.ShipyardSnapshot, error) {
	found := &appsv1.ControllerRevision{}
	switch err := r.client.Get(ctx, key.ObjectKey, found); {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("reading ControllerRevision %s: %w", key.ObjectKey, err)
	}
	snapshot := &shipper.ShipyardSnapshot{}
	if err := json.Unmarshal(found.Data.Raw, snapshot); err != nil || shipyard.Digest(snapshot) != key.digest {
		return nil, nil //nolint:nilerr // it is not what Shipper wrote
	}
	return snapshot, nil
}

// has reports whether a revision is stored.
func (r *revisions) has(namespace string, of *shipper.ShipyardRevision) bool {
	_, there := r.kept.Get(keyOf(namespace, of))
	return there
}

// save stores the revision that a Shipyard has now.
func (r *revisions) save(ctx context.Context, yard *shipper.Shipyard, snapshot *shipper.ShipyardSnapshot) error {
	of := shipyard.RevisionOf(yard)
	key := keyOf(yard.Namespace, &of)
	raw, err := json.Marshal(snapshot)
	if err != nil {
		return fmt.Errorf("encoding Shipyard %s/%s: %w", yard.Namespace, yard.Name, err)
	}
	err = r.client.Create(ctx, &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: yard.Namespace, Name: of.Name, Labels: map[string]string{shipper.ShipyardLabel: yard.Name},
			OwnerReferences: shipyard.Owners(yard.Name, yard.UID),
		},
		Data: runtime.RawExtension{Raw: raw}, Revision: yard.Generation,
	})
	if apierrors.IsAlreadyExists(err) {
		var there *shipper.ShipyardSnapshot
		if there, err = r.read(ctx, key); err == nil && there == nil {
			return fmt.Errorf("ControllerRevision %s is not a revision of Shipyard %s: delete it", key.ObjectKey, yard.Name)
		}
	}
	if err != nil {
		return fmt.Errorf("keeping the revision of Shipyard %s/%s: %w", yard.Namespace, yard.Name, err)
	}
	r.kept.Add(key, snapshot)
	return nil
}

// trim deletes the revisions of a Shipyard that no run has, when the Shipyard gets another one: next. runs are the others of the Shipyard.
// StatefulSets put labels of their Pods on their own revisions: the owner says whose a revision is.
func (r *revisions) trim(ctx context.Context, yard *shipper.Shipyard, next string, runs []*shipper.SequenceRun) error {
	used := map[string]bool{next: true}
	for _, run := range runs {
		switch {
		case run.Status.Resolved != nil:
			used[run.Status.Resolved.Revision.Name] = true
		case !shipyard.IsFinished(run):
			return nil // it may be about to have any
		}
	}
	all := &metav1.PartialObjectMetadataList{}
	all.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("ControllerRevisionList"))
	err := r.client.List(ctx, all, client.InNamespace(yard.Namespace), client.MatchingLabels{shipper.ShipyardLabel: yard.Name})
	if err != nil {
		return fmt.Errorf("listing the ControllerRevisions of Shipyard %s/%s: %w", yard.Namespace, yard.Name, err)
	}
	for i := range all.Items {
		one := &all.Items[i]
		own := slices.ContainsFunc(one.OwnerReferences, func(ref metav1.OwnerReference) bool { return ref.UID == yard.UID })
		if !own || used[one.Name] {
			continue
		}
		r.kept.Clear() // its content may be saved again
		if err := r.client.Delete(ctx, one, client.Preconditions{UID: &one.UID}); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("deleting ControllerRevision %s/%s: %w", one.Namespace, one.Name, err)
		}
	}
	return nil
}
