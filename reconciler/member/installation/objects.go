// SPDX-License-Identifier: Apache-2.0

package installation

import (
	"cmp"
	"context"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	kstatus "sigs.k8s.io/cli-utils/pkg/kstatus/status"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/fleet"
	"shipper.dev/shipper/reconciler/fleet/report"
)

// Bounds of what status says of objects, whatever a chart brings.
const (
	maxUnhealthy = 10
	maxKinds     = 50
	maxSaid      = 256
)

// seen is one object of a target and how it is.
type seen struct {
	item   item
	health fleet.Health
}

// survey looks at the objects that the anchor lists and the target wrote. Another Release reports the objects that it has taken over
// of. Nothing is said when they cannot all be read.
func (i *installer) survey(ctx context.Context) *shipper.InstalledObjects {
	if i.anchor == nil || i.anchor.deleting || i.anchor.claim != nil {
		return nil
	}
	all := make([]seen, 0, len(i.anchor.inventory))
	for _, entry := range i.anchor.inventory {
		live, health, err := i.member.Health(ctx, entry.gvk(), entry.key())
		switch {
		case apierrors.IsNotFound(err), meta.IsNoMatchError(err):
			health = i.absent(entry)
		case err != nil:
			return nil
		case live.Labels[shipper.OwnedByLabel] != i.it.Name:
			continue
		}
		all = append(all, seen{entry, health})
	}
	out := summed(all)
	for n := range out.Unhealthy {
		o := &out.Unhealthy[n]
		i.withheld(item{APIVersion: o.APIVersion, Kind: o.Kind, Name: o.Name}, o)
	}
	return out
}

// noteWritten records that this pass wrote an object.
func (i *installer) noteWritten(entry item) {
	if i.written == nil {
		i.written = map[item]bool{}
	}
	entry.Digest = ""
	i.written[entry] = true
}

// absent is the health of an object that the cache lacks: in progress if this pass wrote it, because the watch has not delivered it yet.
func (i *installer) absent(entry item) fleet.Health {
	if entry.Digest = ""; i.written[entry] {
		return fleet.Health{Status: string(kstatus.InProgressStatus)}
	}
	return fleet.Health{Status: string(kstatus.NotFoundStatus)}
}

// summed counts objects by their kinds, and names some that are not healthy, those first that have failed.
func summed(all []seen) *shipper.InstalledObjects {
	out := &shipper.InstalledObjects{}
	kinds := map[shipper.InstalledKind]*shipper.InstalledKind{}
	var bad []shipper.UnhealthyObject
	for _, s := range all {
		key := shipper.InstalledKind{APIVersion: s.item.APIVersion, Kind: s.item.Kind}
		if kinds[key] == nil {
			kinds[key] = &shipper.InstalledKind{APIVersion: s.item.APIVersion, Kind: s.item.Kind}
		}
		out.Total++
		kinds[key].Total++
		if s.health.Healthy() {
			out.Healthy++
			kinds[key].Healthy++
			continue
		}
		bad = append(bad, shipper.UnhealthyObject{
			APIVersion: s.item.APIVersion, Kind: s.item.Kind, Name: s.item.Name, Status: s.health.Status,
			Reason: report.Shorten(s.health.Reason, maxSaid), Message: report.Shorten(s.health.Message, maxSaid),
		})
	}
	for _, k := range kinds {
		out.Kinds = append(out.Kinds, *k)
	}
	slices.SortFunc(out.Kinds, func(a, b shipper.InstalledKind) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.APIVersion, b.APIVersion))
	})
	out.Kinds = out.Kinds[:min(len(out.Kinds), maxKinds)]
	slices.SortStableFunc(bad, func(a, b shipper.UnhealthyObject) int { return cmp.Compare(severity(a.Status), severity(b.Status)) })
	out.Unhealthy = bad[:min(len(bad), maxUnhealthy)]
	return out
}

// severity puts what has failed before what only lasts.
func severity(s string) int {
	switch kstatus.Status(s) {
	case kstatus.FailedStatus:
		return 0
	case kstatus.UnknownStatus:
		return 2
	}
	return 1
}

// Health reports whether an object's event may change what a status says of installed objects.
func Health(e fleet.Event) bool {
	o := e.Object()
	return o.GetLabels()[shipper.OwnedByLabel] != "" && o.GetAnnotations()[shipper.InstalledDigestAnnotation] != ""
}
