// SPDX-License-Identifier: Apache-2.0

// Package survey sums up the health of objects in a cluster for a status of bounded size.
package survey

import (
	"cmp"
	"slices"

	kstatus "sigs.k8s.io/cli-utils/pkg/kstatus/status"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/fleet"
	"shipper.dev/shipper/reconciler/fleet/report"
)

// Bounds of what a status says of objects, whatever a Release brings. MaxText is in bytes.
const (
	MaxUnhealthy = 10
	maxKinds     = 50
	MaxText      = 256
)

// Seen is one object and how it is. Namespace is empty where it is the target's.
type Seen struct {
	APIVersion, Kind, Namespace, Name string
	Health                            fleet.Health
}

// Sum counts objects by their kinds, and names some that are not healthy, those first that have failed.
func Sum(all []Seen) *shipper.InstalledObjects {
	out := &shipper.InstalledObjects{}
	kinds := map[shipper.InstalledKind]*shipper.InstalledKind{}
	var bad []shipper.UnhealthyObject
	for _, s := range all {
		key := shipper.InstalledKind{APIVersion: s.APIVersion, Kind: s.Kind}
		if kinds[key] == nil {
			kinds[key] = &shipper.InstalledKind{APIVersion: s.APIVersion, Kind: s.Kind}
		}
		out.Total++
		kinds[key].Total++
		if s.Health.Healthy() {
			out.Healthy++
			kinds[key].Healthy++
			continue
		}
		bad = append(bad, shipper.UnhealthyObject{
			APIVersion: s.APIVersion, Kind: s.Kind, Namespace: s.Namespace, Name: s.Name, Status: s.Health.Status,
			Reason: report.Shorten(s.Health.Reason, MaxText), Message: report.Shorten(s.Health.Message, MaxText),
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
	out.Unhealthy = bad[:min(len(bad), MaxUnhealthy)]
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
