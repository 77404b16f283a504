// SPDX-License-Identifier: Apache-2.0

package strategy

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"shipper.dev/shipper/apis/rules/waves"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// sum makes the stages of the position of those of the clusters.
func (w *byWave) sum() {
	if slices.ContainsFunc(w.names, func(cluster string) bool { return w.catchesUp(w.parts[cluster]) }) {
		w.Checks = nil // a run that measures the cluster, too, begins
	}
	lacking, waiting := w.awaitedParts()
	w.converged = len(lacking) == 0 && waiting == 0 && !w.before.isOpen()
	w.stages = append([]stage{}, slices.Concat(w.before.stages, w.merged(lacking, waiting), w.gates())...) // not nil: it is planned
}

// concerns reports whether the position is achieved only if a cluster has what is asked of it. The clusters of waves that are done are
// repaired beside the others, and only the last position needs them. Each position waits for those that recover, and no longer than
// progressDeadline.
func (w *byWave) concerns(p *part) bool {
	if p.wave < 0 && !p.due {
		return w.isLast() && slices.Contains(chosenOf(w.contender()), p.cluster)
	}
	if p.isRecovering() {
		return true
	}
	return p.wave == w.at.Wave || p.due && (p.wave > w.at.Wave || w.isLast() || p.wave < 0)
}

// awaitedParts are the clusters that the position waits for now: those that are moving; else those of earlier waves that keep others from
// beginning; else all. waiting is how many others wait for their turn.
func (w *byWave) awaitedParts() (lacking []*part, waiting int) {
	var moving, behind, rest, blocked []*part
	failed := w.isFailed()
	for _, cluster := range w.names {
		p := w.parts[cluster]
		concerned := w.concerns(p)
		switch {
		case p.state == waves.Done || !p.due && !concerned || p.failed && !p.recovers && !failed:
		case !concerned && w.isBlocked(p): // nothing waits for it
		case !concerned:
			behind = append(behind, p)
		case w.isBlocked(p):
			blocked = append(blocked, p)
		case p.acts || p.recovers:
			moving = append(moving, p)
		default:
			rest = append(rest, p)
		}
	}
	switch {
	case len(moving) > 0:
		w.blocked = blocked
		return moving, len(rest)
	case len(rest) == 0:
		return blocked, 0
	case slices.ContainsFunc(blocked, func(p *part) bool { return p.state == waves.Moving || p.state == waves.Unready }):
		return blocked, len(rest) // they keep their slots
	case len(behind) > 0 && slices.ContainsFunc(rest, func(p *part) bool { return p.state == waves.Waiting }):
		return behind, len(rest)
	}
	return slices.Concat(blocked, rest), 0
}

// isFailed reports whether all clusters of the wave in front have failed, as when the others have left: it is not passed without one.
func (w *byWave) isFailed() bool {
	front := w.assigned.In(w.at.Wave, chosenOf(w.contender()))
	return len(front) > 0 && !slices.ContainsFunc(front, func(cluster string) bool { return !w.parts[cluster].failed })
}

// kinds are the stages of a position, in the order in which they are achieved.
var kinds = []string{
	shipper.StrategyContenderAchievedInstallation, shipper.StrategyContenderAchievedCapacity, shipper.StrategyContenderAchievedTraffic,
	shipper.StrategyIncumbentAchievedTraffic, shipper.StrategyIncumbentAchievedCapacity,
}

// merged are the stages of several clusters together.
func (w *byWave) merged(parts []*part, waiting int) []stage {
	out := []stage{}
	if len(parts) == 0 {
		return w.achieved()
	}
	for _, kind := range kinds {
		var one stage
		var lacks []Lack
		for _, p := range parts {
			i := slices.IndexFunc(p.stages, func(s stage) bool { return s.condition == kind })
			switch {
			case i >= 0 && p.state != "":
				s := p.stages[i]
				if one.condition == "" {
					one = s
					one.achieved = true
				}
				if s.achieved || kind == shipper.StrategyContenderAchievedInstallation && p.givesUp() {
					continue
				}
				if one.achieved {
					one.needs = s.needs
				}
				one.achieved = false
				lacks = append(lacks, w.noted(p, p.lackIn(s)))
			case kind == shipper.StrategyContenderAchievedInstallation:
				if one.condition == "" {
					one = installStage(&participant{release: w.contender()})
				}
				one.achieved = false
				lacks = append(lacks, w.noted(p, w.unknown(p)))
			}
		}
		if one.condition == "" {
			continue
		}
		one.lacking = func() []Lack { return lacks }
		one.message = w.message(kind, lacks, waiting)
		out = append(out, one)
	}
	return out
}

