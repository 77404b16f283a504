// SPDX-License-Identifier: Apache-2.0

package override

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/labels"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// Bearing are the copies of all ResourceOverrides that bear on an Application, in the order in which they are applied. global is the
// namespace whose ResourceOverrides bear on all namespaces. What is being deleted bears on nothing. The result shares nothing with all.
func Bearing(app *shipper.Application, all []shipper.ResourceOverride, global string) []shipper.ReleaseOverride {
	var bearing []*shipper.ResourceOverride
	for i := range all {
		if o := &all[i]; Bears(o, app, global) {
			bearing = append(bearing, o)
		}
	}
	slices.SortFunc(bearing, func(a, b *shipper.ResourceOverride) int {
		return cmp.Or(cmp.Compare(group(a, global), group(b, global)), cmp.Compare(a.Spec.Priority, b.Spec.Priority),
			cmp.Compare(a.Name, b.Name))
	})
	var out []shipper.ReleaseOverride
	for _, o := range bearing {
		c := copyOf(o, global)
		out = append(out, *c.DeepCopy())
	}
	return out
}

// Bears reports whether a ResourceOverride bears on an Application.
func Bears(o *shipper.ResourceOverride, app *shipper.Application, global string) bool {
	return (o.Namespace == app.Namespace || o.Namespace == global) && o.DeletionTimestamp == nil && selects(&o.Spec, app)
}

// IsMandatory reports whether a ResourceOverride is applied after all others, and to rollbacks.
func IsMandatory(o *shipper.ResourceOverride, global string) bool { return group(o, global) == 2 }

// copyOf is what a Release copies. It shares resources and rules.
func copyOf(o *shipper.ResourceOverride, global string) shipper.ReleaseOverride {
	return shipper.ReleaseOverride{
		Name: o.Namespace + "/" + o.Name, Global: o.Namespace == global, Resources: o.Spec.Resources, Rules: o.Spec.Rules,
		Mandatory: IsMandatory(o, global), RequestedBy: o.Annotations[shipper.OverrideRequestedByAnnotation],
		EarlierWriters: EarlierWriters(o),
	}
}

// Restored are the copies of a Release that restores another one, which has then. Of the mandatory ones it has those of now: a rollback
// escapes none of them. The result shares nothing with then.
func Restored(then, now []shipper.ReleaseOverride) []shipper.ReleaseOverride {
	var out, mandatory []shipper.ReleaseOverride
	replaced := map[string]bool{}
	for i := range now {
		if now[i].Mandatory {
			mandatory, replaced[now[i].Name] = append(mandatory, now[i]), true
		}
	}
	for i := range then {
		if !then[i].Mandatory && !replaced[then[i].Name] {
			out = append(out, *then[i].DeepCopy())
		}
	}
	return append(out, mandatory...)
}

// group is 0 for the global ResourceOverrides that others may change, 1 for those of the Application's namespace, 2 for mandatory ones.
// Outside the global namespace mandatory means nothing: it may have been written while no webhook was called.
func group(o *shipper.ResourceOverride, global string) int {
	switch {
	case o.Namespace != global:
		return 1
	case o.Spec.Mandatory:
		return 2
	}
	return 0
}

// selects reports whether a ResourceOverride of a namespace that fits bears on an Application. A selector that cannot be read selects none.
func selects(spec *shipper.ResourceOverrideSpec, app *shipper.Application) bool {
	if len(spec.ApplicationNames) > 0 {
		return slices.Contains(spec.ApplicationNames, app.Name)
	}
	return spec.Applications == nil || parse(spec.Applications).Matches(labels.Set(app.Labels))
}
