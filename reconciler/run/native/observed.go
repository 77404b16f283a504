// SPDX-License-Identifier: Apache-2.0

// Package native does the tasks of SequenceRuns that Shipper knows. What is to be done about a task is decided by functions of what was
// observed and the time; it is done with the rights of the ServiceAccount that the namespace of the run binds to Shipper.
package native

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"shipper.dev/shipper/apis/rules/position"
	"shipper.dev/shipper/apis/rules/shipyard"
	"shipper.dev/shipper/apis/rules/stamp"
	"shipper.dev/shipper/apis/rules/strategy"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// observed is what a decision about a task is made of. All of it is the cache's own.
type observed struct {
	run  *shipper.SequenceRun
	task *shipper.TaskStatus
	// of is the task in the snapshot.
	of *shipper.Task
	// before is the run whose end triggered this one; nil if there is none, or not any more.
	before *shipper.SequenceRun
	// key names the Application of the stage; app is nil if there is none.
	key types.NamespacedName
	app *shipper.Application
	// releases are its own, oldest first, those that are being deleted too.
	releases []*shipper.Release
	// installation is the target of the Release that is tested; nil if there is none.
	installation *shipper.InstallationTarget
	// checks is the CheckTarget of the task; nil before it is made.
	checks *shipper.CheckTarget
	// shared is the namespace with the Checks that all share, and find returns a Check; nil when there is none.
	shared string
	find   func(types.NamespacedName) *shipper.Check
	now    time.Time
}

// action is what a task does, and what is said until its effect is seen. At most one of its writes is set.
type action struct {
	outcome shipyard.Outcome
	// confirm is true if the cache may be too old for the decision.
	confirm bool
	// apply is the part of the Application that the run sets.
	apply map[string]any
	// patch is merged into an object of the Application.
	patch *patch
	// remove is a Release that is taken back.
	remove *shipper.Release
	// begin is a CheckTarget.
	begin *shipper.CheckTarget
}

// patch is a change of an object that must be as it was observed.
type patch struct {
	kind string
	key  types.NamespacedName
	// version is the resourceVersion that was observed.
	version string
	body    map[string]any
}

func waits(format string, args ...any) action {
	return action{outcome: shipyard.Outcome{Message: fmt.Sprintf(format, args...)}}
}

func fails(format string, args ...any) action {
	return action{outcome: shipyard.Outcome{
		Result: shipper.ResultFail, Completion: shipper.CompletionErrored, Message: fmt.Sprintf(format, args...),
	}}
}

func passes(message string, data shipper.FreeForm) action {
	return action{outcome: shipyard.Outcome{
		Result: shipper.ResultPass, Completion: shipper.CompletionSucceeded, Message: message, Data: data,
	}}
}

// newest is the newest Release that is not being deleted; nil if there is none.
func (o *observed) newest() *shipper.Release { return stamp.NewestOf(o.staying()) }

// staying are the Releases that are not being deleted.
func (o *observed) staying() []*shipper.Release {
	return slices.DeleteFunc(slices.Clone(o.releases), func(rel *shipper.Release) bool { return !rel.DeletionTimestamp.IsZero() })
}

// named is a Release by its name, or by NAMESPACE/NAME; nil if there is none.
func (o *observed) named(name string) *shipper.Release {
	if at := strings.LastIndex(name, "/"); at >= 0 {
		name = name[at+1:]
	}
	for _, rel := range o.releases {
		if rel.Name == name {
			return rel
		}
	}
	return nil
}

// made is the Release that a run made or acts on, by its latest task that has one; empty if it has none.
func made(run *shipper.SequenceRun) string {
	if run == nil {
		return ""
	}
	for _, task := range slices.Backward(run.Status.Tasks) {
		if task.Release != "" {
			return task.Release
		}
	}
	return ""
}

// delivered is the Release that the run acts on: the one that it made, else the newest. Nil if there is none.
func (o *observed) delivered() *shipper.Release {
	if name := made(o.run); name != "" {
		return o.named(name)
	}
	return o.newest()
}

// property is a text among the properties of the task.
func (o *observed) property(name, absent string) string {
	text, _ := o.of.Properties[name].(string)
	return cmp.Or(text, absent)
}

// nameOf is how statuses name a Release.
func nameOf(rel *shipper.Release) string { return rel.Namespace + "/" + rel.Name }

