// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"k8s.io/apimachinery/pkg/util/sets"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// Serving is what serves an Application in one cluster, as a pass over its traffic has found it. The zero value says that nothing serves.
type Serving struct {
	// unknown is true where that could not be read.
	unknown bool
	// pods are the ready endpoints of the production Services.
	pods sets.Set[string]
	// releases are those that have a TrafficTarget in the cluster.
	releases map[string]releaseServing
}

// releaseServing is what serves of one Release.
type releaseServing struct {
	// lacks is true while the Release has less than it is asked to: Pods, or Pods in the traffic of a Service.
	lacks bool
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

// MayRemove reports whether Pods of a Release that serve may go: its traffic is no more than it is asked to have, and all others that are
// asked to serve do. Capacity and traffic are requested one after the other; a target that was written for another state of the cluster,
// such as one of a management cluster that was restored, asks for both at once.
func (s Serving) MayRemove(release string) bool {
	own, known := s.releases[release]
	if s.unknown || !known || own.surplus {
		return false
	}
	for name, other := range s.releases {
		if name != release && other.lacks {
			return false
		}
	}
	return true
}

// serving sums up what serves after plans were made. Services that stay as they are until capacity removes their Pods do not count.
func (s observation) serving(
	valid []*shipper.TrafficTarget, plans map[*shipper.TrafficTarget][]Outcome, here ClusterState,
) Serving {
	out := Serving{pods: sets.New[string](), releases: map[string]releaseServing{}}
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
		var one releaseServing
		for _, of := range plans[tt] {
			if of.want.AsFound || of.service == nil {
				continue
			}
			one.surplus = one.surplus || of.plan.Serving > of.plan.Needed
			one.lacks = one.lacks || of.want.Weight > 0 && (of.plan.Serving < of.plan.Needed || here.lacks(releaseOf(tt)))
		}
		out.releases[releaseOf(tt)] = one
	}
	return out
}
