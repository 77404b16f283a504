// SPDX-License-Identifier: Apache-2.0

package resourceoverride

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"shipper.dev/shipper/apis/rules/override"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/webhook/response"
)

// checkRoom returns an error if an Application of the namespace could have no Release with the ResourceOverride beside the others that bear
// on it. What is not compared in time is left to the reconciler, which reports it in the Application's status.
func (w *Webhook) checkRoom(ctx context.Context, o *shipper.ResourceOverride, a *response.Response) field.ErrorList {
	ctx, cancel := context.WithTimeout(ctx, tryTimeout)
	defer cancel()
	apps, err := w.State.Applications(o.Namespace)
	var all []shipper.ResourceOverride
	if err == nil {
		all, err = w.State.OverridesNow(ctx, o.Namespace, w.GlobalNamespace)
	}
	if err != nil {
		a.Warn("not compared with other ResourceOverrides: %v", err)
		return nil
	}
	all = slices.DeleteFunc(all, func(other shipper.ResourceOverride) bool {
		return other.Namespace == o.Namespace && other.Name == o.Name
	})
	alone, together := []shipper.ResourceOverride{*o}, append(all, *o)
	for _, meta := range apps {
		app := &shipper.Application{ObjectMeta: meta.ObjectMeta}
		if ctx.Err() != nil || len(override.Bearing(app, alone, w.GlobalNamespace)) == 0 {
			continue
		}
		if err := override.CheckSize(override.Bearing(app, together, w.GlobalNamespace)); err != nil {
			return field.ErrorList{field.Invalid(field.NewPath("spec"), "", fmt.Sprintf("no Release of Application %s could be created: %v",
				app.Name, err))}
		}
	}
	return nil
}