// follow says how far a Release is on its way to a step, and raises it where only a command is awaited. A Release that another one
// replaced, or that has failed, gets nowhere.
func (o *observed) follow(rel *shipper.Release, to int32, raise bool) action {
	out := waits("%s", progressOf(rel))
	out.outcome.Release = nameOf(rel)
	newest, achieved := o.newest(), rel.Status.AchievedStep
	advancing := shipper.FindCondition(rel.Status.Conditions, shipper.ReleaseAdvancing)
	switch failed := shipper.FindCondition(rel.Status.Conditions, shipper.ReleaseFailed); {
	case !rel.DeletionTimestamp.IsZero():
		out.outcome = fails("Release %s was aborted", rel.Name).outcome
	case newest != nil && newest.Name != rel.Name:
		out.outcome = fails("Release %s replaced Release %s", newest.Name, rel.Name).outcome
	case strategy.Complete(rel), !last(rel, to) && achieved != nil && !position.Achieved(rel).Before(position.Position{Step: to}) &&
		!position.Of(rel).Before(position.Position{Step: to}):
		out.outcome = passes("", nil).outcome
	case failed != nil && failed.Status == "True":
		out.outcome = fails("Release %s has failed: %s", rel.Name, failed.Message).outcome
	case blockedBy(rel.Status.Conditions, shipper.ReleaseBlocked) != "":
		out.outcome.Blocked = blockedBy(rel.Status.Conditions, shipper.ReleaseBlocked)
	case rel.Spec.Hold != "":
		out.outcome.Stands, out.outcome.Message = true, "Release "+rel.Name+" is held: "+rel.Spec.Hold
	case stamp.WentBack(rel):
		out.outcome.Stands = true
		out.outcome.Message = fmt.Sprintf("Release %s was moved back to step %d: raise targetStep to go on, or abort the run", rel.Name,
			rel.Spec.TargetStep)
	case raise && awaitsCommand(rel, advancing) && position.Of(rel).Before(goalOf(rel, to)):
		out.patch = patchOf(rel, map[string]any{"spec": raised(rel)})
	case advancing != nil && slices.Contains(standing, advancing.Reason):
		out.outcome.Stands = true
	}
	out.outcome.Release = nameOf(rel)
	return out
}

// goalOf is the position at which a Release has reached a step: the last step is that of the last wave, any other that of the first.
func goalOf(rel *shipper.Release, step int32) position.Position {
	if last(rel, step) {
		return position.Last(rel.Spec.Environment.Strategy)
	}
	return position.Position{Step: step}
}

// raised is the change of a Release's spec to the next position.
func raised(rel *shipper.Release) map[string]any {
	next, _ := position.Of(rel).Next(rel.Spec.Environment.Strategy)
	out := map[string]any{"targetStep": next.Step}
	if position.HasWaves(rel) {
		out["targetWave"] = next.Wave
	}
	return out
}

// standing are the reasons for which a Release waits for users or for a time of its own.
var standing = []string{
	shipper.AdvancingAwaitingApproval, shipper.AdvancingSoaking, shipper.AdvancingHeldByUser, shipper.AdvancingHeldByBlock,
	shipper.AdvancingHeldAfterGoingBack, shipper.AdvancingCheckUndecided, shipper.AdvancingAwaitingTime,
}

// awaitsCommand reports whether the requested step is achieved and nothing but a raised targetStep is awaited.
func awaitsCommand(rel *shipper.Release, advancing *shipper.Condition) bool {
	achieved, s := rel.Status.AchievedStep, rel.Status.Strategy
	return achieved != nil && position.Achieved(rel) == position.Of(rel) &&
		s != nil && s.State.WaitingForCommand == shipper.StrategyStateTrue &&
		(advancing == nil || advancing.Reason == shipper.AdvancingAwaitingCommand)
}

// last reports whether a step is the last one of a Release.
func last(rel *shipper.Release, step int32) bool {
	return step >= rel.Spec.Environment.Strategy.LastStep()
}

// blockedBy is the message of a condition that says that RolloutBlocks are in effect; empty if none are.
func blockedBy(conditions []shipper.Condition, kind string) string {
	c := shipper.FindCondition(conditions, kind)
	if c == nil || c.Status != "True" {
		return ""
	}
	return cmp.Or(c.Message, c.Reason)
}

// progressOf says what a Release waits for.
func progressOf(rel *shipper.Release) string {
	for _, kind := range []string{shipper.ReleaseAdvancing, shipper.ReleaseStrategyExecuted, shipper.ReleaseScheduled} {
		if c := shipper.FindCondition(rel.Status.Conditions, kind); c != nil && c.Message != "" {
			return c.Message
		}
	}
	return "Release " + rel.Name + " is on its way"
}

// patchOf changes a Release that is as it was observed.
func patchOf(rel *shipper.Release, body map[string]any) *patch {
	return &patch{
		kind: "Release", key: types.NamespacedName{Namespace: rel.Namespace, Name: rel.Name}, version: rel.ResourceVersion, body: body,
	}
}
