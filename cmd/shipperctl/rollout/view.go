// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"shipper.dev/shipper/apis/rules/block"
	"shipper.dev/shipper/apis/rules/position"
	"shipper.dev/shipper/apis/rules/strategy"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart/index"
	"shipper.dev/shipper/cmd/shipperctl/cli"
)

// View is one rollout across its clusters, as `-o json` prints it.
type View struct {
	Namespace   string `json:"namespace"`
	Application string `json:"application"`
	// Release is the newest one; empty while there is none.
	Release string `json:"release,omitempty"`
	Chart   string `json:"chart"`
	// RequestedBy is the author of the Release, RequestedAt its creation.
	RequestedBy string    `json:"requestedBy,omitempty"`
	RequestedAt time.Time `json:"requestedAt,omitzero"`
	// Incumbent is the Release that served before and serves still; empty when there is none.
	Incumbent string      `json:"incumbent,omitempty"`
	Steps     []stepState `json:"steps,omitempty"`
	// Waves are those of the strategy, with their figures; absent where it has none. The steps are those of the wave that is asked for.
	Waves []waveState `json:"waves,omitempty"`
	// Workloads say what becomes of each workload of a chart with several, or with one in place; those with missing Pods first.
	Workloads []workloadView `json:"workloads,omitempty"`
	// Complete is true when the newest Release has all capacity and traffic, and nothing else is to be done.
	Complete bool `json:"complete"`
	// Waiting lists what the rollout waits for; empty when it waits for nothing.
	Waiting []string `json:"waiting,omitempty"`
	// Progress is what the Release does by itself; absent when its strategy says nothing about that.
	Progress *progressView `json:"progress,omitempty"`
	// Checks are those of the step; absent where it has none, and until the step has what it wants.
	Checks []checkState `json:"checks,omitempty"`
	// Deleting lists the Releases that are being deleted, each with what its removal waits for.
	Deleting []string `json:"deleting,omitempty"`
	// Problems lists the failed conditions of the Application and its newest Release.
	Problems []string `json:"problems,omitempty"`
	// Aborted is the Release that failed and was aborted after this one was made.
	Aborted  string       `json:"aborted,omitempty"`
	Clusters []Cluster    `json:"clusters,omitempty"`
	Blocks   blockSummary `json:"blocks"`
	// Overrides are the copies of ResourceOverrides that the Release has, in the order in which they are applied; absent where it has none.
	Overrides []overrideCopy `json:"overrides,omitempty"`
}

// stepState is one of the strategy's.
type stepState struct {
	Name string `json:"name"`
	// Achieved is true of the steps that were reached, Target of the one that is asked for.
	Achieved bool `json:"achieved"`
	Target   bool `json:"target"`
	// Gate is true where the step is passed only when it is achieved; After is how long it lasts before the rollout goes on by
	// itself, or how long the wave waits at its end.
	Gate  bool   `json:"gate,omitempty"`
	After string `json:"after,omitempty"`
	// Approvals is how many users have to approve the step before it is achieved.
	Approvals int32 `json:"approvals,omitempty"`
	// Checks are the names of the checks that are made at the step.
	Checks []string `json:"checks,omitempty"`
}

// progressView is what a Release does by itself.
type progressView struct {
	// State and Message are the reason and the message of the condition Advancing.
	State   string `json:"state"`
	Message string `json:"message,omitempty"`
	// NextStep is the step that the Release goes to at NextTime; absent when it goes nowhere by itself.
	NextStep *int32    `json:"nextStep,omitempty"`
	NextTime time.Time `json:"nextTime,omitzero"`
	// Deadline is when the rollout fails unless it comes closer to what its step wants.
	Deadline time.Time `json:"deadline,omitzero"`
	// Approvals are those of the step; absent where it asks for none.
	Approvals *shipper.ReleaseApprovals `json:"approvals,omitempty"`
	// Hold is the reason for which a user, HeldBy, holds the Release.
	Hold   string `json:"hold,omitempty"`
	HeldBy string `json:"heldBy,omitempty"`
	// Failed is why the rollout has failed, since FailedAt.
	Failed   string    `json:"failed,omitempty"`
	FailedAt time.Time `json:"failedAt,omitzero"`
	// Failure has that failure's step, cluster and check.
	Failure *shipper.ReleaseFailure `json:"failure,omitempty"`
	// WaitEnd is when the wait of the wave before it begins, or at its end, is over; absent where there is none, and between the two.
	WaitEnd time.Time `json:"waitEnd,omitzero"`
	// BeforeApprovals are those by which the wave begins; absent where its beforeTasks ask for none.
	BeforeApprovals *shipper.ReleaseApprovals `json:"beforeApprovals,omitempty"`
}

// Cluster is a rollout in one cluster.
type Cluster struct {
	Name      string      `json:"name"`
	Contender clusterSide `json:"contender"`
	// Incumbent is absent where no Release served before.
	Incumbent *clusterSide `json:"incumbent,omitempty"`
	// Objects are those of the newest Release; absent while nothing is known.
	Objects *objectCount `json:"objects,omitempty"`
	// Moving is true while Pods are moved into traffic or out of it: the weights are those of no step then.
	Moving bool `json:"moving,omitempty"`
	// Notes are the problems in the cluster.
	Notes []string `json:"notes,omitempty"`
}

