// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"shipper.dev/shipper/apis/rules/override"
	"shipper.dev/shipper/apis/rules/stamp"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// copyOverrides gives a new Release the ResourceOverrides that bear on its Application now. A rollback has those of the Release that it
// restores, but the mandatory ones of now. They are read from the API server: a user applies them and the Application together, and a cache
// may show the latter first.
func (r *pass) copyOverrides(ctx context.Context, s *scope, rel *shipper.Release) error {
	var all []shipper.ResourceOverride
	namespaces := []string{s.app.Namespace}
	if r.global != "" && r.global != s.app.Namespace {
		namespaces = append(namespaces, r.global)
	}
	for _, namespace := range namespaces {
		var list shipper.ResourceOverrideList
		if err := r.live.List(ctx, &list, client.InNamespace(namespace)); err != nil {
			return fmt.Errorf("listing resource overrides in namespace %s: %w", namespace, err)
		}
		all = append(all, list.Items...)
	}
	rel.Spec.Overrides = override.Bearing(s.app, all, r.global)
	if goal := restoredBy(s, rel); goal != nil {
		rel.Spec.Overrides = override.Restored(goal.Spec.Overrides, rel.Spec.Overrides)
	}
	return override.CheckSize(rel.Spec.Overrides)
}

// restoredBy is the Release that a new one restores by a rollback; nil for none. The annotation alone decides nothing: users can write it
// while no webhook is called.
func restoredBy(s *scope, rel *shipper.Release) *shipper.Release {
	name := rel.Annotations[shipper.ReleaseRollbackOfAnnotation]
	if name == "" {
		return nil
	}
	for _, old := range stamp.Own(s.app, s.history.All) {
		if old.Name == name && stamp.SameTemplate(&old.Spec.Environment, &rel.Spec.Environment) {
			return old
		}
	}
	return nil
}
