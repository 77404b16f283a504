// SPDX-License-Identifier: Apache-2.0

package resourceoverride

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"shipper.dev/shipper/apis/rules/override"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/webhook/authz"
	"shipper.dev/shipper/webhook/response"
)

// count returns the other ResourceOverrides of the namespace, and refuses one more than these may be. Those that exist can be changed. What
// is not listed in time is a warning for an update.
func (w *Webhook) count(
	ctx context.Context, o *shipper.ResourceOverride, created bool, a *response.Response,
) ([]override.Outline, error) {
	others, err := w.State.OverridesNow(ctx, o.Namespace)
	if err != nil && created {
		return nil, response.Later(err.Error(), authz.RetryAfter)
	}
	if created && len(others) >= override.MaxInNamespace {
		return nil, response.Invalidate(kind, o.Name, field.ErrorList{field.Forbidden(field.NewPath("metadata", "namespace"), fmt.Sprintf(
			"namespace %s has %d ResourceOverrides, and may not have more: delete some, or add the rules to one that exists", o.Namespace,
			override.MaxInNamespace))})
	}
	if err != nil {
		a.Warn("not compared with other ResourceOverrides: %v", err)
	}
	if len(others) > override.MaxInNamespace {
		a.Warn("not compared with all other ResourceOverrides: namespace %s has more than %d", o.Namespace, override.MaxInNamespace)
	}
	return slices.DeleteFunc(slices.Clone(others), func(other override.Outline) bool { return other.Name == o.Name }), nil
}

// checkRoom returns an error if an Application of the namespace could have no Release with the ResourceOverride beside the others that bear
// on it. What is not compared in time is left to the reconciler, which reports it in the Application's status.
func (w *Webhook) checkRoom(
	ctx context.Context, o *shipper.ResourceOverride, others []override.Outline, a *response.Response,
) field.ErrorList {
	ctx, cancel := context.WithTimeout(ctx, tryTimeout)
	defer cancel()
	apps, err := w.State.Applications(o.Namespace)
	var global []override.Outline
	if err == nil {
		global, err = w.State.OverridesNow(ctx, w.GlobalNamespace)
	}
	if err != nil {
		a.Warn("not compared with other ResourceOverrides: %v", err)
		return nil
	}
	own, all := override.OutlineOf(o, w.GlobalNamespace), slices.Concat(others, global)
	for _, meta := range apps {
		app := &shipper.Application{ObjectMeta: meta.ObjectMeta}
		if ctx.Err() != nil || !override.Bears(o, app, w.GlobalNamespace) {
			continue
		}
		if err := w.room(own, all, app); err != nil {
			return field.ErrorList{field.Invalid(field.NewPath("spec"), "", fmt.Sprintf("no Release of Application %s could be created: %v",
				app.Name, err))}
		}
	}
	return nil
}

// checkMandatory returns an error if a mandatory ResourceOverride has no room beside the other ones, which may all bear on an Application.
// Each of its Releases keeps them, also one that a rollback makes.
func (w *Webhook) checkMandatory(o *shipper.ResourceOverride, others []override.Outline) field.ErrorList {
	if !override.IsMandatory(o, w.GlobalNamespace) {
		return nil
	}
	mandatory := slices.DeleteFunc(slices.Clone(others), func(other override.Outline) bool {
		return !override.IsMandatory(&other.ResourceOverride, w.GlobalNamespace)
	})
	if err := w.room(override.OutlineOf(o, w.GlobalNamespace), mandatory, nil); err != nil {
		return field.ErrorList{field.Invalid(field.NewPath("spec", "mandatory"), true, fmt.Sprintf(
			"an Application could have no Release, not even by a rollback: %v", err))}
	}
	return nil
}

// room returns an error if own and those of others that bear on an Application take more than a Release may keep. Without one all do.
func (w *Webhook) room(own override.Outline, others []override.Outline, app *shipper.Application) error {
	var room override.Room
	room.Add(override.IsMandatory(&own.ResourceOverride, w.GlobalNamespace), own.Size)
	for i := range others {
		if o := &others[i]; app == nil || override.Bears(&o.ResourceOverride, app, w.GlobalNamespace) {
			room.Add(override.IsMandatory(&o.ResourceOverride, w.GlobalNamespace), o.Size)
		}
	}
	return room.Check()
}