// clusterSide is one Release in one cluster.
type clusterSide struct {
	// Ready of the Wanted Pods are available; All is what the chart asks for.
	Ready  int32 `json:"ready"`
	Wanted int32 `json:"wanted"`
	All    int32 `json:"all"`
	// Weight is that of the traffic it has.
	Weight uint32 `json:"weight"`
	// asFound is true while nothing was asked of the cluster yet.
	asFound bool
}

// blockSummary are the RolloutBlocks that are in the rollout's way.
type blockSummary struct {
	InEffect []string `json:"inEffect,omitempty"`
	// Overridden are in effect, and the rollout overrides them.
	Overridden []string `json:"overridden,omitempty"`
	// Next will be the next one, from NextStart on.
	Next      string    `json:"next,omitempty"`
	NextStart time.Time `json:"nextStart,omitzero"`
	// Unread is why some blocks could not be read.
	Unread string `json:"unread,omitempty"`
}

// viewOf is pure.
func viewOf(o *observed, now time.Time) *View {
	p := &View{Namespace: o.app.Namespace, Application: o.app.Name, Chart: chartOf(o)}
	app := block.App{Name: o.app.Name, Labels: []map[string]string{o.app.Labels}, Releases: o.releases}
	p.Problems = problems(o)
	for _, rel := range o.deleting {
		p.Deleting = append(p.Deleting, rel.Name+": "+removal(rel))
	}
	newest := app.Newest()
	if newest == nil {
		p.Waiting = []string{cmp.Or(unobserved(o.app, nil, now), "the first release to be made")}
		p.Blocks = blocksOf(o, app.Edit(nil, &o.app.Spec.Template), now)
		return p
	}
	p.Release = newest.Name
	p.RequestedBy = newest.Annotations[shipper.ReleaseRequestedByAnnotation]
	p.RequestedAt = newest.CreationTimestamp.Time
	incumbent := incumbentOf(o)
	if incumbent != nil {
		p.Incumbent = incumbent.Name
	}
	p.Steps, p.Waves = stepsOf(newest), wavesOf(newest)
	p.Overrides = overridesOf(newest)
	p.Workloads = workloadsOf(o.capacity[newest.Name], newest)
	p.Complete = complete(o.app, newest)
	if text := unobserved(o.app, newest, now); text != "" {
		p.Waiting = []string{text}
	} else {
		p.Waiting = waitsFor(newest)
	}
	p.Progress = progressOf(newest)
	p.Checks = checksOf(newest, o.checks[newest.Name])
	p.Aborted = abortedAfter(o.app, newest)
	p.Clusters = clustersOf(o, newest, incumbent)
	p.Blocks = blocksOf(o, app.Rollout(), now)
	return p
}

func chartOf(o *observed) string {
	c := o.app.Spec.Template.Chart
	if o.app.Spec.Template.Resources != nil {
		return ""
	}
	out := c.Name + " " + c.Version
	// After an abort the constraint is still that of the aborted template.
	raw := o.app.Annotations[shipper.AppChartVersionRawAnnotation]
	if fits, err := index.Satisfies(raw, c.Version); err == nil && fits && raw != "" && raw != c.Version {
		out += " (" + raw + ")"
	}
	return out
}

// incumbentOf is the Release that served before the newest one, unless that is complete and the earlier has no Pods any
// more; nil when there is none.
func incumbentOf(o *observed) *shipper.Release {
	newest := o.releases[len(o.releases)-1]
	i := slices.Index(strategy.Roles(o.releases), strategy.Incumbent)
	if i < 0 || (strategy.Complete(newest) && !hasPods(o.capacity[o.releases[i].Name])) {
		return nil
	}
	return o.releases[i]
}

func hasPods(ct *shipper.CapacityTarget) bool {
	return ct != nil && slices.ContainsFunc(ct.Status.Clusters, func(c shipper.ClusterCapacityStatus) bool { return c.AvailableReplicas > 0 })
}

func stepsOf(rel *shipper.Release) []stepState {
	if rel.Spec.Environment.Strategy == nil {
		return nil
	}
	var out []stepState
	at, achieved := position.Of(rel), position.Achieved(rel)
	for i, s := range rel.Spec.Environment.Strategy.Steps {
		var checks []string
		for _, c := range rel.Spec.Environment.Strategy.ChecksIn(at.Wave, int32(i)) {
			checks = append(checks, c.NameInStep())
		}
		all := rel.Spec.Environment.Strategy
		out = append(out, stepState{
			Name: s.Name, Achieved: !achieved.Before(position.Position{Wave: at.Wave, Step: int32(i)}), Target: i == int(rel.Spec.TargetStep),
			Gate: gated(rel, i), After: string(cmp.Or(s.After, all.WaitAt(at.Wave, int32(i)))),
			Approvals: all.StepAt(at.Wave, int32(i)).RequiredApprovals(), Checks: checks,
		})
	}
	return out
}

