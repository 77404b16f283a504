// SPDX-License-Identifier: Apache-2.0

package override

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

const (
	// MaxBytes bounds the spec of a ResourceOverride, as JSON.
	MaxBytes = 64 << 10
	// MaxPinnedBytes bounds the copies that a Release keeps, as JSON: its InstallationTarget has them, too.
	MaxPinnedBytes = 512 << 10
	// MaxPinned bounds the copies that a Release keeps. Its CRD has the same bound.
	MaxPinned = 500
	// MaxOperations bounds the operations of all patches of a Release, which may be carried out for each object.
	MaxOperations = 1000
)

// Bearing are the copies of all ResourceOverrides that bear on an Application, in the order in which they are applied. global is the
// namespace whose ResourceOverrides bear on all namespaces. What is being deleted bears on nothing. The result shares nothing with all.
func Bearing(app *shipper.Application, all []shipper.ResourceOverride, global string) []shipper.ReleaseOverride {
	var bearing []*shipper.ResourceOverride
	for i := range all {
		o := &all[i]
		if (o.Namespace == app.Namespace || o.Namespace == global) && o.DeletionTimestamp == nil && selects(&o.Spec, app) {
			bearing = append(bearing, o)
		}
	}
	slices.SortFunc(bearing, func(a, b *shipper.ResourceOverride) int {
		return cmp.Or(cmp.Compare(group(a, global), group(b, global)), cmp.Compare(a.Spec.Priority, b.Spec.Priority),
			cmp.Compare(a.Name, b.Name))
	})
	var out []shipper.ReleaseOverride
	for _, o := range bearing {
		spec := o.Spec.DeepCopy()
		out = append(out, shipper.ReleaseOverride{
			Name: o.Namespace + "/" + o.Name, Global: o.Namespace == global, Resources: spec.Resources, Rules: spec.Rules,
			Mandatory: group(o, global) == 2, RequestedBy: o.Annotations[shipper.OverrideRequestedByAnnotation],
		})
	}
	return out
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
	return spec.Applications == nil || matches(spec.Applications, labels.Set(app.Labels))
}

func matches(selector *metav1.LabelSelector, of labels.Labels) bool {
	parsed, err := metav1.LabelSelectorAsSelector(selector)
	return err == nil && parsed.Matches(of)
}

// CheckSize returns an error if the copies of a Release are more, larger or longer than it may keep.
func CheckSize(pinned []shipper.ReleaseOverride) error {
	const fix = "delete some, or let them name fewer Applications"
	if len(pinned) > MaxPinned {
		return fmt.Errorf("%d ResourceOverrides bear on the Application, more than the %d that a Release may keep: %s",
			len(pinned), MaxPinned, fix)
	}
	n := 0
	for i := range pinned {
		n += operations(pinned[i].Rules)
	}
	if n > MaxOperations {
		return fmt.Errorf("%d ResourceOverrides bear on the Application and have %d operations, more than the %d that a Release may keep: %s",
			len(pinned), n, MaxOperations, fix)
	}
	text, err := json.Marshal(pinned)
	if err != nil {
		return fmt.Errorf("encoding overrides: %w", err)
	}
	if len(text) > MaxPinnedBytes {
		return fmt.Errorf("%d ResourceOverrides bear on the Application and take %d bytes, more than the %d that a Release may keep: %s",
			len(pinned), len(text), MaxPinnedBytes, fix)
	}
	return nil
}

// operations is how many operations rules have in their patches.
func operations(rules []shipper.OverrideRule) int {
	n := 0
	for i := range rules {
		n += len(rules[i].Patch)
	}
	return n
}
