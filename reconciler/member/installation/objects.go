// SPDX-License-Identifier: Apache-2.0

package installation

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	kstatus "sigs.k8s.io/cli-utils/pkg/kstatus/status"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/fleet"
	"shipper.dev/shipper/reconciler/member/survey"
)

// maxSaid bounds a text about an object in a status, in bytes.
const maxSaid = survey.MaxText

// survey looks at the objects that the anchor lists and the target wrote. Another Release reports the objects that it has taken over
// of. Nothing is said when they cannot all be read.
func (i *installer) survey(ctx context.Context) *shipper.InstalledObjects {
	if i.anchor == nil || i.anchor.deleting || i.anchor.claim != nil {
		return nil
	}
	all := make([]survey.Seen, 0, len(i.anchor.inventory))
	for _, entry := range i.anchor.inventory {
		live, health, err := i.member.Health(ctx, entry.gvk(), entry.key())
		switch {
		case entry.InPlace && apierrors.IsNotFound(err): // its step has not come
			continue
		case apierrors.IsNotFound(err), meta.IsNoMatchError(err):
			health = i.absent(entry)
		case err != nil:
			return nil
		case live.Labels[shipper.OwnedByLabel] != i.it.Name:
			continue
		}
		if health.Reason == shipper.AddressAwaited { // the TrafficTarget reports it, if the Service is for production
			health = fleet.Health{Status: string(kstatus.CurrentStatus)}
		}
		all = append(all, survey.Seen{APIVersion: entry.APIVersion, Kind: entry.Kind, Name: entry.Name, Health: health})
	}
	out := survey.Sum(all)
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

// Health reports whether an object's event may change what a status says of installed objects.
func Health(e fleet.Event) bool {
	o := e.Object()
	return o.GetLabels()[shipper.OwnedByLabel] != "" && o.GetAnnotations()[shipper.InstalledDigestAnnotation] != ""
}
