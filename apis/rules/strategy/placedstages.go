// SPDX-License-Identifier: Apache-2.0

package strategy

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"shipper.dev/shipper/apis/rules/stamp"
	"shipper.dev/shipper/apis/rules/waves"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// stageByWaves fills in the stages of the position: first the clusters, then what the wave waits for at its end.
func (p *placing) stageByWaves(now metav1.Time) {
	rel := p.contender().Release
	r := &rollout{Observed: p.Observed, roles: p.roles, uncovered: map[string]string{}, now: now}
	p.byWaves.gated = r
	if !p.byWaves.at.Exists(p.byWaves.strategy) {
		r.fault = fmt.Sprintf("failed to execute strategy: %q",
			fmt.Sprintf("no %s, step %d, in strategy for Release %q", p.byWaves.at.In(p.byWaves.strategy), p.byWaves.at.Step,
				rel.Namespace+"/"+rel.Name))
		return
	}
	if !p.contender().Scheduled() {
		return
	}
	r.step = p.byWaves.strategy.StepAt(p.byWaves.at.Wave, p.byWaves.at.Step)
	lacks, waiting := p.lackingInWaves()
	r.converged, r.held = p.converged(), p.Blocked != "" && len(lacks) > 0
	r.stages = append([]stage{{
		condition: shipper.StrategyContenderAchievedInstallation,
		waiting: func(state *shipper.ReleaseStrategyState) *shipper.StrategyState {
			return &state.WaitingForInstallation
		},
		achieved: r.converged, message: p.describeLacks(lacks, waiting), lacking: func() []Lack { return lacks },
	}}, r.gates()...)
}

// lackingInWaves are the clusters that the position waits for now: those that are moving; else those of earlier waves that keep others from
// beginning; else all. waiting is how many others wait for their turn.
func (p *placing) lackingInWaves() (lacks []Lack, waiting int) {
	var moving, behind, rest, blocked []string
	for _, cluster := range p.clusters {
		switch concerned := p.concerns(cluster); {
		case p.byWaves.failed[cluster] && (!concerned || !p.hasFailedEverywhere()), p.isPlaced(cluster) && !p.returns(cluster):
		case !concerned && (!p.reached(cluster) || p.isBlocked(cluster)): // nothing waits for it
		case !concerned:
			behind = append(behind, cluster)
		case p.isBlocked(cluster):
			blocked = append(blocked, cluster)
		case slices.Contains(p.next, cluster) || p.returns(cluster):
			moving = append(moving, cluster)
		default:
			rest = append(rest, cluster)
		}
	}
	out := slices.Concat(blocked, rest)
	switch {
	case len(moving) > 0:
		out, waiting = slices.Concat(moving, blocked), len(rest)
	case slices.ContainsFunc(blocked, func(cluster string) bool { return slices.Contains(p.listed, cluster) }):
		out, waiting = blocked, len(rest) // they keep their slots
	case len(behind) > 0 && slices.ContainsFunc(rest, func(cluster string) bool { return p.reached(cluster) && p.reachable(cluster) }):
		out, waiting = behind, len(rest)
	}
	known := map[string]Lack{}
	for _, lack := range p.lacking() {
		known[lack.Cluster] = lack
	}
	for _, cluster := range out {
		lacks = append(lacks, p.lackIn(cluster, known))
	}
	return lacks, waiting
}

// lackIn is what a cluster lacks.
func (p *placing) lackIn(cluster string, known map[string]Lack) Lack {
	lack, is := known[cluster]
	_, hasWave := p.byWaves.assigned[cluster]
	switch {
	case p.isBlocked(cluster):
		return Lack{
			Cluster: cluster, Reachable: p.reachable(cluster), Blocked: true, Reason: shipper.RolloutsBlocked, Message: p.BlockedIn[cluster],
		}
	case !hasWave:
		return Lack{Cluster: cluster, Reachable: true, Reason: shipper.NoWaveForClusters, Message: "no wave of the strategy selects it"}
	case p.returns(cluster):
		return Lack{Cluster: cluster, Reachable: p.reachable(cluster), Message: fmt.Sprintf("it goes back to Release %q",
			p.Releases[p.earlier(cluster)].Release.Name)}
	case is:
		return lack
	}
	return Lack{Cluster: cluster, Reachable: p.reachable(cluster)}
}

// describeLacks says which clusters lack what, those first that are not merely on their way.
func (p *placing) describeLacks(lacks []Lack, waiting int) string {
	texts := namedLacks(slices.Clone(lacks), waiting)
	if rel := p.contender().Release; p.isHeld() {
		texts = append(texts, "none begins while spec.hold is set: "+shortened(rel.Spec.Hold))
	}
	return fmt.Sprintf("clusters pending: %s. for more details try `kubectl describe it %s`", strings.Join(texts, "; "),
		p.contender().Release.Name)
}

// stepStateByWaves is stepState by waves.
func (p *placing) stepStateByWaves() StepState {
	s := p.byWaves.gated.stepState()
	s.Available, s.Incomplete, s.Waves = p.placedClusters(), nil, p.figures()
	if s.Begun {
		s.Incomplete = p.incomplete()
	}
	s.DoneWaveUnhealthy = len(s.Lacking) > 0 && !slices.ContainsFunc(s.Lacking, func(l Lack) bool { return p.concerns(l.Cluster) })
	s.Late, s.OverBudget = p.late()
	s.Failed, s.Lagging = p.failedClusters(p.completesByWaves()), p.lagging()
	return s
}

