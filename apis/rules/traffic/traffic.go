// SPDX-License-Identifier: Apache-2.0

// Package traffic turns weights into Pods: how many Pods of a Release take traffic in one cluster, which of them, and
// what weight those that do amount to; and into what the Service of the Application selects, which is all Pods of the one
// Release that weighs anything, or those with a label. It only reads its arguments and counts in integers.
package traffic

import (
	"math"
	"slices"
	"strings"
)

// Pod is what the rule needs to know of one Pod.
type Pod struct {
	// Name of the Pod, unique among those given.
	Name string
	// Gone is true for a Pod that is terminating or finished: it counts nowhere.
	Gone bool
	// Ready is true while the Pod itself is ready.
	Ready bool
	// Labelled is true while the Pod carries the label that lets traffic in.
	Labelled bool
	// Serving is true while the Pod is a ready endpoint of the Service.
	Serving bool
}

// Release is one Release in one cluster.
type Release struct {
	// Name of the Release, unique in its Application.
	Name string
	// Weight of this Release.
	Weight uint32
	// TotalWeight is the sum of the weights of all Releases of the Application, this one included.
	TotalWeight uint64
	// AsFound is true while nobody has asked for any weight: the Pods that take traffic go on, and Weight means nothing.
	AsFound bool
	// AppPods is the number of Pods of the Application that are not gone, this Release's included; AppLabelled is how many
	// of them carry the label that lets traffic in.
	AppPods, AppLabelled int
	// Coming is the number of Pods of other Releases that are about to take traffic; the sum of their plans' Coming.
	Coming int
	// Unknown is true for a Release that says nothing of the cluster at all, as one that a backup did not have, or one that knows the
	// cluster by another name. It is as found, and leads nobody.
	Unknown bool
	// HookPods is true while Pods that must not serve pass for the Release's: the Service cannot select by Release then.
	HookPods bool
	// Foreign is true while Pods that are not of the Release carry its label and live: what selects by Release selects them too.
	Foreign bool
	// Awaited is true while Pods of it are asked for: where none is seen, they are late.
	Awaited bool
	// Pods of this Release.
	Pods []Pod
}

// Plan is what a Release has and needs in one cluster.
type Plan struct {
	// Needed is the number of Pods that should take traffic.
	Needed int
	// Labelled is the number of Pods that would take traffic if they were ready and known to the Service.
	Labelled int
	// Serving is the number of Pods that do take traffic.
	Serving int
	// NotReady is the number of labelled Pods that are not ready themselves.
	NotReady int
	// Coming is the number of ready Pods that should take traffic and do not yet.
	Coming int
	// Held is the number of Pods that stay in traffic, though no longer needed, until as many of other Releases have come:
	// what is served must not shrink in between.
	Held int
	// Late is true while none of the Pods that are to take traffic is seen, though some are asked for.
	Late bool
	// Enable names the Pods to let traffic into, Disable those to take it from. Both are sorted.
	Enable, Disable []string
	// Achieved is the weight that the serving Pods amount to; of a Release as found, what Found says.
	Achieved uint32
}

// Ready reports whether exactly the Pods needed take traffic and none has to be moved.
func (p Plan) Ready() bool {
	return p.Serving == p.Needed && p.Held == 0 && !p.Late && !p.Moves()
}

// Moves reports whether any Pod has to be moved in or out of traffic.
func (p Plan) Moves() bool {
	return len(p.Enable) > 0 || len(p.Disable) > 0
}

