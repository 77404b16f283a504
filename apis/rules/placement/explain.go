// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"cmp"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"

	"shipper.dev/shipper/apis/rules/stamp"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// Select chooses clusters by the placement of the requirements, or by their regions. For a placement it never fails. For regions
// every error is an *Error, as from Choose: then the Decision has no Chosen, and its Verdicts are those of Explain.
func Select(in Input) (Decision, error) {
	if in.Requirements.Placement != nil {
		return Decide(in), nil
	}
	d := Explain(in.App, in.Requirements, in.Clusters)
	var err error
	d.Chosen, err = Choose(in.App, in.Requirements, in.Clusters)
	return d, err
}

// Explain says of each cluster why Choose takes it or not. Where a region has fewer clusters than wanted, it has those that there
// are as Picked, although Choose fails.
func Explain(app string, req shipper.ClusterRequirements, clusters []shipper.Cluster) Decision {
	d := Decision{Verdicts: make([]Verdict, len(clusters))}
	wanted := map[string]int{}
	for _, r := range regionsOf(req) {
		wanted[r.name] = r.wanted
		d.Wanted += r.wanted
	}
	verdicts := make(map[string]*Verdict, len(clusters))
	fit := map[string][]*shipper.Cluster{}
	for i, c := range sorted(clusters) {
		v := &d.Verdicts[i]
		v.Cluster = c.Name
		verdicts[c.Name] = v
		_, named := wanted[c.Spec.Region]
		if v.Reason, v.Message = unfitForRegions(c, req, named); v.Reason == "" {
			fit[c.Spec.Region] = append(fit[c.Spec.Region], c)
		}
	}
	for name, inRegion := range fit {
		for i, c := range preferred(app, inRegion) {
			v := verdicts[c.Name]
			if i < wanted[name] {
				v.Chosen, v.Reason = true, shipper.PlacementPicked
				continue
			}
			v.Reason = shipper.PlacementOutranked
			v.Message = fmt.Sprintf("region %s wants %d, and others rank higher: raise its replicas", quoted(name), wanted[name])
		}
	}
	d.Chosen = chosenOf(d.Verdicts)
	return d
}

// unfitForRegions returns why Choose cannot take the cluster; an empty reason when it can.
func unfitForRegions(c *shipper.Cluster, req shipper.ClusterRequirements, named bool) (shipper.PlacementReason, string) {
	switch {
	case !c.DeletionTimestamp.IsZero():
		return shipper.PlacementLeaving, leaving
	case !named:
		return shipper.PlacementNotNamed, "clusterRequirements.regions does not name its region " + quoted(c.Spec.Region)
	case c.Spec.Scheduler.Unschedulable:
		return shipper.PlacementUnschedulable, unschedulable
	}
	if taints := untolerated(c.Spec.Taints, nil); len(taints) > 0 {
		return shipper.PlacementTainted, tainted(taints) + ": regions tolerate no taint; use a placement with tolerations"
	}
	if message := capabilityMissing(c, req.Capabilities); message != "" {
		return shipper.PlacementCapabilityMissing, message
	}
	return "", ""
}

// Stay returns the clusters of the newest Release of an Application, sorted, and whether they were chosen by the requirements of
// env, so that they are kept. Without a Release, or before it has clusters, there are none.
func Stay(newest *shipper.Release, env *shipper.ReleaseEnvironment) (current []string, sticky bool) {
	if newest == nil {
		return nil, false
	}
	was, is := newest.Spec.Environment.ClusterRequirements.DeepCopy(), env.ClusterRequirements.DeepCopy()
	fillIn(was.Placement)
	fillIn(is.Placement)
	return stamp.Clusters(newest), equality.Semantic.DeepEqual(was, is)
}

// fillIn writes the defaults, so that a manifest that leaves one out is the same as what is stored of it.
func fillIn(p *shipper.Placement) {
	if p == nil {
		return
	}
	p.Type = cmp.Or(p.Type, shipper.PickAll)
	for i := range p.TopologySpreadConstraints {
		c := &p.TopologySpreadConstraints[i]
		c.MaxSkew, c.WhenUnsatisfiable = cmp.Or(c.MaxSkew, 1), cmp.Or(c.WhenUnsatisfiable, shipper.DoNotSchedule)
	}
	for i := range p.Tolerations {
		p.Tolerations[i].Operator = cmp.Or(p.Tolerations[i].Operator, shipper.TolerationEqual)
	}
}
