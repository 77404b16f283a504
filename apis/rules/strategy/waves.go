// SPDX-License-Identifier: Apache-2.0

package strategy

import (
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"shipper.dev/shipper/apis/rules/position"
	"shipper.dev/shipper/apis/rules/stamp"
	"shipper.dev/shipper/apis/rules/waves"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// byWave is the state while a plan by waves is computed. Each cluster is planned alone, as if the Application were in no other: its
// incumbent is the Release that serves there, and no cluster waits for another. How many change at the same time, waves.Begin decides.
type byWave struct {
	*rollout
	rel      *shipper.Release
	strategy *shipper.RolloutStrategy
	at       position.Position
	assigned waves.Assigned
	// live and leaving are the Releases that are observed, and those that are being deleted, by cluster.
	live, leaving []*located
	// parts are all clusters that any Release runs in, or is to run in, by name; names are sorted.
	parts map[string]*part
	names []string
	// blocked are the clusters that RolloutBlocks hold, where the position waits for others first.
	blocked []*part
	// unbounded is true for what waits for no slot: a move back, an abort, an immediate rollback and the repair of what is complete.
	unbounded bool
}

// part is the plan for one cluster.
type part struct {
	*rollout
	cluster string
	// index has, for each Release of the part, its index in the whole plan; leaving the same of Releases that are being deleted.
	index, leaving []int
	// wave of the cluster; -1 if it has none. due is true if the position asks something of the contender there.
	wave int32
	due  bool
	// state of the cluster; empty if nothing is asked, or it is not known what is there.
	state waves.State
	// acts is true if what the part wants is written.
	acts bool
	// failed is true if the cluster has missed progressDeadline within maxFailures, and counts; recovery is what the status says of one that
	// was ready again. recovers is true if one that counts is to move with the others, once the status says so.
	failed   bool
	recovery *shipper.RecoveringCluster
	recovers bool
}

// planWaves is Make for an Application whose contender has waves.
func (r *rollout) planWaves(now metav1.Time) Plan {
	w := &byWave{rollout: r, rel: r.contender().Release, parts: map[string]*part{}}
	w.strategy, w.at, w.assigned = w.rel.Spec.Environment.Strategy, position.Of(w.rel), waves.Parse(w.rel)
	for _, release := range r.Releases {
		w.live = append(w.live, locate(release))
	}
	for _, release := range r.Leaving {
		w.leaving = append(w.leaving, locate(release))
	}
	w.unbounded = Complete(w.rel) || w.Returning || stamp.WentBack(w.rel) || IsImmediateRollback(w.rel)
	w.before = r.judgeBefore()
	w.newest().ahead = w.before.isAhead()
	ready := r.fault == "" && r.contender().Scheduled()
	w.split(ready)
	if ready {
		w.begin()
		w.sum()
	}
	lagging := w.lagging()
	writes := make([]Write, len(r.Releases))
	for i := range r.Releases {
		writes[i] = w.write(i)
		r.held = r.held || r.Blocked != "" && !writes[i].Empty()
	}
	covered := w.covered(ready)
	plan, failures := Plan{Outcomes: make([]Outcome, len(r.Releases)), Leaving: w.planLeaving(now)}, waves.Failures{}
	if r.Blocked == "" {
		plan.Covered = covered
	}
	for i, release := range r.Releases {
		outcome := Outcome{Role: r.roles[i]}
		if r.Blocked == "" {
			outcome.Write = writes[i]
		}
		if r.roles[i] == Contender {
			outcome.Status = r.contenderStatus(now, lagging)
			failures = w.failuresNow(shipper.ConditionTrue(outcome.Status.Conditions, shipper.ReleaseComplete))
			outcome.Status.Waves, outcome.Status.FailedClusters = w.figures(), failures.Counted
			outcome.Status.RecoveringClusters = failures.Recovering
		} else {
			outcome.Status = r.bystanderStatus(release.Release, r.roles[i], now)
		}
		plan.Outcomes[i] = outcome
	}
	plan.Step = w.stepState()
	plan.Step.Failed, plan.Step.Recovering, plan.Step.Lagging = failures.Counted, w.recoveries(failures.Recovering), lagging
	return plan
}

// newest is the contender by cluster.
func (w *byWave) newest() *located { return w.live[len(w.live)-1] }

// split makes the parts.
func (w *byWave) split(ready bool) {
	all := map[string]bool{}
	for _, release := range slices.Concat(w.live, w.leaving) {
		maps.Copy(all, release.targeted())
		maps.Copy(all, release.chosen)
	}
	w.names = slices.Sorted(maps.Keys(all))
	chosen := chosenOf(w.contender())
	for _, cluster := range w.names {
		p := w.part(cluster)
		_, is := slices.BinarySearch(chosen, cluster)
		if wave, known := w.assigned[cluster]; known && is {
			p.wave = wave
		}
		// After a move back a cluster without an earlier Release keeps what it has: nothing else would serve there.
		p.due = p.wave >= 0 && (!w.isAhead(p) || w.newest().isBegun(cluster) && incumbentOf(p.Releases) != nil) || w.bringsBack(p)
		w.observeFailures(p)
		if w.parts[cluster] = p; ready && p.due && p.fault == "" {
			p.decide()
			p.state = w.stateOf(p)
		}
	}
}

// begin decides in which clusters the plan is written.
func (w *byWave) begin() {
	var all []waves.Cluster
	order := func(cluster string) int { // one that recovers has got its turn already
		return 2*boolOrder(w.parts[cluster].recovery != nil) + boolOrder(w.newest().isBegun(cluster))
	}
	for _, cluster := range slices.SortedStableFunc(slices.Values(w.names), func(a, b string) int { return order(b) - order(a) }) {
		p := w.parts[cluster]
		if p.state == "" || p.wave < 0 {
			continue
		}
		alone := w.unbounded || len(p.Releases) == 1 && len(p.Leaving) == 0 || w.returns(p) || w.isAhead(p)
		state := p.state
		if w.isBlocked(p) && state == waves.Waiting {
			state = waves.Blocked
		}
		switch {
		case !p.lags():
		case w.isReadyAgain(p):
			state = waves.Recovered
		default:
			state = waves.Failed
		}
		all = append(all, waves.Cluster{Name: cluster, Wave: p.wave, State: state, Unbounded: alone})
	}
	begins := waves.Begin(w.strategy, all)
	if w.isHeld() {
		begins = nil
	}
	for _, cluster := range w.names {
		p := w.parts[cluster]
		begins := slices.Contains(begins, cluster)
		if p.lags() { // nothing is requested before the status says that it recovers
			p.recovers = begins
			continue
		}
		if p.recovery != nil && p.state == waves.Unready {
			begins = false // nothing more is requested before what was requested is ready
		}
		may := !w.isHeldBefore(p) && (p.state == waves.Done || begins)
		p.acts = !w.isBlocked(p) && (may || p.state == waves.Moving || p.state != "" && (w.returns(p) || w.bringsBack(p)))
	}
}

// IsImmediateRollback reports whether a Release with waves is a rollback that was made at its last position, to one that was complete. One
// that has achieved an earlier position was moved there, whatever its note of moves says.
func IsImmediateRollback(rel *shipper.Release) bool {
	at, achieved := position.Of(rel), position.Achieved(rel)
	return rel.Annotations[shipper.ReleaseRollbackOfAnnotation] != "" && stamp.Moved(rel).Count == 0 &&
		at == position.Last(rel.Spec.Environment.Strategy) && at != position.Position{} && (achieved.Wave < 0 || !achieved.Before(at))
}

// isBlocked reports whether RolloutBlocks hold a cluster alone. Earlier requests to it stay as they are.
func (w *byWave) isBlocked(p *part) bool { return w.BlockedIn[p.cluster] != "" }

// bringsBack reports whether a cluster that the position does not reach has a Release that is being deleted, and one that served before
// it: an abort returns the cluster, also when it ends amid the waves of a newer Release, or of one with other waves.
func (w *byWave) bringsBack(p *part) bool {
	return (p.wave < 0 || w.isAhead(p)) && p.fault == "" && len(p.Leaving) > 0 && incumbentOf(p.Releases) != nil
}

// returns reports whether a Release newer than the contender leaves a cluster: an abort.
func (w *byWave) returns(p *part) bool {
	own, err := stamp.Generation(w.rel)
	return slices.ContainsFunc(p.Leaving, func(r Release) bool {
		generation, broken := stamp.Generation(r.Release)
		return err == nil && broken == nil && generation > own
	})
}

// isHeld reports whether a user holds the Release: no cluster begins, and those that have begun get there. A run that holds its Release
// waits for the first step itself.
func (w *byWave) isHeld() bool {
	return w.rel.Spec.Hold != "" && !stamp.HeldByRun(w.rel) && !Complete(w.rel) && !w.Returning && !stamp.WentBack(w.rel)
}

func boolOrder(is bool) int {
	if is {
		return 1
	}
	return 0
}

// stateOf is what a cluster does. It is empty while what runs there is not known, and while a cluster that has not begun cannot be reached:
// such a cluster takes no slot.
func (w *byWave) stateOf(p *part) waves.State {
	if p.atPosition() {
		return waves.Done
	}
	if w.newest().isBegun(p.cluster) {
		switch {
		case !p.isStep(w.strategy):
			return waves.Moving
		case !p.isReady():
			return waves.Unready
		}
		return waves.Waiting
	}
	for _, s := range p.participants {
		if s.capacity.exists && (s.capacity.settling[p.cluster] && !s.capacity.adopts || !s.capacity.reachable(p.cluster)) {
			return ""
		}
	}
	if p.contenderPart().capacity.adopts {
		return waves.Moving
	}
	return waves.Waiting
}

// contenderPart is what the part moves of the contender.
func (p *part) contenderPart() *participant { return p.participants[len(p.Releases)-1] }

// atPosition reports whether a cluster has all that is asked of it. Where nothing is asked of the contender, it need not be installed.
func (p *part) atPosition() bool {
	return !slices.ContainsFunc(p.ownStages(), func(s stage) bool { return !s.achieved })
}

// ownStages are the stages that concern the cluster alone.
func (p *part) ownStages() []stage {
	var out []stage
	for _, s := range p.stages {
		if s.lacking == nil || s.condition == shipper.StrategyContenderAchievedInstallation && p.givesUp() {
			continue
		}
		out = append(out, s)
	}
	return out
}

// givesUp reports whether nothing is asked of the contender in the cluster.
func (p *part) givesUp() bool { return p.step.Capacity.Contender == 0 && p.step.Traffic.Contender == 0 }

// moved are what the part moves of contender and incumbent; the incumbent is nil if there is none.
func (p *part) moved() (contender, incumbent *participant) {
	for i, other := range p.participants {
		if p.roles[i] == Incumbent {
			incumbent = other
		}
	}
	return p.contenderPart(), incumbent
}

// isReady reports whether all that was requested in a cluster is known to be there.
func (p *part) isReady() bool {
	contender, incumbent := p.moved()
	for _, one := range []*participant{contender, incumbent} {
		if one != nil && (!one.capacity.exists || !one.traffic.exists || !one.capacity.readyIn(p.cluster) || !one.traffic.readyIn(p.cluster)) {
			return false
		}
	}
	return true
}

// isStep reports whether what was requested in a cluster is that of an earlier position: a step of the strategy other than the one that is
// asked for now, or nothing of the contender. Between two of them a cluster has begun to change.
func (p *part) isStep(s *shipper.RolloutStrategy) bool {
	contender, incumbent := p.moved()
	asked := func(of *participant) [2]int64 {
		return [2]int64{of.capacity.asked[p.cluster], of.traffic.asked[p.cluster]}
	}
	is := asked(contender)
	if !installedIn(contender.release, p.cluster) && speaks(contender.release.Installation) {
		return false // it begins
	}
	if is == [2]int64{} {
		return incumbent == nil || incumbent.traffic.asked[p.cluster] > 0
	}
	wanted := [2]int64{contender.capacity.wanted, contender.traffic.wanted}
	return slices.ContainsFunc(s.Steps, func(step shipper.RolloutStrategyStep) bool {
		return is == [2]int64{int64(step.Capacity.Contender), int64(step.Traffic.Contender)} && (incumbent == nil ||
			asked(incumbent) == [2]int64{int64(step.Capacity.Incumbent), int64(step.Traffic.Incumbent)} &&
				(is != wanted || asked(incumbent) != [2]int64{incumbent.capacity.wanted, incumbent.traffic.wanted})) &&
			(incumbent != nil || is != wanted)
	})
}
