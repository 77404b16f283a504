// SPDX-License-Identifier: Apache-2.0

package strategy_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"shipper.dev/shipper/apis/rules/stamp"
	"shipper.dev/shipper/apis/rules/strategy"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// placed is a fleet with Releases of resources: oldest first.
type placed struct {
	releases, leaving []strategy.Release
	// broken are the Releases, by name, that never become ready, sick those with an object that never becomes healthy, and down the
	// clusters that do not answer.
	broken, sick, down map[string]bool
	// connecting are clusters that the reconciler connects to.
	connecting map[string]bool
	// lame are clusters in which only the first Release becomes ready, and blocked those that RolloutBlocks hold.
	lame    map[string]bool
	blocked map[string]string
	// health is the health of an object of a sick Release.
	health string
}

// release adds a Release for clusters.
func (p *placed) release(name string, maxUnavailable string, clusters ...string) {
	bound := intstr.Parse(maxUnavailable)
	rel := &shipper.Release{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "work", Annotations: map[string]string{
		shipper.ReleaseClustersAnnotation: strings.Join(clusters, ","), shipper.ReleaseGenerationAnnotation: fmt.Sprint(len(p.releases)),
	}}}
	rel.Spec.Environment.Resources = &shipper.Resources{}
	rel.Spec.Environment.Strategy = &shipper.RolloutStrategy{Rolling: &shipper.RollingClusters{MaxUnavailable: &bound}}
	it := &shipper.InstallationTarget{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "work"}}
	p.releases = append(p.releases, strategy.Release{Release: rel, Installation: it})
}

// delete the newest Release.
func (p *placed) delete() {
	last := len(p.releases) - 1
	p.leaving, p.releases = append(p.leaving, p.releases[last]), p.releases[:last]
}

// head is the newest Release, not being deleted, that lists a cluster; empty when none does.
func (p *placed) head(cluster string) string {
	for _, r := range slices.Backward(p.releases) {
		if slices.Contains(r.Installation.Spec.Clusters, cluster) {
			return r.Release.Name
		}
	}
	return ""
}

// writer is the newest Release that lists a cluster; one that is being deleted is in effect until it is gone.
func (p *placed) writer(cluster string) (writer string) {
	newest := -1
	for _, r := range append(slices.Clone(p.releases), p.leaving...) {
		n, err := stamp.Generation(r.Release)
		if err == nil && n > newest && slices.Contains(r.Installation.Spec.Clusters, cluster) {
			newest, writer = n, r.Release.Name
		}
	}
	return writer
}

// install makes targets ready where the cluster answers. Those whose Release does not write there are ready, and know nothing of objects.
func (p *placed) install() {
	for _, r := range append(slices.Clone(p.releases), p.leaving...) {
		it := r.Installation
		it.Status.ObservedGeneration = it.Generation
		var statuses []shipper.ClusterInstallationStatus
		for _, cluster := range it.Spec.Clusters {
			ready, operational := corev1.ConditionTrue, corev1.ConditionTrue
			writes := p.writer(cluster) == r.Release.Name
			if (p.broken[r.Release.Name] || p.lame[cluster] && r.Release.Name != "r0") && writes {
				ready = corev1.ConditionFalse
			}
			if p.down[cluster] {
				ready, operational = corev1.ConditionUnknown, corev1.ConditionFalse
			}
			if p.connecting[cluster] {
				ready, operational = corev1.ConditionUnknown, corev1.ConditionUnknown
			}
			objects := &shipper.InstalledObjects{Total: 1, Healthy: 1}
			if p.sick[r.Release.Name] {
				objects = &shipper.InstalledObjects{Total: 1, Unhealthy: []shipper.UnhealthyObject{
					{Kind: "Deployment", Name: "web", Status: p.health, Reason: "LessReplicas"}}}
			}
			if !writes {
				objects = nil
			}
			statuses = append(statuses, shipper.ClusterInstallationStatus{Name: cluster, Objects: objects, Conditions: []shipper.Condition{
				{Type: shipper.TargetOperational, Status: operational}, {Type: shipper.TargetReady, Status: ready},
			}})
		}
		it.Status.Clusters = statuses
	}
}

// step plans once, carries the plan out, and describes which Release each cluster has, as `a:r1 b:r0`.
func (p *placed) step(t *testing.T) string {
	t.Helper()
	plan := strategy.Make(strategy.Observed{Releases: p.releases, Leaving: p.leaving, BlockedIn: p.blocked}, metav1.Unix(0, 0))
	for i, o := range plan.Outcomes {
		p.releases[i].Release.Status = o.Status
		if o.Write.Installation != nil {
			p.releases[i].Installation.Spec = *o.Write.Installation
			p.releases[i].Installation.Generation++
		}
	}
	for i := range plan.Leaving {
		if plan.Leaving[i].Ready {
			p.leaving = slices.Delete(p.leaving, i, i+1)
			break
		}
	}
	return p.describe()
}

