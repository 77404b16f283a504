// SPDX-License-Identifier: Apache-2.0

package strategy_test

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"shipper.dev/shipper/apis/rules/progress"
	"shipper.dev/shipper/apis/rules/stamp"
	"shipper.dev/shipper/apis/rules/strategy"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

var seeds = flag.Uint64("seeds", 2_000, "how many random rollouts to play; `make nightly` plays 100,000")

var places = []string{"a", "b", "c"}

// randomWalk changes an app at random and checks after each change that no cluster serves less than it must.
type randomWalk struct {
	*app
	t    *testing.T
	dice *rand.Rand
	// floor is, per cluster, the minimum of Pods in traffic until the next change from outside.
	floor map[string]int32
	// lowered are the Releases that were moved back last, by whomever.
	lowered map[string]bool
	// acted counts what Releases did by themselves.
	acted int
	log   []string
}

// known are seeds that have failed once: nothing explained why a Release waited whose Pods and traffic in a lost cluster waited for each
// other.
var known = []uint64{77292}

func TestWhateverHappensTheRolloutIsSafeAndConverges(t *testing.T) {
	play := known
	for seed := range *seeds {
		play = append(play, seed)
	}
	for _, seed := range play {
		g := &randomWalk{app: newApp(), t: t, dice: rand.New(rand.NewPCG(seed, 1)), floor: map[string]int32{}, lowered: map[string]bool{}}
		g.play()
		if t.Failed() {
			t.Fatalf("seed %d:\n%s", seed, strings.Join(g.log, "\n"))
		}
	}
}

func (g *randomWalk) play() {
	g.preview = map[string]bool{places[g.dice.IntN(len(places))]: true}
	g.newRelease()
	for range 5 + g.dice.IntN(40) {
		if g.dice.IntN(4) == 0 {
			g.edit()
			g.setFloor()
		}
		g.turn()
	}
	g.rest()
	g.checkExplained()
	g.checkServed()
	g.down, g.broken, g.blocked = map[string]bool{}, map[string]bool{}, ""
	g.setFloor()
	g.rest()
	g.checkAchieved()
}

// rest makes plans until nothing changes any more.
func (g *randomWalk) rest() {
	before := g.observable()
	for quiet, n := 0, 0; quiet < 12; n++ {
		if n > 400 {
			g.t.Error("it never comes to rest")
			return
		}
		quiet++
		acted := g.acted
		wrote := !g.turn() || g.acted > acted
		after := g.observable()
		if wrote || !reflect.DeepEqual(before, after) {
			quiet = 0
		}
		before = after
	}
}

// turn makes one plan, carries it out and lets some of the work be done; it returns false when anything was written.
func (g *randomWalk) turn() bool {
	before := map[string]map[string]uint32{}
	for _, r := range g.releases {
		weights := map[string]uint32{}
		for _, c := range r.Traffic.Spec.Clusters {
			weights[c.Name] = c.Weight
			if run := g.runs[r.Release.Name][c.Name]; c.AsFound && run != nil && run.traffic > 0 {
				weights[c.Name] = math.MaxInt32 // whatever is asked for, it is what was found
			}
		}
		before[r.Release.Name] = weights
	}
	rels := slices.Clone(g.releases)
	g.reconcile()
	defer g.byItself(g.plan.Step) // as observed before the clusters go on
	for i, outcome := range g.plan.Outcomes {
		g.checkRaises(rels[i], outcome, before[rels[i].Release.Name])
	}
	g.checkFloor()
	g.checkStates()
	g.checkMarks()
	g.now = g.now.Add(time.Second)
	for _, hand := range []func(*strategy.Release){g.install, g.scale, g.shift} {
		for _, r := range g.releases {
			if g.dice.IntN(10) < 7 {
				hand(r)
			}
		}
	}
	return !g.plan.Writes() && len(g.plan.Covered) == 0
}

// byItself does what the newest Release does by itself, and checks that it may: one achieved step up at a time, nothing up after a move
// back, nothing back or given up while only clusters that are down are awaited, nothing under a block.
func (g *randomWalk) byItself(step strategy.StepState) {
	rel := g.newest()
	d := progress.Decide(progress.Observed{
		Release: rel, Step: step, WritesHeldBy: g.blocked, UpHeldBy: g.blocked, BackHeldBy: g.blocked, AbortHeldBy: g.blocked,
	}, g.now)
	rel.Status.Progress = d.Progress
	if !d.Acts() {
		return
	}
	g.acted++
	from := rel.Spec.TargetStep
	switch up := d.Move != nil && d.Move.To > from; {
	case g.blocked != "":
		g.t.Errorf("%s acts under a block: %+v", rel.Name, d)
	case up && (d.Move.To != from+1 || !step.Achieved || rel.Spec.Environment.Strategy.Steps[from].After == ""):
		g.t.Errorf("%s goes from step %d to %d: %+v", rel.Name, from, d.Move.To, step)
	case up && g.lowered[rel.Name]:
		g.t.Errorf("%s goes up to %d although it was moved back", rel.Name, d.Move.To)
	case d.Abort:
		g.note("%s has failed and is deleted", rel.Name)
		g.remove(rel.Name)
	default:
		g.moveTo(rel, d.Move.To, d.Move.Why)
		g.note("%s goes by itself to step %d", rel.Name, d.Move.To)
	}
	if f := d.Progress.Failure; f != nil && g.down[f.Cluster] && d.Progress.ConvergedTime == nil && f.Time.Time.Equal(g.now) {
		g.t.Errorf("%s fails because of %s, which is down", rel.Name, f.Cluster)
	}
	g.setFloor()
}

