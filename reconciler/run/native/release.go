// SPDX-License-Identifier: Apache-2.0

package native

import (
	"slices"

	"shipper.dev/shipper/apis/rules/stamp"
	"shipper.dev/shipper/apis/rules/strategy"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// release lets the Release of the run go on: it takes the hold of the run away, and raises the step where only a command is awaited.
func release(o *observed) action {
	rel := o.delivered()
	switch {
	case rel == nil && made(o.run) != "":
		return fails("Release %s was deleted", made(o.run))
	case rel == nil:
		return fails("Application %s has no Release", o.key)
	}
	to, found := o.goal(rel)
	if !found {
		return fails("Release %s has no step %q", rel.Name, o.property("to", ""))
	}
	if stamp.HeldByRun(rel) && rel.DeletionTimestamp.IsZero() {
		out := waits("takes the hold of Release %s away", rel.Name)
		out.outcome.Release, out.patch = nameOf(rel), patchOf(rel, map[string]any{"spec": map[string]any{"hold": nil}})
		return out
	}
	return o.follow(rel, to, true)
}

// goal is the step at which the task ends: the last, or the one that its properties name.
func (o *observed) goal(rel *shipper.Release) (int32, bool) {
	s := rel.Spec.Environment.Strategy
	name := o.property("to", "last")
	if name == "last" {
		return s.LastStep(), true
	}
	at := slices.IndexFunc(s.Steps, func(step shipper.RolloutStrategyStep) bool { return step.Name == name })
	return int32(max(at, 0)), at >= 0
}

// rollback takes back what a run delivered: a Release that is not complete is deleted, which aborts it, and after a complete one the
// Application goes back to the one before. It ends when that one is complete.
func rollback(o *observed) action {
	if by := o.run.Status.Resolved.TriggeredBy; by != nil && o.before == nil && made(o.run) == "" {
		return fails("run %s, which it takes back, is gone: start one of this sequence by hand", by.Run)
	}
	newest := o.newest()
	name, known := o.toTakeBack()
	rel := o.named(name)
	if !known {
		if newest == nil {
			return passes("there is no Release", nil)
		}
		return o.waitsBehind(nameOf(newest), "takes Release %s back", newest.Name) // stored first: the next pass may see another
	}
	switch {
	case o.task.Release == "" && rel != nil && !o.broughtAbout(rel):
		return passes("Release "+rel.Name+" was there before: nothing was delivered", nil)
	case rel == nil || newest == nil, !rel.DeletionTimestamp.IsZero(), newest.Name != rel.Name:
		return o.tookBack(name)
	case !strategy.Complete(rel) && o.completeBefore(rel) == nil:
		return passes("there is no complete Release before "+rel.Name+": it stays", nil)
	case !strategy.Complete(rel):
		out := waits("aborts Release %s", rel.Name)
		out.remove, out.outcome.Release = rel, nameOf(rel)
		return out
	}
	before := o.completeBefore(rel)
	if before == nil || o.app == nil {
		return passes("there is no Release before "+rel.Name, nil)
	}
	out := waits("goes back to Release %s", before.Name)
	out.outcome.Release = nameOf(rel)
	out.patch = &patch{kind: "Application", key: o.key, version: o.app.ResourceVersion, body: map[string]any{"spec": map[string]any{
		"rollbackTo": map[string]any{"release": before.Name, "strategy": o.property("strategy", string(shipper.RollbackImmediate))},
	}}}
	return out
}

// toTakeBack names the Release that is taken back: the one that this task has found before, or the run, or the run before it made. It is
// not known for a run that a user started; it is known to be none if the run before made none.
func (o *observed) toTakeBack() (name string, known bool) {
	if name = made(o.run); name != "" {
		return name, true
	}
	if o.before != nil {
		return made(o.before), true
	}
	return "", false
}

// broughtAbout reports whether a Release is of this run or of the one before, or of a run that the latter repeats.
func (o *observed) broughtAbout(rel *shipper.Release) bool {
	claim := stamp.ClaimOf(rel.Annotations[shipper.ReleaseRunAnnotation])
	if claim.UID == string(o.run.UID) {
		return true
	}
	carried := func(t shipper.TaskStatus) bool { return t.State == shipper.TaskCarried && t.Release == nameOf(rel) }
	return o.before != nil && (claim.UID == string(o.before.UID) || slices.ContainsFunc(o.before.Status.Tasks, carried))
}

// tookBack waits until the Release that serves now is complete again.
func (o *observed) tookBack(name string) action {
	rel := o.named(name)
	switch newest := o.newest(); {
	case name == "":
		return passes("nothing was delivered", nil)
	case rel != nil && !rel.DeletionTimestamp.IsZero():
		return o.waitsBehind(name, "waits until Release %s is gone", rel.Name)
	case newest == nil || strategy.Complete(newest):
		return passes("", nil)
	case newest.Annotations[shipper.ReleaseRollbackOfAnnotation] == "" && rel != nil:
		return passes("Release "+newest.Name+" replaced it", nil) // it is another one's to say how that ends
	default:
		ofRun := stamp.ClaimOf(newest.Annotations[shipper.ReleaseRunAnnotation]).UID != ""
		out := o.follow(newest, newest.Spec.Environment.Strategy.LastStep(), !ofRun)
		out.outcome.Release = name
		return out
	}
}

// waitsBehind waits, and keeps the name of the Release that is taken back.
func (o *observed) waitsBehind(name, format string, args ...any) action {
	out := waits(format, args...)
	out.outcome.Release = name
	return out
}