func (p *placed) describe() string {
	var all, out []string
	for _, r := range append(slices.Clone(p.releases), p.leaving...) {
		all = append(all, r.Installation.Spec.Clusters...)
		all = append(all, stamp.Clusters(r.Release)...)
	}
	slices.Sort(all)
	for _, cluster := range slices.Compact(all) {
		if head := p.head(cluster); head != "" {
			out = append(out, cluster+":"+head)
		}
	}
	return strings.Join(out, " ")
}

// run installs and steps until nothing changes, and returns each state.
func (p *placed) run(t *testing.T) []string {
	t.Helper()
	var out []string
	for range 50 {
		p.install()
		state := p.step(t)
		if len(out) > 0 && state == out[len(out)-1] {
			return out
		}
		out = append(out, state)
	}
	t.Fatal("it does not come to rest")
	return nil
}

func checkStates(t *testing.T, got []string, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("states (-want +got):\n%s", diff)
	}
}

func (p *placed) complete(name string) bool {
	for _, r := range p.releases {
		if r.Release.Name == name {
			return strategy.Complete(r.Release)
		}
	}
	return false
}

func TestTheFirstReleaseOfResourcesGoesToAllClustersAtOnce(t *testing.T) {
	p := &placed{}
	p.release("r0", "1", "a", "b", "c")
	checkStates(t, p.run(t), "a:r0 b:r0 c:r0")
	if p.run(t); !p.complete("r0") {
		t.Error("it is not complete")
	}
}

func TestANewReleaseOfResourcesTakesClustersOneAfterAnother(t *testing.T) {
	p := &placed{}
	p.release("r0", "1", "a", "b", "c")
	p.run(t)
	p.release("r1", "1", "a", "b", "c")
	checkStates(t, p.run(t), "a:r1 b:r0 c:r0", "a:r1 b:r1 c:r0", "a:r1 b:r1 c:r1")
	p.install()
	p.step(t)
	if !p.complete("r1") {
		t.Error("it is not complete")
	}
	if got := p.releases[0].Installation.Spec.Clusters; len(got) > 0 {
		t.Errorf("the older Release still lists %v", got)
	}
}

func TestBoundsOfClustersInNumbers(t *testing.T) {
	of := func(bound string) *shipper.RolloutStrategy {
		n := intstr.Parse(bound)
		return &shipper.RolloutStrategy{Rolling: &shipper.RollingClusters{MaxUnavailable: &n, MaxSurge: &n}}
	}
	for name, tc := range map[string]struct {
		strategy *shipper.RolloutStrategy
		clusters int
		want     int
	}{
		"a quarter by default":        {nil, 8, 2},
		"rounded up":                  {&shipper.RolloutStrategy{}, 9, 3},
		"a number":                    {of("3"), 2, 3},
		"a percentage":                {of("50%"), 9, 5},
		"0 counts as 1":               {of("0"), 9, 1},
		"0% counts as 1":              {of("0%"), 9, 1},
		"of no clusters":              {of("50%"), 0, 1},
		"what admission would refuse": {of("half"), 9, 1},
	} {
		env := &shipper.ReleaseEnvironment{Resources: &shipper.Resources{}, Strategy: tc.strategy}
		if slots, surge := strategy.Slots(env, tc.clusters), strategy.Surge(env, tc.clusters); slots != tc.want || surge != tc.want {
			t.Errorf("%s: %d slots and a surge of %d, want %d", name, slots, surge, tc.want)
		}
	}
	reports := &shipper.ReleaseEnvironment{Apply: &shipper.Apply{Type: shipper.ApplyReportDiff}, Strategy: of("1")}
	if got := strategy.Slots(reports, 9); got != 9 {
		t.Errorf("with ReportDiff: %d slots, want 9", got)
	}
}

func TestABrokenReleaseOfResourcesStopsAtItsSlots(t *testing.T) {
	p := &placed{broken: map[string]bool{"r1": true}}
	p.release("r0", "2", "a", "b", "c", "d", "e")
	p.run(t)
	p.release("r1", "2", "a", "b", "c", "d", "e")
	checkStates(t, p.run(t), "a:r1 b:r1 c:r0 d:r0 e:r0")
	p.release("r2", "2", "a", "b", "c", "d", "e") // mends it
	states := p.run(t)
	if got := states[len(states)-1]; got != "a:r2 b:r2 c:r2 d:r2 e:r2" {
		t.Errorf("at last: %s", got)
	}
}