// unobserved says that the reconciler has not seen the last edit of the Application, or of its newest Release if there is one, so that
// nothing known of it counts; empty once it has.
func unobserved(app *shipper.Application, rel *shipper.Release, now time.Time) string {
	text, silent := "", ""
	switch {
	case app.Status.ObservedGeneration < app.Generation:
		text, silent = "the last edit of the application to be observed", cli.Unanswered(app, app.Status.ObservedGeneration, now)
	case rel != nil && rel.Status.ObservedGeneration < rel.Generation:
		text, silent = "what was asked for last to begin", cli.Unanswered(rel, rel.Status.ObservedGeneration, now)
		if rel.Status.Strategy == nil {
			text = "clusters to be chosen"
		}
	}
	if silent != "" {
		text += "; " + silent
	}
	return text
}

// complete reports whether the newest Release is, by a status that has seen the last edit of both.
func complete(app *shipper.Application, rel *shipper.Release) bool {
	return strategy.Complete(rel) && app.Status.ObservedGeneration >= app.Generation && rel.Status.ObservedGeneration >= rel.Generation
}

// waitsFor has the messages of the strategy's conditions that are not met.
func waitsFor(rel *shipper.Release) []string {
	if rel.Status.Strategy == nil {
		return []string{"clusters to be chosen"}
	}
	var out []string
	for _, c := range rel.Status.Strategy.Conditions {
		if c.Status != corev1.ConditionTrue && c.Message != "" {
			out = append(out, c.Message)
		}
	}
	p := progressOf(rel)
	if len(out) == 0 && rel.Status.Strategy.State.WaitingForCommand == shipper.StrategyStateTrue {
		out = []string{"a command: shipperctl rollout advance, or another targetStep"}
		if p != nil && p.Failed != "" {
			out = []string{"a user, since it has failed: `shipperctl rollout abort` gives the release up, `shipperctl rollout advance` " +
				"tries it again"}
		}
	}
	if asked := p.asked(rel); asked != nil && asked.RejectedBy == "" && !asked.Enough(asked.Required) {
		out = append(out, "an approval by another user than the requester: shipperctl rollout approve")
	}
	if p != nil {
		if text := awaitsRetry(p, rel.Status.Progress); text != "" {
			out = append(out, text)
		}
	}
	if p != nil && p.State == shipper.AdvancingAwaitingFailedClusters {
		out = append(out, p.Message)
	}
	if p != nil && p.Hold != "" && !strategy.Complete(rel) {
		out = append(out, "the end of a hold: shipperctl rollout resume")
	}
	return out
}

// problems are the failed conditions of the Application and of its newest Release, but not those that the strategy waits for, and what a
// deletion waits for.
func problems(o *observed) []string {
	conditions := slices.Clone(o.app.Status.Conditions)
	if n := len(o.releases); n > 0 {
		conditions = append(conditions, o.releases[n-1].Status.Conditions...)
	}
	var out []string
	for _, c := range conditions {
		if c.Status != corev1.ConditionFalse && c.Type != shipper.ApplicationDeleting {
			continue
		}
		switch c.Type {
		case shipper.ApplicationDeleting, shipper.ApplicationReleaseSynced, shipper.ApplicationResourcesSelected,
			shipper.ApplicationValidHistory, shipper.ReleaseScheduled:
		case shipper.ReleaseStrategyExecuted:
			if c.Reason != shipper.StrategyExecutionFailed {
				continue
			}
		default:
			continue
		}
		if text := c.Type + ": " + cmp.Or(c.Message, c.Reason); !slices.Contains(out, text) {
			out = append(out, text)
		}
	}
	return out
}

// blocksOf are the blocks in the way of a change.
func blocksOf(o *observed, c block.Change, now time.Time) blockSummary {
	var bearing []*shipper.RolloutBlock
	for _, b := range o.blocks {
		if block.Bears(b, o.app.Namespace, shipper.GlobalBlocksNamespace) {
			bearing = append(bearing, b)
		}
	}
	annotations := o.app.Annotations
	if n := len(o.releases); n > 0 {
		annotations = o.releases[n-1].Annotations
	}
	out := blockSummary{Unread: o.unread}
	overrides := block.Overrides(annotations)
	verdict := block.Judge(bearing, overrides, c, now)
	for _, b := range verdict.Effective {
		out.InEffect = append(out.InEffect, describe(b))
	}
	for _, b := range verdict.Overridden {
		out.Overridden = append(out.Overridden, describe(b))
	}
	if next, at := block.Upcoming(bearing, overrides, c, now); next != nil {
		out.Next, out.NextStart = block.Name(next).String(), at
	}
	return out
}

func describe(b *shipper.RolloutBlock) string {
	return block.Name(b).String() + " (" + b.Spec.Message + "; " + b.Spec.Author.Name + ")"
}
