// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"cmp"
	"maps"
	"slices"
)

// Selection is what the Service of an Application selects Pods by, within the Application. The zero value is something that
// Shipper did not write.
type Selection struct {
	// ByLabel is true when it selects the Pods with the label that lets traffic in.
	ByLabel bool
	// Release is that whose Pods it selects, all of them and whatever other labels they have: traffic is corked.
	Release string
}

// ShadowService is what a second Service, which nobody uses, has for endpoints. It shows what whoever writes EndpointSlices knows of Pods,
// which is never older than what is shown: a Service that begins to select the same cannot have less.
type ShadowService struct {
	// Selects is what it selects.
	Selects Selection
	// Serving are the names of the Pods that are its ready endpoints.
	Serving map[string]bool
}

// Application is all Releases of one Application in one cluster.
type Application struct {
	// SelectByRelease is true where traffic may be corked.
	SelectByRelease bool
	// Selects is what the Service selects now.
	Selects Selection
	// Serving is the number of the Service's ready endpoints that are Pods of its Releases.
	Serving int
	// AppPods is the number of living Pods of the Application.
	AppPods int
	// Releases are those that say a weight, and those unknown that have Pods, each with its Name, Weight, AsFound, Unknown, Strange,
	// Foreign, Awaited and Pods. The rest follows.
	Releases []Release
	// Strays are the Pods of Releases that are going, whose weight counts no more.
	Strays []Pod
	// Foreign are the Pods that carry labels of the Application and are of none of its Releases. They count nowhere.
	Foreign []Pod
	// Shadow is nil when there is no second Service.
	Shadow *ShadowService
}

// SelectorChange is what has to be done next so that the Service selects as it should.
type SelectorChange struct {
	// Enable and Disable name the Pods to label before. Both are sorted.
	Enable, Disable []string
	// Shadow is what a second Service has to select; nil when there is to be none.
	Shadow *Selection
	// Select is what the Service has to select from now on; nil when it may not be changed yet, or need not be.
	Select *Selection
}

// Leader names the Release that turns the Service for all, so that no two do at the same time: the one that it is corked to, else the
// one of the largest weight.
func (a Application) Leader() string {
	known := slices.DeleteFunc(slices.Clone(a.Releases), func(r Release) bool { return r.Unknown })
	if goal := a.goal(); slices.ContainsFunc(known, func(r Release) bool { return r.Name == goal.Release }) {
		return goal.Release
	}
	if len(known) == 0 {
		return ""
	}
	return slices.MinFunc(known, func(x, y Release) int {
		return cmp.Or(cmp.Compare(y.Weight, x.Weight), cmp.Compare(x.Name, y.Name))
	}).Name
}

// For plans one Release. Unless the Service selects by label and goes on to, no Pod is moved for it.
func (a Application) For(name string) Plan {
	found := a.find(name)
	if found == nil {
		return Plan{}
	}
	own := a.withSelection(*found)
	if a.Selects.Release == "" && a.goal() == a.Selects {
		for _, other := range a.Releases {
			if other.Name != name && !other.AsFound && other.Weight > 0 {
				own.Coming += For(a.withSelection(other)).Coming
			}
		}
		return For(own)
	}
	plan := For(own)
	if !own.AsFound {
		ready := 0
		for _, pod := range livingPods(own.Pods) {
			if pod.Ready {
				ready++
			}
		}
		plan.NotReady = max(plan.Needed-ready, 0)
	}
	plan.Enable, plan.Disable, plan.Held = nil, nil, 0
	return plan
}

// Next tells what has to be done for the Service to select as the weights want it: by Release while exactly one weighs anything,
// by label while several do. Going from one to the other, it never selects what its writer of EndpointSlices may not know of yet.
// While it selects by label, foreign Pods lose the label.
func (a Application) Next() SelectorChange {
	switch goal := a.goal(); {
	case goal == a.Selects && goal.ByLabel && a.hasWeights():
		return a.exclude(SelectorChange{})
	case goal == a.Selects:
		return SelectorChange{}
	case goal.Release != "":
		return a.selectRelease(*a.find(goal.Release))
	default:
		return a.selectLabel()
	}
}

// goal is what the Service should select.
func (a Application) goal() Selection {
	var weigh []Release
	for _, r := range a.Releases {
		if r.AsFound && For(a.withSelection(r)).Labelled > 0 || !r.AsFound && r.Weight > 0 {
			weigh = append(weigh, r)
		}
	}
	switch corked := a.Selects.Release; {
	case !a.hasWeights(): // no weight was requested yet
		return a.Selects
	case !a.SelectByRelease && corked == "": // not ours to write
		return a.Selects
	case a.SelectByRelease && len(weigh) == 1 && weigh[0].Name == corked && !weigh[0].Foreign:
		return a.Selects
	case a.SelectByRelease && len(weigh) == 1 && !weigh[0].AsFound && !weigh[0].HookPods && !weigh[0].Foreign &&
		(len(livingPods(weigh[0].Pods)) > 0 || a.awaitsPods(weigh[0])):
		return Selection{Release: weigh[0].Name}
	case len(weigh) == 0 && corked != "" && a.find(corked) == nil:
		return a.Selects // what serves is on its way out, and nothing is there to take its place
	default:
		return Selection{ByLabel: true}
	}
}

// hasWeights reports whether a weight was requested of any Release.
func (a Application) hasWeights() bool {
	return slices.ContainsFunc(a.Releases, func(r Release) bool { return !r.AsFound })
}