func TestAReleaseOfResourcesAwaitsTheHealthOfItsObjects(t *testing.T) {
	for health, awaited := range map[string]string{
		"InProgress": "clusters pending: [a b]; [c d e] begin when one of them is ready; a: ObjectsInProgress: Deployment web is " +
			"InProgress (LessReplicas). for more details try `kubectl describe it r1`",
		"Failed": "clusters pending: [a b]; [c d e] begin when one of them is ready; a: ObjectsNotHealthy: Deployment web is Failed " +
			"(LessReplicas). for more details try `kubectl describe it r1`",
	} {
		p := &placed{sick: map[string]bool{"r1": true}, health: health}
		p.release("r0", "2", "a", "b", "c", "d", "e")
		p.run(t)
		p.run(t)
		p.release("r1", "2", "a", "b", "c", "d", "e")
		checkStates(t, p.run(t), "a:r1 b:r1 c:r0 d:r0 e:r0")
		step := strategy.Make(strategy.Observed{Releases: p.releases}, metav1.Unix(0, 0)).Step
		if diff := cmp.Diff(awaited, step.Awaited); diff != "" || p.complete("r1") || step.Available != 0 {
			t.Errorf("complete: %v, available: %d, awaited (-want +got):\n%s", p.complete("r1"), step.Available, diff)
		}
		if got := p.releases[0].Installation.Spec.Clusters; !slices.Equal(got, []string{"a", "b", "c", "d", "e"}) {
			t.Errorf("the Release before has dropped clusters: it keeps %q", got)
		}
		for i := range p.releases[1].Installation.Status.Clusters {
			p.releases[1].Installation.Status.Clusters[i].Objects = nil
		}
		unread := strategy.Make(strategy.Observed{Releases: p.releases}, metav1.Unix(0, 0)).Step.Awaited
		if !strings.Contains(unread, "a: ObjectsNotKnown: the health of its objects has not been read yet") {
			t.Errorf("without health, the step awaits: %s", unread)
		}
		p.release("r2", "2", "a", "b", "c", "d", "e") // mends it
		states := p.run(t)
		if got := states[len(states)-1]; got != "a:r2 b:r2 c:r2 d:r2 e:r2" {
			t.Errorf("at last: %s", got)
		}
	}
}

func TestObjectsOfUnknownHealthHoldNothing(t *testing.T) {
	p := &placed{sick: map[string]bool{"r1": true}, health: "Unknown"}
	p.release("r0", "1", "a", "b")
	p.run(t)
	p.release("r1", "1", "a", "b")
	p.run(t)
	if p.run(t); !p.complete("r1") {
		t.Error("it is not complete")
	}
}

func TestTheHealthOfObjectsOfWhichNothingIsKnownIsAwaited(t *testing.T) {
	p := &placed{}
	p.release("r0", "1", "a")
	p.install()
	p.step(t)
	p.install()
	p.releases[0].Installation.Status.Clusters[0].Objects = nil
	p.step(t)
	if p.complete("r0") {
		t.Error("it is complete")
	}
	p.releases[0].Release.Spec.Environment.Apply = &shipper.Apply{Type: shipper.ApplyReportDiff}
	if p.step(t); !p.complete("r0") {
		t.Error("with ReportDiff, which writes no object, it is not complete")
	}
}

func TestAnAbortedReleaseOfResourcesGivesItsClustersBackAtOnce(t *testing.T) {
	p := &placed{}
	p.release("r0", "1", "a", "b", "c")
	p.run(t)
	p.run(t)
	p.release("r1", "1", "a", "b", "c")
	p.install()
	p.step(t)
	p.install()
	p.step(t) // a has r1, and r0 has dropped it
	p.install()
	p.step(t)
	p.delete()
	states := p.run(t)
	if got := states[len(states)-1]; got != "a:r0 b:r0 c:r0" {
		t.Errorf("at last: %s", got)
	}
	if len(p.leaving) > 0 {
		t.Error("the aborted Release is kept")
	}
}

func TestAClusterThatDoesNotAnswerTakesNoSlot(t *testing.T) {
	p := &placed{down: map[string]bool{}}
	p.release("r0", "1", "a", "b", "c")
	p.run(t)
	p.down["a"] = true
	p.release("r1", "1", "a", "b", "c")
	states := p.run(t)
	if got := states[len(states)-1]; got != "a:r1 b:r1 c:r1" || p.complete("r1") {
		t.Errorf("at last: %s, complete: %v", got, p.complete("r1"))
	}
	p.down["a"] = false
	p.run(t)
	if p.run(t); !p.complete("r1") {
		t.Error("it is not complete when the cluster is back")
	}
}

func TestAClusterThatIsBeingConnectedToKeepsItsSlot(t *testing.T) {
	p := &placed{}
	p.release("r0", "1", "a", "b", "c")
	p.run(t)
	p.release("r1", "1", "a", "b", "c")
	p.connecting = map[string]bool{"a": true}
	checkStates(t, p.run(t), "a:r1 b:r0 c:r0")
	p.connecting = nil
	states := p.run(t)
	if got := states[len(states)-1]; got != "a:r1 b:r1 c:r1" {
		t.Errorf("at last: %s", got)
	}
}

