// SPDX-License-Identifier: Apache-2.0

package restore

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"shipper.dev/shipper/apis/rules/stamp"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// backup is what was saved of one namespace: an Application with its Releases, oldest first. Targets are not saved: only
// Shipper may write them.
type backup struct {
	app      *shipper.Application
	releases []*shipper.Release
}

// save reads a namespace.
func save(ctx context.Context, from client.Reader, namespace string) (*backup, error) {
	b := &backup{app: &shipper.Application{}}
	if err := from.Get(ctx, client.ObjectKey{Namespace: namespace, Name: appName}, b.app); err != nil {
		return nil, fmt.Errorf("saving the Application: %w", err)
	}
	var list shipper.ReleaseList
	if err := from.List(ctx, &list, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("saving the Releases: %w", err)
	}
	var all []*shipper.Release
	for i := range list.Items {
		all = append(all, &list.Items[i])
	}
	b.releases, _ = stamp.SortByGeneration(all)
	return b, nil
}

// restore creates again what was saved, in an order in which nobody would: the newest Release comes last.
func (b *backup) restore(ctx context.Context, to client.Client, status bool) error {
	app := b.app.DeepCopy()
	if err := to.Create(ctx, anew(app)); err != nil {
		return fmt.Errorf("restoring the Application: %w", err)
	}
	var written []client.Object
	for _, was := range b.releases {
		rel := was.DeepCopy()
		rel.OwnerReferences = reowned(rel.OwnerReferences, b.app.UID, app.UID)
		if err := to.Create(ctx, anew(rel)); err != nil {
			return fmt.Errorf("restoring Release %s: %w", rel.Name, err)
		}
		rel.Status = was.Status
		written = append(written, rel)
	}
	if !status {
		return nil
	}
	app.Status = b.app.Status
	for _, o := range append(written, app) {
		if err := to.Status().Update(ctx, o); err != nil {
			return fmt.Errorf("restoring the status of %T %s: %w", o, o.GetName(), err)
		}
	}
	return nil
}

// again is an object without what the API server gave it.
func anew[T client.Object](o T) T {
	o.SetUID("")
	o.SetResourceVersion("")
	o.SetGeneration(0)
	o.SetCreationTimestamp(metav1.Time{})
	o.SetManagedFields(nil)
	return o
}

// reowned are references to an owner that has another UID now.
func reowned(refs []metav1.OwnerReference, was, is types.UID) []metav1.OwnerReference {
	out := slices.Clone(refs)
	for i := range out {
		if out[i].UID == was {
			out[i].UID = is
		}
	}
	return out
}
