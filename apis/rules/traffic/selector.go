// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"cmp"
	"maps"
	"slices"
)

// Selection is the part of the Service's selector that chooses Pods within the Application. The zero value is a selector that
// Shipper did not write.
type Selection struct {
	// ByLabel is true when it selects the Pods with the label that lets traffic in.
	ByLabel bool
	// Release is the Release whose Pods it selects, all of them, whatever their other labels are.
	Release string
}

// ShadowService is the state of a second Service that receives no requests. Its endpoints show a lower bound of the Pods that
// the EndpointSlice controller has seen: the main Service, once it has the same selector, gets at least these.
type ShadowService struct {
	// Selects is its selector.
	Selects Selection
	// Serving are the names of the Pods that are its ready endpoints.
	Serving map[string]bool
}

// Application is all Releases of one Application in one cluster.
type Application struct {
	// SelectByRelease is true where the Service may select by Release.
	SelectByRelease bool
	// Selects is the present selector of the Service.
	Selects Selection
	// Serving is the number of the Service's ready endpoints that are Pods of its Releases.
	Serving int
	// AppPods is the number of living Pods of the Application.
	AppPods int
	// Releases, the oldest first, are those that have a weight, and unknown ones that have Pods, each with its Name, Weight, AsFound, Unknown,
	// HookPods, Foreign, Awaited, Lacks and Pods. Application computes the other fields.
	Releases []Release
	// Strays are the Pods of Releases that are being deleted. The weights of these no longer count.
	Strays []Pod
	// Foreign are the Pods that carry labels of the Application but belong to none of its Releases. They do not count.
	Foreign []Pod
	// Shadow is nil when there is no shadow Service.
	Shadow *ShadowService
	// Preview is the preview Service, which proves what it selects like a shadow Service; nil when there is none.
	Preview *ShadowService
}

// SelectorChange is the next change towards the goal of the Service's selector.
type SelectorChange struct {
	// Enable and Disable name the Pods to label first. Both are sorted.
	Enable, Disable []string
	// Shadow is the selector for the shadow Service; nil deletes that Service.
	Shadow *Selection
	// Select is the new selector of the Service; nil while it must not change or need not.
	Select *Selection
}

// Leader names the one Release that changes the Service for all, so that no two do at the same time: the Release that the
// Service will select by, else the one of the largest weight.
func (a Application) Leader() string {
	a = a.alone()
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

// For plans one Release. It moves Pods only if the Service selects by label and continues to.
func (a Application) For(name string) Plan {
	a = a.alone()
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
	plan.Enable, plan.Disable, plan.Held = nil, nil, 0
	switch {
	case own.AsFound:
		return plan
	case own.Keeps:
		plan.Held = max(plan.Serving-plan.Needed, 0)
		return plan
	}
	ready := 0
	for _, pod := range livingPods(own.Pods) {
		if pod.Ready {
			ready++
		}
		if pod.Ready && pod.Labelled && !pod.Serving && plan.Needed == 0 {
			plan.Held++ // the Service selects it: it will be an endpoint, if endpoints are older than the Service
		}
	}
	plan.NotReady = max(plan.Needed-ready, 0)
	return plan
}

// Next computes the next change: the Service selects by Release while exactly one has a weight, and by label while several do.
// In between it never selects Pods that the EndpointSlice controller may not have seen. While the Service selects by label,
// foreign Pods lose the label.
func (a Application) Next() SelectorChange {
	a = a.alone()
	switch goal := a.goal(); {
	case goal == a.Selects && goal.Release == "" && a.hasWeights():
		return a.exclude(SelectorChange{})
	case goal == a.Selects:
		return SelectorChange{}
	case goal.Release != "":
		return a.selectRelease(*a.find(goal.Release))
	default:
		return a.selectLabel()
	}
}

// goal is the selector that the Service should have.
func (a Application) goal() Selection {
	var weigh []Release
	for _, r := range a.Releases {
		if r.AsFound && For(a.withSelection(r)).Labelled > 0 || !r.AsFound && r.Weight > 0 {
			weigh = append(weigh, r)
		}
	}
	switch selected := a.Selects.Release; {
	case !a.hasWeights(): // no weight was requested yet
		return a.Selects
	case !a.SelectByRelease && selected == "": // Shipper did not write this selector
		return a.Selects
	case a.SelectByRelease && len(weigh) == 1 && weigh[0].Name == selected && !weigh[0].Foreign:
		return a.Selects
	case a.SelectByRelease && len(weigh) == 1 && !weigh[0].AsFound && !weigh[0].HookPods && !weigh[0].Foreign &&
		(len(livingPods(weigh[0].Pods)) > 0 || a.awaitsPods(weigh[0])):
		return Selection{Release: weigh[0].Name}
	case len(weigh) == 0 && selected != "" && a.find(selected) == nil:
		return a.Selects // the Pods that serve are being deleted, and none can replace them yet
	default:
		return Selection{ByLabel: true}
	}
}

// hasWeights reports whether a weight was requested of any Release.
func (a Application) hasWeights() bool {
	return slices.ContainsFunc(a.Releases, func(r Release) bool { return !r.AsFound })
}

// awaitsPods reports whether a Release has requested Pods of which none is in the cache. Deployments and Pods come by separate
// watches: the Pods may be ready, and the Pods that serve must go on until the cache has the new ones.
func (a Application) awaitsPods(r Release) bool {
	return r.Awaited && a.Serving > 0 && len(livingPods(r.Pods)) == 0
}

// selectRelease lets the Service select by one Release. While others serve, it waits until the Release has all Pods that it is asked to
// have, and all that are ready are endpoints of the Service or of a shadow Service with that selector.
func (a Application) selectRelease(r Release) SelectorChange {
	goal := Selection{Release: r.Name}
	ready, serving, shadowed, previewed := 0, 0, 0, 0
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
			shadowed++
		}
		if a.previews(r.Name) && a.Preview.Serving[pod.Name] {
			previewed++
		}
	}
	switch {
	case others <= 0 || ready > 0 && serving == ready && !r.Lacks:
		return SelectorChange{Select: &goal}
	case ready == 0, r.Lacks && a.previews(r.Name):
		return SelectorChange{}
	case r.Lacks:
		return SelectorChange{Shadow: &goal}
	case previewed == ready:
		return SelectorChange{Select: &goal}
	case a.previews(r.Name): // its EndpointSlices will say more
		return SelectorChange{}
	case shadowed == ready:
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
			serves = serves || r.Weight > 0 || wanted[pod.Name] // a Release as found may have Pods that never served
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
	case len(in) == 0 && serves && a.Serving > 0: // the Service would have no endpoints
	case a.Shadow != nil && a.Shadow.Selects == goal && maps.Equal(in, a.Shadow.Serving):
		out.Select = &goal
	}
	return out
}