func TestAReplacedClusterServesUntilTheNewOneIsReady(t *testing.T) {
	p := &placed{}
	p.release("r0", "1", "a", "b")
	p.run(t)
	p.run(t)
	p.release("r1", "1", "a", "c")
	checkStates(t, p.run(t), "a:r1 b:r0 c:r1", "a:r1 c:r1")
}

func TestAClusterThatJoinsGetsTheReleaseAtOnce(t *testing.T) {
	p := &placed{}
	p.release("r0", "1", "a")
	p.run(t)
	p.run(t)
	p.releases[0].Release.Annotations[shipper.ReleaseClustersAnnotation] = "a,b"
	checkStates(t, p.run(t), "a:r0 b:r0")
	if !p.complete("r0") {
		t.Error("it is not complete")
	}
}

// Clusters leave a Release only when the step is achieved in all others: who decides that asks the state of the step.
func TestTheStepOfResourcesNamesTheClustersThatAreNotReady(t *testing.T) {
	p := &placed{down: map[string]bool{"b": true}}
	p.release("r0", "1", "a", "b")
	state := func() strategy.StepState {
		return strategy.Make(strategy.Observed{Releases: p.releases}, metav1.Unix(0, 0)).Step
	}
	if state().ConvergedBut([]string{"b"}) {
		t.Error("before anything is placed, all clusters but one have it")
	}
	p.run(t)
	if is := state(); is.ConvergedBut(nil) || !is.ConvergedBut([]string{"b"}) {
		t.Errorf("with one that does not answer: %+v", is)
	}
	p.down = nil
	p.run(t)
	if is := state(); !is.ConvergedBut(nil) {
		t.Errorf("when all answer: %+v", is)
	}
}

func TestRolloutBlocksHoldResources(t *testing.T) {
	p := &placed{}
	p.release("r0", "1", "a")
	p.install()
	plan := strategy.Make(strategy.Observed{Releases: p.releases, Blocked: "rollouts blocked by: work/freeze"}, metav1.Unix(0, 0))
	if plan.Writes() {
		t.Error("it writes")
	}
	c := shipper.FindCondition(plan.Outcomes[0].Status.Conditions, shipper.ReleaseStrategyExecuted)
	want := shipper.Condition{
		Type: "StrategyExecuted", Status: "False", LastTransitionTime: metav1.Unix(0, 0), Reason: "StrategyInProgress",
		Message: "waits: rollouts blocked by: work/freeze",
	}
	if diff := cmp.Diff(&want, c); diff != "" {
		t.Errorf("condition (-want +got):\n%s", diff)
	}
}

// TestAnOlderReleaseAwaitsNothing has a cluster that is down while the next Release comes, and is back later.
func TestAnOlderReleaseAwaitsNothing(t *testing.T) {
	var p placed
	p.release("r0", "100%", "a", "b")
	p.run(t)
	p.down = map[string]bool{"b": true}
	p.install()
	p.step(t)
	if state := p.releases[0].Release.Status.Strategy.State; state.WaitingForInstallation != shipper.StrategyStateTrue {
		t.Fatalf("while a cluster is down the newest Release has %+v", state)
	}
	p.release("r1", "100%", "a", "b")
	p.run(t)
	got := p.releases[0].Release.Status.Strategy
	if got.State.WaitingForInstallation != shipper.StrategyStateFalse || len(got.Conditions) != 1 ||
		got.Conditions[0].Type != shipper.StrategyContenderAchievedInstallation || got.Conditions[0].Status != corev1.ConditionTrue {
		t.Errorf("an older Release that completed has %+v", got)
	}
}

func TestAPlacementSaysWhatIsWrongInACluster(t *testing.T) {
	p := &placed{broken: map[string]bool{"r0": true}, down: map[string]bool{}}
	p.release("r0", "100%", "a", "b")
	p.run(t)
	said := func(reason, message string) string {
		p.install()
		for _, c := range p.releases[0].Installation.Status.Clusters[1:] {
			c.Conditions[1].Reason, c.Conditions[1].Message = reason, message
		}
		p.step(t)
		return p.releases[0].Release.Status.Strategy.Conditions[0].Message
	}
	for reason, want := range map[string]string{
		shipper.NotGranted: "clusters pending: [a b]; b: NotGranted: no right to namespaces. for more details try `kubectl describe it r0`",
		shipper.InProgress: "clusters pending: [a b]. for more details try `kubectl describe it r0`",
	} {
		if diff := cmp.Diff(want, said(reason, "no right to namespaces")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", reason, diff)
		}
	}
}