// moveTo changes the position of a Release, and notes that as the webhook does.
func (g *randomWalk) moveTo(rel *shipper.Release, to int32, why string) {
	if to == rel.Spec.TargetStep {
		return
	}
	old := rel.DeepCopy()
	rel.Spec.TargetStep = to
	rel.Annotations[shipper.ReleaseMovedAnnotation] = stamp.Move(old, rel, "x", why, metav1.NewTime(g.now))
	g.lowered[rel.Name] = to < old.Spec.TargetStep
}

func (g *randomWalk) note(format string, args ...any) {
	g.log = append(g.log, fmt.Sprintf(format, args...))
}

// observable is the observable state of the fleet. Reconcilers replace statuses instead of changing them, so a copy stays valid.
func (g *randomWalk) observable() []any {
	var out []any
	for _, r := range g.releases {
		for _, c := range places {
			if run := g.runs[r.Release.Name][c]; run != nil {
				out = append(out, r.Release.Name, c, *run)
			}
		}
		out = append(out, r.Installation.Status, r.Capacity.Status, r.Traffic.Status)
	}
	return out
}

func (g *randomWalk) edit() {
	switch g.dice.IntN(14) {
	case 0, 1, 2, 3:
		rel := g.newest()
		g.moveTo(rel, int32(g.dice.IntN(len(rel.Spec.Environment.Strategy.Steps))), "")
		g.note("targetStep of %s is %d", rel.Name, rel.Spec.TargetStep)
	case 4, 5:
		g.newRelease()
	case 6:
		if len(g.releases) > 1 {
			g.note("%s is deleted", g.newest().Name)
			g.remove(g.newest().Name)
		}
	case 7:
		place := places[g.dice.IntN(len(places))]
		g.down[place] = !g.down[place]
		g.note("down is %v", g.down)
	case 8:
		g.broken[g.newest().Name] = !g.broken[g.newest().Name]
		g.note("broken is %v", g.broken)
	case 9:
		status := g.dice.IntN(2) == 0
		g.restore(status)
		g.note("the management cluster is lost and restored, with status: %t", status)
	case 10:
		r := g.releases[g.dice.IntN(len(g.releases))].Release
		r.Annotations[shipper.ReleaseClustersAnnotation] = strings.Join(g.somePlaces(), ",")
		g.note("%s is to be in %s", r.Name, r.Annotations[shipper.ReleaseClustersAnnotation])
	case 11:
		if i := g.dice.IntN(len(g.releases)); i < len(g.releases)-1 {
			g.note("%s, which is not the newest, is deleted", g.releases[i].Release.Name)
			g.remove(g.releases[i].Release.Name)
		}
	case 12:
		rel := g.releases[g.dice.IntN(len(g.releases))].Release
		g.moveTo(rel, int32(g.dice.IntN(len(rel.Spec.Environment.Strategy.Steps))), "")
		g.note("targetStep of %s, the newest or not, is %d", rel.Name, rel.Spec.TargetStep)
	default:
		g.blocked = map[string]string{"": "rollouts blocked by: a/b"}[g.blocked]
		g.note("blocked is %q", g.blocked)
	}
}

func (g *randomWalk) newRelease() {
	var steps []shipper.RolloutStrategyStep
	for i := range 1 + g.dice.IntN(4) {
		n := func(limit int32) int32 { return []int32{0, limit, 1 + g.dice.Int32N(limit)}[g.dice.IntN(3)] }
		steps = append(steps, step(fmt.Sprint(i), n(100), n(100), n(200), n(200)))
	}
	clusters := g.somePlaces()
	g.pace = g.dice.Int32N(4)
	r := g.release(steps, g.dice.Int32N(12), clusters...)
	if s := r.Release.Spec.Environment.Strategy; g.dice.IntN(2) == 0 {
		for i := range len(s.Steps) - 1 {
			s.Steps[i].After = []shipper.Duration{"", "0s", "7s"}[g.dice.IntN(3)]
		}
		s.ProgressDeadline, s.OnFailure = "30s", []shipper.FailurePolicy{shipper.OnFailureHold, shipper.OnFailureAbort}[g.dice.IntN(2)]
		if s.Steps[0].Traffic.Contender == 0 && g.dice.IntN(2) == 0 {
			s.OnFailure = shipper.OnFailureRetreat
		}
		s.PreviewWhenIdle = []shipper.PreviewWhenIdle{"", shipper.PreviewWhenIdleNone}[g.dice.IntN(2)]
	}
	g.note("%s in %v: %+v", r.Release.Name, clusters, r.Release.Spec.Environment.Strategy)
}

