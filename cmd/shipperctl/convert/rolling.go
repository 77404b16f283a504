// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"regexp"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// rollingUpdate has KubeFleet's bounds of clusters that change at the same time. Their defaults are Shipper's.
type rollingUpdate struct {
	MaxUnavailable           *intstr.IntOrString `json:"maxUnavailable"`
	MaxSurge                 *intstr.IntOrString `json:"maxSurge"`
	UnavailablePeriodSeconds *int32              `json:"unavailablePeriodSeconds"`
}

// maxClusters is the most that a bound can be.
const maxClusters = 1000

// clustersForm is the format of a bound that is a text.
var clustersForm = regexp.MustCompile(`^((100|[0-9]{1,2})%|[0-9]{1,4})$`)

func (r *rollingUpdate) convert(d document, report *report) (*shipper.RolloutStrategy, error) {
	const at = "spec.strategy.rollingUpdate."
	out := &shipper.RolloutStrategy{}
	unavailable, err := clusterBound(d, at+"maxUnavailable", r.MaxUnavailable)
	if err != nil {
		return nil, err
	}
	surge, err := clusterBound(d, at+"maxSurge", r.MaxSurge)
	if err != nil {
		return nil, err
	}
	if isNone(unavailable) {
		report.add(at+"maxUnavailable", "0 becomes 1: objects are changed in place, one cluster at a time at least")
		unavailable = new(intstr.FromInt32(1))
	}
	if isNone(surge) {
		report.add(at+"maxSurge", "0 counts as 1: a cluster that replaces another gets the content before the other loses it")
	}
	if unavailable != nil || surge != nil {
		out.Rolling = &shipper.RollingClusters{MaxUnavailable: unavailable, MaxSurge: surge}
	}
	if seconds := r.UnavailablePeriodSeconds; seconds != nil {
		if *seconds < 0 {
			return nil, d.failed(at+"unavailablePeriodSeconds", "is less than 0")
		}
		out.UnavailablePeriod = bounded(time.Duration(*seconds)*time.Second, at+"unavailablePeriodSeconds", report)
	}
	return out, nil
}

// clusterBound is a number of clusters or a percentage of them. KubeFleet takes a number as a text, too.
func clusterBound(d document, field string, n *intstr.IntOrString) (*intstr.IntOrString, error) {
	if n == nil {
		return nil, nil
	}
	bound := *n
	if n.Type == intstr.String {
		if !clustersForm.MatchString(n.StrVal) {
			return nil, d.failed(field, "is %q, and must be a number of clusters, or a percentage from 0%% to 100%%", n.StrVal)
		}
		bound = intstr.Parse(n.StrVal)
	}
	if bound.Type == intstr.Int && (bound.IntVal < 0 || bound.IntVal > maxClusters) {
		return nil, d.failed(field, "is %d, and must be from 0 to %d", bound.IntVal, maxClusters)
	}
	return &bound, nil
}

// isNone reports whether a bound is given as 0.
func isNone(n *intstr.IntOrString) bool {
	return n != nil && (n.Type == intstr.Int && n.IntVal == 0 || n.Type == intstr.String && (n.StrVal == "0%" || n.StrVal == "00%"))
}