// statusByWaves is the contender's new status by waves.
func (p *placing) statusByWaves(now metav1.Time) shipper.ReleaseStatus {
	rel, r := p.contender().Release, p.byWaves.gated
	status := *rel.Status.DeepCopy()
	if r.stages != nil {
		status.Strategy = r.strategyStatus(rel, now)
		if awaited, _ := r.awaited(); awaited == nil {
			status.AchievedStep = &shipper.AchievedStep{Wave: p.byWaves.at.Wave}
		}
	}
	status.Conditions = shipper.SetCondition(status.Conditions, r.executed(rel), now)
	complete := shipper.Condition{Type: shipper.ReleaseComplete, Status: corev1.ConditionTrue}
	if !p.completesByWaves() {
		complete.Status, complete.Reason = corev1.ConditionFalse, notComplete(rel)
		complete.Message = cmp.Or(p.lagging(), fmt.Sprintf("wave %s, the last, is not done yet", lastWaveName(p.byWaves.strategy)))
		if !p.byWaves.isLastWave() {
			complete.Message = fmt.Sprintf("targetWave is %d, the last wave is %d", p.byWaves.at.Wave, p.byWaves.strategy.LastWave())
		}
	}
	status.Conditions = shipper.SetCondition(status.Conditions, complete, now)
	status.Waves, status.FailedClusters = p.figures(), p.failedClusters(p.completesByWaves())
	return status
}

func lastWaveName(s *shipper.RolloutStrategy) string { return s.Waves[s.LastWave()].Name }

// completesByWaves reports whether the contender is complete. One that completed stays complete when a cluster joins or is lost.
func (p *placing) completesByWaves() bool {
	return p.everywhere() || Complete(p.contender().Release) && p.byWaves.isLastWave()
}

// figures are status.waves of the contender.
func (p *placing) figures() []shipper.ReleaseWave {
	var out []shipper.ReleaseWave
	for i, wave := range p.byWaves.strategy.Waves {
		one := shipper.ReleaseWave{Name: wave.Name}
		for _, cluster := range p.byWaves.assigned.In(int32(i), p.clusters) {
			p.count(&one, cluster)
		}
		out = append(out, one)
	}
	return out
}

// count counts a cluster of a wave.
func (p *placing) count(f *shipper.ReleaseWave, cluster string) {
	moves := p.reached(cluster) && slices.Contains(p.next, cluster) || p.returns(cluster)
	f.Clusters++
	switch {
	case p.isPlaced(cluster) && p.reached(cluster):
		f.Achieved++
	case p.isBlocked(cluster):
		if f.Blocked++; len(f.BlockedClusters) < maxMovingClusters {
			f.BlockedClusters = append(f.BlockedClusters, cluster)
		}
		if slices.Contains(p.listed, cluster) && p.reached(cluster) && !p.byWaves.failed[cluster] {
			countMoving(f, cluster)
		}
	case p.byWaves.failed[cluster]:
		if f.Failed++; len(f.FailedClusters) < maxMovingClusters {
			f.FailedClusters = append(f.FailedClusters, cluster)
		}
	case moves:
		countMoving(f, cluster)
	}
}

// storedFailures are the clusters that have failed by the status, that the contender still has, and that have not become ready since.
func (p *placing) storedFailures() (out []string) {
	for _, cluster := range p.contender().Release.Status.FailedClusters {
		if slices.Contains(p.clusters, cluster) && !p.isPlaced(cluster) {
			out = append(out, cluster)
		}
	}
	return out
}

// lagging names the clusters that have failed within maxFailures and are not ready; empty if there are none.
func (p *placing) lagging() string {
	lagging := p.storedFailures()
	if len(lagging) == 0 {
		return ""
	}
	return waves.Counted(lagging) + " failed within maxFailures; this Release is complete once it is ready there"
}

// failedClusters are those that stay counted. After a move back they are those that are not ready; a complete Release has none.
func (p *placing) failedClusters(complete bool) []string {
	if complete {
		return nil
	}
	back := stamp.WentBack(p.contender().Release)
	failed := slices.DeleteFunc(p.storedFailures(), func(cluster string) bool {
		return back && !p.reached(cluster) && !p.returns(cluster)
	})
	return slices.Clip(failed)
}

// late are the clusters that fail if the deadline ends now, where the strategy lets clusters fail: they can be reached, were asked for what
// they lack, and the position waits for them. over says which maxFailures they exceed then.
func (p *placing) late() (names []string, over string) {
	if p.byWaves.gated.stages == nil || p.byWaves.unbounded || !waves.HasBudget(p.byWaves.strategy) {
		return nil, ""
	}
	for _, lack := range p.lacking() {
		cluster := lack.Cluster
		if lack.Reachable && p.awaits(cluster) && !p.returns(cluster) && !p.isBlocked(cluster) && slices.Contains(p.listed, cluster) {
			names = append(names, cluster)
		}
	}
	if len(names) == 0 {
		return nil, ""
	}
	failed := slices.Sorted(slices.Values(slices.Concat(p.storedFailures(), names)))
	return names, p.byWaves.assigned.OverBudget(p.byWaves.strategy, p.clusters, failed)
}
