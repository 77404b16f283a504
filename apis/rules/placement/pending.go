// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// This file stands in for the branch place-decide, and goes when that is merged.

// Select decides by a placement, or chooses by regions.
func Select(in Input) (Decision, error) {
	if in.Requirements.Placement == nil {
		chosen, err := Choose(in.App, in.Requirements, in.Clusters)
		return Decision{Wanted: len(chosen), Chosen: chosen}, err
	}
	return Decide(in), nil
}

// Stay says which clusters a Release with env keeps of newest, and whether all because the policy is the same.
func Stay(newest *shipper.Release, env *shipper.ReleaseEnvironment) (current []string, sticky bool) {
	if newest == nil {
		return nil, false
	}
	for name := range strings.SplitSeq(newest.Annotations[shipper.ReleaseClustersAnnotation], ",") {
		if name != "" {
			current = append(current, name)
		}
	}
	return current, equality.Semantic.DeepEqual(newest.Spec.Environment.ClusterRequirements, env.ClusterRequirements)
}

func pendingDecide(in Input) Decision {
	policy := in.Requirements.Placement
	var d Decision
	var fit []*shipper.Cluster
	for i := range in.Clusters {
		c := &in.Clusters[i]
		v := Verdict{Cluster: c.Name}
		switch stays := in.Sticky && slices.Contains(in.Current, c.Name); {
		case !c.DeletionTimestamp.IsZero():
			v.Reason, v.Message = shipper.PlacementLeaving, "it is being deleted"
		case stays:
			v.Chosen = true
		case policy.Type == shipper.PickFixed && !slices.Contains(policy.Clusters, c.Name):
			v.Reason = shipper.PlacementNotNamed
		case !shipper.ConditionTrue(c.Status.Conditions, shipper.ClusterJoined):
			v.Reason, v.Message = shipper.PlacementNotJoined, "it was never ready"
		case policy.Type != shipper.PickFixed && c.Spec.Scheduler.Unschedulable:
			v.Reason = shipper.PlacementUnschedulable
		case policy.Type != shipper.PickFixed && len(c.Spec.Taints) > 0:
			v.Reason, v.Message = shipper.PlacementTainted, "tainted "+c.Spec.Taints[0].Key
		case policy.Affinity != nil && !labelled(policy.Affinity.Required, c):
			v.Reason, v.Message = shipper.PlacementAffinityNotMet, "its labels match no required term"
		default:
			fit = append(fit, c)
		}
		d.Verdicts = append(d.Verdicts, v)
	}
	room := len(fit)
	if policy.Type == shipper.PickN {
		room = int(*policy.Count)
		for _, v := range d.Verdicts {
			if v.Chosen {
				room--
			}
		}
	}
	for i, c := range preferred(in.App, fit) {
		v := &d.Verdicts[slices.IndexFunc(d.Verdicts, func(v Verdict) bool { return v.Cluster == c.Name })]
		if v.Chosen = i < room; !v.Chosen {
			v.Reason = shipper.PlacementOutranked
			continue
		}
		if v.Affinity = 7; slices.Contains(in.Current, c.Name) {
			v.Affinity = 0
		}
	}
	for _, name := range policy.Clusters {
		if !slices.ContainsFunc(d.Verdicts, func(v Verdict) bool { return v.Cluster == name }) {
			d.Verdicts = append(d.Verdicts, Verdict{Cluster: name, Reason: shipper.PlacementNotJoined, Message: "there is no such Cluster"})
		}
	}
	slices.SortFunc(d.Verdicts, func(a, b Verdict) int { return strings.Compare(a.Cluster, b.Cluster) })
	for i, v := range d.Verdicts {
		if v.Chosen {
			d.Chosen = append(d.Chosen, v.Cluster)
			if d.Verdicts[i].Reason = shipper.PlacementPicked; slices.Contains(in.Current, v.Cluster) {
				d.Verdicts[i].Reason = shipper.PlacementKept
			}
		}
	}
	switch d.Wanted = len(d.Chosen); policy.Type {
	case shipper.PickN:
		d.Wanted = int(*policy.Count)
	case shipper.PickFixed:
		d.Wanted = len(policy.Clusters)
	}
	return d
}

func labelled(terms []shipper.ClusterTerm, c *shipper.Cluster) bool {
	return len(terms) == 0 || slices.ContainsFunc(terms, func(t shipper.ClusterTerm) bool {
		if t.LabelSelector != nil {
			for key, value := range t.LabelSelector.MatchLabels {
				if c.Labels[key] != value {
					return false
				}
			}
		}
		return true
	})
}

func (d Decision) pendingStatus() *shipper.ReleasePlacement {
	out := &shipper.ReleasePlacement{Wanted: int32(d.Wanted), Chosen: int32(len(d.Chosen))}
	for _, v := range d.Verdicts {
		if v.Chosen {
			out.Clusters = append(out.Clusters, shipper.ChosenCluster{Name: v.Cluster, Reason: v.Reason, AffinityScore: v.Affinity})
			continue
		}
		i := slices.IndexFunc(out.Rejected, func(r shipper.RejectedClusters) bool { return r.Reason == v.Reason })
		if i < 0 {
			i, out.Rejected = len(out.Rejected), append(out.Rejected, shipper.RejectedClusters{Reason: v.Reason, Message: v.Message})
		}
		out.Rejected[i].Count++
		out.Rejected[i].Examples = append(out.Rejected[i].Examples, v.Cluster)
	}
	return out
}

func (d Decision) pendingUnfulfilled() string {
	if len(d.Chosen) >= d.Wanted {
		return ""
	}
	var why []string
	for _, v := range d.Verdicts {
		if !v.Chosen && v.Message != "" {
			why = append(why, v.Cluster+": "+v.Message)
		}
	}
	return fmt.Sprintf("%d of %d clusters are found (%s)", len(d.Chosen), d.Wanted, strings.Join(why, "; "))
}
