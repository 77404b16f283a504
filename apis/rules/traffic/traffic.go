// SPDX-License-Identifier: Apache-2.0

// Package traffic turns weights into Pods: how many Pods of a Release take traffic in one cluster, which of them, and the
// weight that these amount to. It also decides the selector of the Application's Service: all Pods of the one Release with a
// weight, or the Pods with a label. It only reads its arguments and counts in integers.
package traffic

import (
	"math"
	"slices"
	"strings"
)

// Pod is the state of one Pod.
type Pod struct {
	// Name of the Pod, unique among those given.
	Name string
	// Gone is true for a Pod that is terminating or finished: it does not count.
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
	// AsFound is true until a weight is requested: the Pods that take traffic continue, and Weight has no meaning.
	AsFound bool
	// AppPods is the number of Pods of the Application that are not gone, this Release's included; AppLabelled is how many
	// of them carry the label that lets traffic in.
	AppPods, AppLabelled int
	// Coming is the number of Pods of other Releases that are about to take traffic; the sum of their plans' Coming.
	Coming int
	// Lacks is true while the Release lacks Pods that it is asked to have, or these are not ready. What others serve stays until then.
	Lacks bool
	// Keeps is true while its Pods stay in traffic, whatever its weight is; see KeepsServing.
	Keeps bool
	// Sole is true for a Release that is to have all traffic at once, whatever the weights of others.
	Sole bool
	// Unknown is true for a Release without any entry for the cluster, for example one that a backup did not have, or that has
	// the cluster under another name. It is as found and is never the leader.
	Unknown bool
	// HookPods is true while Pods of hooks, which must not serve, match the Release's labels: the Service then cannot select by
	// Release.
	HookPods bool
	// Foreign is true while living Pods that are not the Release's carry its label: a selector by Release would match them.
	Foreign bool
	// Awaited is true while Pods are requested: if none is in the cache, they are late.
	Awaited bool
	// Pods of this Release.
	Pods []Pod
}

// Plan is what a Release has and needs in one cluster.
type Plan struct {
	// Needed is the number of Pods that should take traffic.
	Needed int
	// Labelled is the number of Pods that would take traffic if they were ready and the Service had them as endpoints.
	Labelled int
	// Serving is the number of Pods that do take traffic.
	Serving int
	// NotReady is the number of labelled Pods that are not ready themselves.
	NotReady int
	// Coming is the number of ready Pods that should take traffic and do not yet.
	Coming int
	// Held is the number of Pods that are no longer needed but keep traffic until as many of other Releases have it: the number
	// of serving Pods must not drop in between.
	Held int
	// Late is true while Pods are requested and none of them is in the cache.
	Late bool
	// Enable names the Pods to let traffic into, Disable those to take it from. Both are sorted.
	Enable, Disable []string
	// Achieved is the weight that the serving Pods amount to; for a Release as found, the result of Found.
	Achieved uint32
}

// Ready reports whether exactly the needed Pods take traffic and none has to be moved.
func (p Plan) Ready() bool {
	return p.Serving == p.Needed && p.Held == 0 && !p.Late && !p.Moves()
}

// Moves reports whether any Pod has to be moved in or out of traffic.
func (p Plan) Moves() bool {
	return len(p.Enable) > 0 || len(p.Disable) > 0
}

// For plans one Release. It prefers ready Pods, among these the ones that take traffic already, and then goes by name, so that
// planning again after the plan was carried out changes nothing.
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
		case !wanted && pod.Labelled && pod.Ready && (r.Keeps || plan.Held < r.Coming):
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

// asFound is the plan that moves no Pod.
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
// Application has all Pods, of which appLabelled take traffic. A Release whose Pods all take traffic also counts the Pods that
// take none: with these percentages as weights, no Release needs fewer Pods in traffic than it has.
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

// LacksEndpoints reports whether the Service has no ready endpoints although a Release has a weight and requested Pods.
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

// byPreference orders Pods: ready ones first, then labelled ones, then by name.
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