func (g *randomWalk) somePlaces() []string {
	out := slices.Clone(places)
	g.dice.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	return slices.Sorted(slices.Values(out[:1+g.dice.IntN(len(out))]))
}

// sides are the newest Release and its incumbent, each with the quantities that the step wants.
func (g *randomWalk) sides() map[*strategy.Release][2]int32 {
	var rels []*shipper.Release
	for _, r := range g.releases {
		rels = append(rels, r.Release)
	}
	out := map[*strategy.Release][2]int32{}
	step := g.newest().Spec.Environment.Strategy.Steps[g.newest().Spec.TargetStep]
	for i, role := range strategy.Roles(rels) {
		switch role {
		case strategy.Contender:
			out[g.releases[i]] = [2]int32{step.Capacity.Contender, step.Traffic.Contender}
		case strategy.Incumbent:
			out[g.releases[i]] = [2]int32{step.Capacity.Incumbent, step.Traffic.Incumbent}
		}
	}
	return out
}

func wantedPods(r *strategy.Release, percent int32, cluster string) int32 {
	for _, c := range r.Capacity.Spec.Clusters {
		if c.Name == cluster {
			return (c.TotalReplicaCount*percent + 99) / 100
		}
	}
	return 0
}

// serving counts the Pods in a cluster of Releases that are to have traffic there.
func (g *randomWalk) serving(cluster string) int32 {
	var out int32
	sole := g.sole(cluster)
	for _, r := range g.releases {
		if !slices.Contains(stamp.Clusters(r.Release), cluster) || sole != "" && sole != r.Release.Name {
			continue
		}
		for _, c := range r.Traffic.Spec.Clusters {
			run := g.runs[r.Release.Name][cluster]
			if run == nil || c.Name != cluster || c.Weight == 0 && (!c.AsFound || run.traffic == 0) {
				continue
			}
			i := slices.IndexFunc(r.Capacity.Spec.Clusters, func(c shipper.ClusterCapacityTarget) bool { return c.Name == cluster })
			if i < 0 {
				continue
			}
			if of := r.Capacity.Spec.Clusters[i]; of.AsFound {
				out += run.pods
			} else { // Pods above the requested number will be deleted
				out += min(run.pods, wantedPods(r, of.Percent, cluster))
			}
		}
	}
	return out
}

// setFloor is called after every change from outside: the floor is the present number, or the step's if that is lower.
func (g *randomWalk) setFloor() {
	for _, cluster := range places {
		var allowed int32
		for r, wants := range g.sides() {
			if wants[1] > 0 && slices.Contains(stamp.Clusters(r.Release), cluster) {
				allowed += wantedPods(r, wants[0], cluster)
			}
		}
		g.floor[cluster] = min(g.serving(cluster), allowed)
	}
}

func (g *randomWalk) checkFloor() {
	for _, cluster := range places {
		if have := g.serving(cluster); have < g.floor[cluster] {
			g.t.Errorf("cluster %s has %d pods behind traffic, fewer than %d", cluster, have, g.floor[cluster])
		}
	}
}

// checkRaises fails if a Release gets more traffic without the Pods for it.
func (g *randomWalk) checkRaises(r *strategy.Release, o strategy.Outcome, before map[string]uint32) {
	if o.Write.Traffic == nil {
		return
	}
	for _, c := range o.Write.Traffic.Clusters {
		wants, ok := g.sides()[r]
		if c.Weight <= before[c.Name] || !ok {
			continue
		}
		var have int32
		if run := g.runs[r.Release.Name][c.Name]; run != nil {
			have = run.pods
		}
		if want := wantedPods(r, wants[0], c.Name); have < want {
			g.t.Errorf("%s gets traffic in %s with %d pods instead of %d", r.Release.Name, c.Name, have, want)
		}
	}
}

