// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	rules "shipper.dev/shipper/apis/rules/inplace"
	"shipper.dev/shipper/apis/rules/strategy"
	"shipper.dev/shipper/reconciler/member/installation"
)

// Kinds of workloads in place.
const (
	statefulSet = "StatefulSet"
	daemonSet   = "DaemonSet"
	deployment  = "Deployment"
)

// side is a Release that has the workload.
type side struct {
	*release

	item *installation.InPlace
}

// asked is the number of Pods that a Release asks for.
func (s side) asked() int32 { return strategy.Pods(s.item.Replicas, s.want.Percent) }

// workload is one workload with the Releases that have it, the newest first.
type workload struct {
	kind  schema.GroupKind
	key   types.NamespacedName
	sides []side
	// newest is the newest Release in the cluster, and served is true if any has capacity there, with the workload or without.
	newest *release
	served bool
	// unlisted are Releases with capacity that have no anchor in the cluster.
	unlisted []string
}

// workloads are those of Releases, which come with the newest first, by kind and name.
func workloads(releases []*release) []*workload {
	var out []*workload
	served := slices.ContainsFunc(releases, func(r *release) bool { return r.want.Percent > 0 })
	var unlisted []string
	for _, r := range releases {
		if r.installed == nil && r.want.Percent > 0 {
			unlisted = append(unlisted, r.name)
		}
	}
	for _, r := range releases {
		if r.installed == nil {
			continue
		}
		for i := range r.installed.InPlace {
			item := &r.installed.InPlace[i]
			kind := item.GVK.GroupKind()
			n := slices.IndexFunc(out, func(w *workload) bool { return w.kind == kind && w.key == item.Key })
			if n < 0 {
				n = len(out)
				out = append(out, &workload{kind: kind, key: item.Key, newest: releases[0], served: served, unlisted: unlisted})
			}
			out[n].sides = append(out[n].sides, side{r, item})
		}
	}
	slices.SortFunc(out, func(a, b *workload) int {
		return cmp.Or(cmp.Compare(a.kind.Kind, b.kind.Kind), cmp.Compare(a.key.Name, b.key.Name))
	})
	return out
}

// live is what a cluster has of a workload.
type live struct {
	there bool
	// owner is the Release whose template it has, digest that of the object it was written from, and base the Release whose Pods stay below
	// the partition, where that is said.
	owner, digest, base string
	// replicas and partition are those of its spec. A DaemonSet has as many replicas as it has Nodes.
	replicas, partition int32
	// observed is true if its controller has seen the spec.
	observed bool
	// total, updated and available are Pods in its status: all, those of its template, and those that are available.
	total, updated, available int32
	// leaving are Pods of a shared StatefulSet that are being deleted: until they are gone, its status has them among all and those that are
	// available, and not among those of its template.
	leaving int32
	// one is true if the StatefulSet controller makes Pods below the partition of the same template.
	one bool
	// stuck is why its controller does not go on; empty if it does.
	stuck string
}

// missing is how many Pods are not available.
func (l live) missing() int32 { return max(0, l.replicas-l.available) }

// choice is whose the workload is to be.
type choice struct {
	// contender is the newest Release with capacity, older are those before it. None has capacity: contender is -1. They are indices of sides.
	contender int
	older     []int
	// holder has the template of the object; -1 if nothing is written.
	holder int
	goal   rules.Goal
	// inverted is true if the holder is older, and the contender's Pods stay below the partition.
	inverted bool
}

// pick chooses whose a workload is to be. Nothing is written of one that is left as it was found.
func (w *workload) pick(is live) choice {
	c := choice{contender: -1, holder: -1}
	for i, s := range w.sides {
		switch {
		case s.want.Percent <= 0:
		case c.contender < 0:
			c.contender = i
		default:
			c.older = append(c.older, i)
		}
	}
	if owner := w.side(is.owner); is.there && owner >= 0 && w.sides[owner].want.AsFound {
		return c
	}
	// An anchor that was deleted is made again: until then, nothing is known of that Release.
	if is.there && (slices.Contains(w.unlisted, is.owner) || slices.Contains(w.unlisted, is.base)) {
		return c
	}
	if c.contender >= 0 {
		c.holder = c.contender
	} else if is.there && w.kind.Kind == statefulSet && (w.served || !w.newest.last) {
		// Without capacity it has no Pods, also when a newer chart has dropped it. Nothing asks for capacity for a moment only where a
		// Release at its last step has lost its contender.
		c.holder = 0
	}
	return c
}

// side is the index of the Release of a name; -1 if it does not have the workload.
func (w *workload) side(name string) int {
	return slices.IndexFunc(w.sides, func(s side) bool { return s.name == name })
}

// aim sets the goal of a choice that has a holder. set is what the contender's chart says of a StatefulSet that is updated by partition;
// nil for other workloads.
func (w *workload) aim(c choice, set *rules.Set, is live) choice {
	if c.contender < 0 {
		c.goal = rules.Goal{Contender: true}
		return c
	}
	s := w.sides[c.contender]
	own, percent := rules.Set{Replicas: s.item.Replicas}, s.want.Percent
	if set != nil {
		own = *set
	}
	switch {
	case len(c.older) > 0 && set == nil && !rules.Whole(percent): // it waits for all capacity
		c.holder = c.older[0]
		c.goal = rules.Goal{Set: rules.Set{Replicas: w.sides[c.holder].item.Replicas}, Contender: true}
		return c
	case len(c.older) > 0:
		incumbent := rules.Set{}
		for _, i := range c.older {
			incumbent.Replicas = max(incumbent.Replicas, w.sides[i].item.Replicas)
		}
		c.goal = rules.GoalOf(&incumbent, own, percent)
		c.inverted = c.goal.Incumbents > 0 && w.inverts(c, is)
	default:
		c.goal = rules.GoalOf(nil, own, percent)
		if s.release == w.newest && s.last && percent < 100 && is.there { // it has lost its contender: no Pod goes for that
			c.goal.Replicas = max(c.goal.Replicas, min(is.replicas, own.Replicas))
		}
	}
	if c.inverted {
		c.goal, c.holder = c.goal.Inverted(), c.older[0]
	}
	return c
}

// inverts reports whether the contender's Pods are to stay below the partition: the StatefulSet controller makes those of its template, for
// all Pods had it.
func (w *workload) inverts(c choice, is live) bool {
	contender := w.sides[c.contender].name
	if is.base == contender {
		return is.owner == w.sides[c.older[0]].name
	}
	return is.owner == contender && is.observed && is.one
}

// base is what the annotation is to say.
func (w *workload) base(c choice) string {
	if !c.inverted {
		return ""
	}
	return w.sides[c.contender].name
}

// differs reports whether a workload has to be written.
func (w *workload) differs(c choice, is live) bool {
	holder := w.sides[c.holder]
	switch {
	case !is.there:
		return c.contender >= 0
	case is.owner != holder.name || is.digest != holder.item.Digest || is.base != w.base(c):
		return true
	case w.kind.Kind == daemonSet:
		return false
	case c.contender < 0:
		return is.replicas != 0
	default:
		return is.replicas != c.goal.Replicas || is.partition != c.goal.Partition
	}
}