// exclude takes from foreign Pods the label that lets traffic in.
func (a Application) exclude(t SelectorChange) SelectorChange {
	for _, pod := range livingPods(a.Foreign) {
		t.label(pod, false)
	}
	slices.Sort(t.Disable)
	return t
}

// label adds or removes a Pod's label, unless it is so already.
func (t *SelectorChange) label(pod Pod, in bool) {
	switch {
	case in && !pod.Labelled:
		t.Enable = append(t.Enable, pod.Name)
	case !in && pod.Labelled:
		t.Disable = append(t.Disable, pod.Name)
	}
}

// wanted are the Pods of a Release that are to have the label. For a Release as found these are the Pods that the present
// selector matches; one that keeps its Pods in traffic has these, too.
func (a Application) wanted(r Release) map[string]bool {
	out := map[string]bool{}
	if selected := a.withSelection(r); r.AsFound || selected.Keeps {
		for _, pod := range selected.Pods {
			out[pod.Name] = pod.Labelled && (r.AsFound || pod.Ready)
		}
	}
	if r.AsFound {
		return out
	}
	r = a.withTotals(r) // with the present labels: Pods that have the label keep it
	own := livingPods(r.Pods)
	slices.SortFunc(own, byPreference)
	for _, pod := range own[:Needed(len(own), r.AppPods, r.Weight, r.TotalWeight)] {
		out[pod.Name] = true
	}
	return out
}

// withSelection is a Release with all that For needs. If the Service selects by Release, its Pods count as labelled, and no
// others.
func (a Application) withSelection(r Release) Release {
	r = a.withTotals(r)
	shares := make([]Share, len(a.Releases))
	for i, other := range a.Releases {
		shares[i] = Share{
			Weighs: other.Weight > 0 && !other.AsFound, Lacks: other.Lacks,
			Ready: slices.ContainsFunc(livingPods(other.Pods), func(pod Pod) bool { return pod.Ready }),
		}
	}
	r.Keeps = KeepsServing(slices.IndexFunc(a.Releases, func(other Release) bool { return other.Name == r.Name }), shares)
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

// labelled counts the living Pods of the Application that the Service's selector matches.
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

// withTotals is a Release with the sums over all Releases.
func (a Application) withTotals(r Release) Release {
	r.AppPods, r.AppLabelled, r.TotalWeight = a.AppPods, 0, 0
	for _, other := range a.Releases {
		r.TotalWeight += uint64(other.Weight)
	}
	return r
}

// selects reports whether the Service's selector matches a Pod of a Release.
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