// achieved are the stages of a position that all clusters have.
func (w *byWave) achieved() []stage {
	out := []stage{}
	for _, kind := range kinds {
		for _, cluster := range w.names {
			p := w.parts[cluster]
			i := slices.IndexFunc(p.stages, func(s stage) bool { return s.condition == kind })
			if i >= 0 && p.wave == w.at.Wave {
				s := p.stages[i]
				s.achieved = true
				out = append(out, s)
				break
			}
		}
	}
	return out
}

func firstOfAll(all []Lack) Lack {
	if len(all) == 0 {
		return Lack{}
	}
	return all[0]
}

// noted is what a cluster lacks, and whether it recovers: where RolloutBlocks hold it, what they say.
func (w *byWave) noted(p *part, l Lack) Lack {
	l.Recovering = p.isRecovering()
	if w.isBlocked(p) {
		l.Blocked, l.Reason, l.Message = true, shipper.RolloutsBlocked, w.BlockedIn[p.cluster]
	}
	return l
}

// unknown is what a cluster lacks in which nothing is planned.
func (w *byWave) unknown(p *part) Lack {
	if p.wave < 0 {
		return Lack{Cluster: p.cluster, Reason: shipper.NoWaveForClusters, Message: "no wave of the strategy selects it"}
	}
	var out *Lack
	for _, release := range p.Releases {
		if release.Capacity == nil {
			continue
		}
		for _, c := range release.Capacity.Status.Clusters {
			if l := lackOf(p.cluster, c.Conditions); out == nil || !l.Reachable {
				out = &l
			}
		}
	}
	if out == nil {
		return Lack{Cluster: p.cluster}
	}
	return *out
}

// maxNamed bounds the clusters that a message names.
const maxNamed = 5

// namedLacks sorts what clusters lack, first that of clusters that are not merely on their way, and names some of it.
func namedLacks(lacks []Lack, waiting int) (texts []string) {
	slices.SortStableFunc(lacks, func(a, b Lack) int { return cmp.Compare(isOnItsWay(a), isOnItsWay(b)) })
	for _, l := range lacks[:min(len(lacks), maxNamed)] {
		texts = append(texts, strings.TrimSuffix(l.Cluster+": "+shortened(l.Message), ": "))
	}
	if more := len(lacks) - len(texts); more > 0 {
		texts = append(texts, fmt.Sprintf("and %d more", more))
	}
	if waiting > 0 {
		texts = append(texts, fmt.Sprintf("%d more wait for their turn", waiting))
	}
	return texts
}

// message says which clusters lack what.
func (w *byWave) message(kind string, lacks []Lack, waiting int) string {
	texts := namedLacks(lacks, waiting)
	if n := min(len(w.blocked), maxNamed); n > 0 {
		p := w.blocked[0]
		text := fmt.Sprintf("not in %s: %s", bracketed(namesOf(w.blocked[:n])), w.BlockedIn[p.cluster])
		if more := len(w.blocked) - n; more > 0 {
			text += fmt.Sprintf(", nor in %d more", more)
		}
		texts = append(texts, text)
	}
	if w.isHeld() {
		texts = append(texts, "none begins while spec.hold is set: "+shortened(w.rel.Spec.Hold))
	}
	what, short := "its chart is not installed", "it"
	name := w.rel.Name
	switch kind {
	case shipper.StrategyContenderAchievedCapacity:
		what, short = "it hasn't achieved capacity", "ct"
	case shipper.StrategyContenderAchievedTraffic:
		what, short = "it hasn't achieved traffic", "tt"
	case shipper.StrategyIncumbentAchievedCapacity:
		what, short, name = "the Release before it hasn't achieved capacity", "ct", ""
	case shipper.StrategyIncumbentAchievedTraffic:
		what, short, name = "the Release before it hasn't achieved traffic", "tt", ""
	}
	return fmt.Sprintf("release %q: %s in clusters: %s. for more details try `kubectl describe %s`", w.rel.Name, what,
		strings.Join(texts, "; "), strings.TrimSpace(short+" "+name))
}

func namesOf(parts []*part) (out []string) {
	for _, p := range parts {
		out = append(out, p.cluster)
	}
	return out
}

func isOnItsWay(l Lack) int {
	if l.Reason == "" || l.Reason == shipper.InProgress {
		return 1
	}
	return 0
}

// stepState is how far the position is.
func (w *byWave) stepState() StepState {
	s := w.rollout.stepState()
	s.Waves, s.Incomplete = w.figures(), nil
	s.DoneWaveUnhealthy = len(s.Lacking) > 0 && !slices.ContainsFunc(s.Lacking, func(l Lack) bool { return w.concerns(w.parts[l.Cluster]) })
	s.Late, s.OverBudget = w.late()
	for _, cluster := range w.names {
		if p := w.parts[cluster]; s.Begun && p.state != waves.Done && (p.due || w.concerns(p)) {
			s.Incomplete = append(s.Incomplete, cluster)
		}
	}
	return s
}