// For plans one Release: the Pods it needs are chosen ready ones first, among those the ones that take traffic already,
// then by name, so that a plan that was carried out is not changed by planning again.
func For(r Release) Plan {
	own := livingPods(r.Pods)
	if r.AsFound {
		return asFound(r, own)
	}
	plan := Plan{Needed: Needed(len(own), r.AppPods, r.Weight, r.TotalWeight), Late: r.Awaited && r.Weight > 0 && len(own) == 0}
	slices.SortFunc(own, byPreference)
	for i, pod := range own {
		switch wanted := i < plan.Needed; {
		case wanted && !pod.Labelled:
			plan.Enable = append(plan.Enable, pod.Name)
		case !wanted && pod.Labelled && pod.Ready && plan.Held < r.Coming:
			plan.Held++
		case !wanted && pod.Labelled:
			plan.Disable = append(plan.Disable, pod.Name)
		}
		if pod.Labelled {
			plan.Labelled++
			if !pod.Ready {
				plan.NotReady++
			}
		}
		if pod.Serving {
			plan.Serving++
		} else if pod.Ready && i < plan.Needed {
			plan.Coming++
		}
	}
	slices.Sort(plan.Enable)
	slices.Sort(plan.Disable)
	plan.Achieved = Achieved(plan.Serving, r.AppPods, r.TotalWeight)
	return plan
}

// Needed is min(own, ceil(all × weight / total)): how many of a Release's own Pods take traffic when the
// Application has all Pods. No weight at all means no traffic.
func Needed(own, all int, weight uint32, total uint64) int {
	if own <= 0 || all <= 0 || total == 0 {
		return 0
	}
	need := (uint64(all)*uint64(weight) + total - 1) / total
	return int(min(uint64(own), need))
}

// Achieved is serving / all × total, rounded half up: the weight that serving Pods amount to when the Application
// has all Pods and all weights sum to total.
func Achieved(serving, all int, total uint64) uint32 {
	if serving <= 0 || all <= 0 {
		return 0
	}
	weight := (2*uint64(serving)*total + uint64(all)) / (2 * uint64(all))
	return uint32(min(weight, math.MaxUint32))
}

// asFound plans to move no Pod.
func asFound(r Release, own []Pod) Plan {
	var plan Plan
	for _, pod := range own {
		if pod.Labelled {
			plan.Needed++
			plan.Labelled++
			if !pod.Ready {
				plan.NotReady++
			}
		}
		if pod.Serving {
			plan.Serving++
		}
	}
	plan.Achieved = Found(plan.Labelled, len(own), r.AppPods, r.AppLabelled)
	return plan
}

// Found is the percentage of an Application's traffic, rounded up, that labelled of a Release's own Pods take when the
// Application has all Pods and, in all Releases, appLabelled of them take traffic. A Release whose Pods all take it would
// take that of the Pods that do not, if it had more: with this percentage as its weight, and others with theirs, none has
// fewer Pods in traffic than it has.
func Found(labelled, own, all, appLabelled int) uint32 {
	if labelled <= 0 || all <= 0 {
		return 0
	}
	share := labelled
	if labelled == own {
		share = max(share, all-(appLabelled-labelled))
	}
	return uint32((100*share + all - 1) / all)
}

// LacksEndpoints reports whether the Service has no ready endpoints, though a Release is to serve: it has a weight, and Pods of it are
// requested.
func (a Application) LacksEndpoints(release string) bool {
	return a.Serving == 0 && slices.ContainsFunc(a.Releases, func(r Release) bool {
		return r.Name == release && r.Weight > 0 && !r.AsFound && r.Awaited
	})
}

// livingPods returns a new list of the Pods that are not gone.
func livingPods(pods []Pod) []Pod {
	out := make([]Pod, 0, len(pods))
	for _, pod := range pods {
		if !pod.Gone {
			out = append(out, pod)
		}
	}
	return out
}

// byPreference orders Pods by how gladly they take traffic.
func byPreference(a, b Pod) int {
	if a.Ready != b.Ready {
		return firstIf(a.Ready)
	}
	if a.Labelled != b.Labelled {
		return firstIf(a.Labelled)
	}
	return strings.Compare(a.Name, b.Name)
}

func firstIf(first bool) int {
	if first {
		return -1
	}
	return 1
}
