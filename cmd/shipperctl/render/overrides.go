// SPDX-License-Identifier: Apache-2.0

package render

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"shipper.dev/shipper/apis/rules/override"
	"shipper.dev/shipper/apis/rules/stamp"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// copyOverrides gives a Release that would be created the ResourceOverrides that bear on its Application now, as far as the user may read
// them. unread names the namespaces in which the user may not.
func copyOverrides(
	ctx context.Context, c client.Reader, app *shipper.Application, existing []*shipper.Release, rel *shipper.Release,
) (unread []string, err error) {
	namespaces := []string{app.Namespace}
	if app.Namespace != shipper.GlobalBlocksNamespace {
		namespaces = append(namespaces, shipper.GlobalBlocksNamespace)
	}
	var all []shipper.ResourceOverride
	for _, namespace := range namespaces {
		var list shipper.ResourceOverrideList
		switch err := c.List(ctx, &list, client.InNamespace(namespace)); {
		case meta.IsNoMatchError(err): // an earlier version is installed, which has none
			return nil, nil
		case apierrors.IsForbidden(err):
			unread = append(unread, namespace)
		case err != nil:
			return nil, fmt.Errorf("listing ResourceOverrides in namespace %s: %w", namespace, err)
		}
		all = append(all, list.Items...)
	}
	rel.Spec.Overrides = override.Bearing(app, all, shipper.GlobalBlocksNamespace)
	if goal := stamp.RestoredBy(stamp.Own(app, existing), rel); goal != nil {
		rel.Spec.Overrides = override.Restored(goal.Spec.Overrides, rel.Spec.Overrides)
	}
	return unread, nil
}
