// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"cmp"
	"encoding/json"
	"math"
	"slices"

	"shipper.dev/shipper/apis/rules/preview"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart/lots"
)

// workloadView is a workload of a Release whose objects are named by Application.
type workloadView struct {
	preview.Workload `json:",inline"`
	// Lot says what becomes of it, and at which step.
	Lot string `json:"lot"`
}

// workloadsOf are the workloads of a Release, in the order of the reports of clusters that are not ready, which have the worst first. None
// if there is a single Deployment, or if its CapacityTarget does not list them.
func workloadsOf(ct *shipper.CapacityTarget, rel *shipper.Release) []workloadView {
	var all []preview.Workload
	if ct == nil || json.Unmarshal([]byte(ct.Annotations[shipper.WorkloadsAnnotation]), &all) != nil {
		return nil
	}
	if len(all) < 2 && !slices.ContainsFunc(all, func(w preview.Workload) bool { return w.InPlace }) {
		return nil
	}
	suffix := lots.Suffix(lots.Release{App: rel.Labels[shipper.AppLabel], Name: rel.Name})
	rank := func(w preview.Workload) int {
		name, at := w.Name, math.MaxInt
		if !w.InPlace {
			name = lots.Name(w.Name, suffix, lots.MaxLabel)
		}
		for _, c := range ct.Status.Clusters {
			i := slices.IndexFunc(c.Reports, func(r shipper.ClusterCapacityReport) bool { return r.Owner.Name == name })
			if i >= 0 && !shipper.ConditionTrue(c.Conditions, shipper.TargetReady) {
				at = min(at, i)
			}
		}
		return at
	}
	slices.SortStableFunc(all, func(a, b preview.Workload) int { return cmp.Compare(rank(a), rank(b)) })
	out := make([]workloadView, len(all))
	for i, w := range all {
		out[i] = workloadView{w, w.Lot(rel.Spec.Environment.Strategy)}
	}
	return out
}

// workloads has a line for each workload.
func (p *View) workloads() (out []string) {
	for _, w := range p.Workloads {
		out = append(out, w.String()+": "+w.Lot)
	}
	return out
}