// checkMarks fails if two Releases are to have all traffic of a cluster at once, or its preview Service.
func (g *randomWalk) checkMarks() {
	for _, cluster := range places {
		soles, previews := 0, 0
		for _, r := range g.releases {
			for _, c := range r.Traffic.Spec.Clusters {
				if !slices.Contains(stamp.Clusters(r.Release), cluster) {
					continue // an administrator has taken it out of there
				}
				if c.Name == cluster && c.Sole && c.Weight > 0 {
					soles++
				}
				if c.Name == cluster && c.Preview != "" {
					previews++
				}
			}
		}
		if soles > 1 || previews > 1 {
			g.t.Errorf("in %s %d Releases are to have all traffic, and %d the preview", cluster, soles, previews)
		}
	}
}

// checkStates fails if more than one stage is awaited, or if the one that is awaited is not reported.
func (g *randomWalk) checkStates() {
	o := g.plan.Outcomes[len(g.plan.Outcomes)-1]
	executed := shipper.FindCondition(o.Status.Conditions, shipper.ReleaseStrategyExecuted)
	s := o.Status.Strategy.State
	waiting := 0
	for _, v := range []shipper.StrategyState{s.WaitingForInstallation, s.WaitingForCapacity, s.WaitingForTraffic} {
		if v == shipper.StrategyStateTrue {
			waiting++
		}
	}
	if done := executed.Status == "True"; done == (waiting == 1) || waiting > 1 || done != (executed.Message == "") {
		g.t.Errorf("waiting for %d things and says %+v", waiting, executed)
	}
}

// checkExplained fails if a Release at rest has neither achieved its step nor reports a cause.
func (g *randomWalk) checkExplained() {
	o := g.plan.Outcomes[len(g.plan.Outcomes)-1]
	executed := shipper.FindCondition(o.Status.Conditions, shipper.ReleaseStrategyExecuted)
	if executed.Status == "True" {
		return
	}
	causes := []string{"rollouts blocked by"}
	for place, down := range g.down {
		if down {
			causes = append(causes, place+": ClusterUnreachable")
		}
	}
	if slices.ContainsFunc(causes, func(c string) bool { return strings.Contains(executed.Message, c) }) {
		return
	}
	for name, broken := range g.broken {
		if broken && strings.Contains(executed.Message, fmt.Sprintf("%q hasn't achieved capacity", name)) {
			return
		}
	}
	g.t.Errorf("nothing explains why it waits: %s", executed.Message)
}

// checkServed fails if, at rest, a reachable cluster waits for another one while the newest Release wants traffic there, has
// the Pods, and no other Release is to serve.
func (g *randomWalk) checkServed() {
	newest := g.releases[len(g.releases)-1]
	wants := g.sides()[newest]
	for _, cluster := range places {
		run := g.runs[newest.Release.Name][cluster]
		if g.blocked != "" || g.down[cluster] || run == nil || run.pods < max(1, wantedPods(newest, wants[0], cluster)) {
			continue
		}
		asked := func(r *strategy.Release) bool {
			return slices.ContainsFunc(r.Traffic.Spec.Clusters, func(c shipper.ClusterTrafficTarget) bool {
				return c.Name == cluster && c.Weight > 0
			})
		}
		if wants[1] > 0 && !slices.ContainsFunc(g.releases, asked) {
			g.t.Errorf("no Release serves in %s although %s could", cluster, newest.Release.Name)
		}
	}
}

// checkAchieved fails, when nothing is in the way, if the step is not achieved or another Release has anything left.
func (g *randomWalk) checkAchieved() {
	o := g.plan.Outcomes[len(g.plan.Outcomes)-1]
	if !shipper.ConditionTrue(o.Status.Conditions, shipper.ReleaseStrategyExecuted) {
		g.t.Errorf("not achieved: %+v", shipper.FindCondition(o.Status.Conditions, shipper.ReleaseStrategyExecuted))
	}
	if got := o.Status.AchievedStep; got == nil || got.Step != g.newest().Spec.TargetStep {
		g.t.Errorf("achieved %v, want %d", got, g.newest().Spec.TargetStep)
	}
	sides := g.sides()
	for i, r := range g.releases {
		wants, ok := sides[r]
		if g.plan.Outcomes[i].Role == strategy.Superseded {
			continue
		}
		if !ok {
			wants = [2]int32{0, 0}
		}
		for _, c := range r.Capacity.Spec.Clusters {
			if c.Percent != wants[0] || g.runs[r.Release.Name][c.Name].pods != wantedPods(r, wants[0], c.Name) {
				g.t.Errorf("%s %s has %d%%, want %d%%", g.plan.Outcomes[i].Role, r.Release.Name, c.Percent, wants[0])
			}
		}
		for _, c := range r.Traffic.Spec.Clusters {
			if c.Weight != uint32(wants[1]) {
				g.t.Errorf("%s %s has weight %d, want %d", g.plan.Outcomes[i].Role, r.Release.Name, c.Weight, wants[1])
			}
		}
	}
}
