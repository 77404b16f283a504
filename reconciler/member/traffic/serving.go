// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"

	rules "shipper.dev/shipper/apis/rules/traffic"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// Serving is what serves an Application in one cluster, as a pass over its traffic has found it. The zero value says that nothing serves.
type Serving struct {
	// unknown is true where that could not be read.
	unknown bool
	// pods are the ready endpoints of the production Services.
	pods sets.Set[string]
	// releases are those that have a TrafficTarget in the cluster, the oldest first.
	releases []releaseServing
}

// releaseServing is what serves of one Release.
type releaseServing struct {
	name string
	// share says that it lacks Pods also while it has fewer in the traffic of a Service than it is asked to.
	share rules.Share
	// surplus is true while more Pods are in the traffic of a Service than it is asked to have there.
	surplus bool
}

// Pods counts those of a list that serve.
func (s Serving) Pods(names []string) (count int32) {
	for _, name := range names {
		if s.pods.Has(name) {
			count++
		}
	}
	return count
}

// Unknown reports whether what serves could not be read.
func (s Serving) Unknown() bool { return s.unknown }

// MayRemove reports whether Pods of a Release that serve may go: its traffic is no more than it is asked to have, and nothing that it is to
// be replaced by is missing. Capacity and traffic are requested one after the other; a target that was written for another state of the
// cluster, such as one of a management cluster that was restored, asks for both at once.
func (s Serving) MayRemove(release string) bool {
	i := slices.IndexFunc(s.releases, func(r releaseServing) bool { return r.name == release })
	if s.unknown || i < 0 || s.releases[i].surplus {
		return false
	}
	shares := make([]rules.Share, len(s.releases))
	for n, r := range s.releases {
		shares[n] = r.share
	}
	return !rules.KeepsServing(i, shares)
}

// serving sums up what serves after plans were made for targets, the oldest first. Services that stay as they are until capacity removes
// their Pods do not count.
func (s observation) serving(
	valid []*shipper.TrafficTarget, plans map[*shipper.TrafficTarget][]Outcome, here ClusterState,
) Serving {
	out := Serving{pods: sets.New[string]()}
	for _, b := range s.backends {
		if b.service == nil || b.left {
			continue
		}
		for _, r := range b.app.Releases {
			for _, pod := range r.Pods {
				if pod.Serving {
					out.pods.Insert(pod.Name)
				}
			}
		}
	}
	for _, tt := range valid {
		one := releaseServing{name: releaseOf(tt)}
		for _, of := range plans[tt] {
			if of.want.AsFound || of.service == nil {
				continue
			}
			weighs := of.want.Weight > 0
			one.surplus = one.surplus || of.plan.Serving > of.plan.Needed
			one.share.Weighs = one.share.Weighs || weighs
			one.share.Ready = one.share.Ready || of.plan.Serving > 0
			one.share.Lacks = one.share.Lacks || weighs && (of.plan.Serving < of.plan.Needed || here.lacks(one.name))
		}
		out.releases = append(out.releases, one)
	}
	return out
}