// awaitsPods reports whether none of the Pods that a Release is to have is seen yet. Deployments are heard of by another watch than Pods: they
// may have been ready for long, and whoever serves goes on until they are seen.
func (a Application) awaitsPods(r Release) bool {
	return r.Awaited && a.Serving > 0 && len(livingPods(r.Pods)) == 0
}

// selectRelease gives a Release the Service for its own. While others serve it waits until all its Pods that are ready are known to serve
// then: until they do already, or are proved to.
func (a Application) selectRelease(r Release) SelectorChange {
	goal := Selection{Release: r.Name}
	ready, serving, proved := 0, 0, 0
	others := a.Serving
	for _, pod := range r.Pods {
		if pod.Serving {
			others--
		}
		if pod.Gone || !pod.Ready {
			continue
		}
		ready++
		if pod.Serving {
			serving++
		}
		if a.Shadow != nil && a.Shadow.Selects == goal && a.Shadow.Serving[pod.Name] {
			proved++
		}
	}
	switch {
	case others <= 0 || ready > 0 && serving == ready:
		return SelectorChange{Select: &goal}
	case ready == 0:
		return SelectorChange{}
	case proved == ready:
		return SelectorChange{Shadow: &goal, Select: &goal}
	default:
		return SelectorChange{Shadow: &goal}
	}
}

// selectLabel labels Pods while labels have no effect yet, and then lets the Service select by them.
func (a Application) selectLabel() SelectorChange {
	goal := Selection{ByLabel: true}
	out := SelectorChange{Shadow: &goal}
	in, serves := map[string]bool{}, false
	for _, r := range a.Releases {
		weighs := r.AsFound || r.Weight > 0
		wanted := a.wanted(r)
		serves = serves || weighs && a.awaitsPods(r)
		for _, pod := range livingPods(r.Pods) {
			serves = serves || r.Weight > 0 || wanted[pod.Name] // one as found may have Pods that never served
			out.label(pod, wanted[pod.Name])
			if wanted[pod.Name] && pod.Ready {
				in[pod.Name] = true
			}
		}
	}
	for _, pod := range livingPods(a.Strays) {
		out.label(pod, false)
	}
	out = a.exclude(out)
	slices.Sort(out.Enable)
	slices.Sort(out.Disable)
	switch {
	case len(out.Enable) > 0 || len(out.Disable) > 0:
	case len(in) == 0 && serves && a.Serving > 0: // nothing would serve
	case a.Shadow != nil && a.Shadow.Selects == goal && maps.Equal(in, a.Shadow.Serving):
		out.Select = &goal
	}
	return out
}

// exclude has foreign Pods lose the label that lets traffic in.
func (a Application) exclude(t SelectorChange) SelectorChange {
	for _, pod := range livingPods(a.Foreign) {
		t.label(pod, false)
	}
	slices.Sort(t.Disable)
	return t
}

// label lets a Pod in or takes it out, unless it is already.
func (t *SelectorChange) label(pod Pod, in bool) {
	switch {
	case in && !pod.Labelled:
		t.Enable = append(t.Enable, pod.Name)
	case !in && pod.Labelled:
		t.Disable = append(t.Disable, pod.Name)
	}
}

// wanted are the Pods of a Release that are to have the label: of one as found those that serve by the selection there is, or
// would if they were ready.
func (a Application) wanted(r Release) map[string]bool {
	out := map[string]bool{}
	if r.AsFound {
		for _, pod := range a.withSelection(r).Pods {
			out[pod.Name] = pod.Labelled
		}
		return out
	}
	r = a.withTotals(r) // with the labels as they are: those that have it keep it
	own := livingPods(r.Pods)
	slices.SortFunc(own, byPreference)
	for _, pod := range own[:Needed(len(own), r.AppPods, r.Weight, r.TotalWeight)] {
		out[pod.Name] = true
	}
	return out
}

// withSelection is a Release with all that For needs. Pods that a corked Service selects count as labelled, and no others.
func (a Application) withSelection(r Release) Release {
	r = a.withTotals(r)
	if r.AsFound {
		r.AppLabelled = a.labelled()
	}
	pods := slices.Clone(r.Pods)
	for i := range pods {
		pods[i].Labelled = a.selects(r.Name, pods[i])
	}
	r.Pods = pods
	return r
}

// labelled counts the living Pods of the Application that have what the Service selects by.
func (a Application) labelled() int {
	count := 0
	for _, r := range append(slices.Clone(a.Releases), Release{Pods: a.Strays}) {
		for _, pod := range livingPods(r.Pods) {
			if a.selects(r.Name, pod) {
				count++
			}
		}
	}
	return count
}

// withTotals is a Release with what is the same for all.
func (a Application) withTotals(r Release) Release {
	r.AppPods, r.AppLabelled, r.TotalWeight = a.AppPods, 0, 0
	for _, other := range a.Releases {
		r.TotalWeight += uint64(other.Weight)
	}
	return r
}

// selects reports whether a Pod of a Release has what the Service selects by.
func (a Application) selects(release string, pod Pod) bool {
	if a.Selects.Release != "" {
		return release == a.Selects.Release
	}
	return pod.Labelled
}

func (a Application) find(name string) *Release {
	for i := range a.Releases {
		if a.Releases[i].Name == name {
			return &a.Releases[i]
		}
	}
	return nil
}
