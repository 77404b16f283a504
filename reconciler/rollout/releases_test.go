// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"shipper.dev/shipper/apis/rules/strategy"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart"
	"shipper.dev/shipper/reconciler/events"
	"shipper.dev/shipper/reconciler/fleet/report"
	"shipper.dev/shipper/reconciler/history"
)

var at = metav1.Unix(9, 0)

// releaseAt is the i-th Release of web, in clusters a and b unless others are given; none stands for "not chosen yet".
func releaseAt(i int, clusters string) *shipper.Release {
	r := &shipper.Release{}
	r.Namespace, r.Name, r.Generation = "default", fmt.Sprintf("web-%d", i), 2
	r.UID = "uid-of-" + "web"
	r.Labels = map[string]string{shipper.AppLabel: "web", shipper.ReleaseLabel: r.Name}
	r.Annotations = map[string]string{shipper.ReleaseGenerationAnnotation: fmt.Sprint(i)}
	if clusters != "" {
		r.Annotations[shipper.ReleaseClustersAnnotation] = clusters
	}
	r.Spec.Environment.Chart = shipper.Chart{Name: "nginx", Version: "0.0.1", RepoURL: "https://charts.example"}
	r.Spec.Environment.ClusterRequirements.Regions = []shipper.RegionRequirement{{Name: "r"}}
	r.Spec.Environment.Strategy = &shipper.RolloutStrategy{Steps: []shipper.RolloutStrategyStep{{
		Name:     "full on",
		Capacity: shipper.RolloutStrategyStepValue{Contender: 100}, Traffic: shipper.RolloutStrategyStepValue{Contender: 100},
	}}}
	return r
}

// completeRelease is a Release that has completed and runs whole.
func completeRelease(i int) strategy.Release {
	r := releaseAt(i, "a")
	r.Status.Conditions = []shipper.Condition{{Type: shipper.ReleaseComplete, Status: "True"}}
	r.Status.AchievedStep = &shipper.AchievedStep{Name: "full on"}
	out := strategy.Release{
		Release: r, Installation: installationTarget(r, []string{"a"}, nil, true),
		Capacity: capacityTarget(r, []string{"a"}, map[string]int32{"a": 4}), Traffic: trafficTarget(r, []string{"a"}),
	}
	out.Capacity.Spec.Clusters[0].Percent, out.Capacity.Spec.Clusters[0].AsFound = 100, false
	out.Traffic.Spec.Clusters[0].Weight, out.Traffic.Spec.Clusters[0].AsFound = 100, false
	ready := []shipper.Condition{{Type: shipper.TargetReady, Status: "True"}}
	out.Installation.Status.Conditions, out.Capacity.Status.Conditions, out.Traffic.Status.Conditions = ready, ready, ready
	return out
}

// known is a Release of which one condition is known.
func known(r strategy.Release, condition string, status corev1.ConditionStatus) strategy.Release {
	r.Release.Status.Conditions = []shipper.Condition{{Type: condition, Status: status}}
	return r
}

func observedReleases(rels ...strategy.Release) *scope {
	s := &scope{app: &shipper.Application{}, history: history.History{Live: rels, Foreign: map[string][]string{}}}
	s.app.Namespace, s.app.Name = "default", "web"
	for _, name := range []string{"a", "b"} {
		c := shipper.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
		c.Spec.Region = "r"
		s.clusters = append(s.clusters, c)
	}
	return s
}

// describePlan is a plan in words.
func describePlan(s *scope, p releasesPlan) []string {
	var out []string
	if p.blocked != "" {
		out = append(out, p.blocked)
	}
	if p.clusters.choice != nil {
		out = append(out, "choose "+strings.Join(p.clusters.choice, ","))
	}
	if p.clusters.refusal != nil {
		out = append(out, p.clusters.refusal.Error())
	}
	for i, o := range p.rollout.Outcomes {
		if !o.Write.Empty() {
			out = append(out, "ask of "+s.history.Live[i].Release.Name)
		}
	}
	for _, c := range p.targets {
		out = append(out, fmt.Sprintf("make targets of %s in %v", s.history.Live[c.index].Release.Name, c.clusters))
	}
	return out
}

func TestReleasesPlan(t *testing.T) {
	bare := func(i int, clusters string) strategy.Release {
		return strategy.Release{Release: releaseAt(i, clusters)}
	}
	half := completeRelease(0)
	half.Capacity = nil
	cases := map[string]struct {
		scope  *scope
		change func(*scope)
		want   []string
	}{
		"nothing is there": {scope: observedReleases()},
		"a new release gets clusters and targets": {
			scope: observedReleases(bare(0, "")), want: []string{"choose b", "make targets of web-0 in [b]"},
		},
		"clusters once chosen are kept": {
			scope: observedReleases(bare(0, "x,y")), want: []string{"make targets of web-0 in [x y]"},
		},
		"too few clusters": {
			scope: observedReleases(bare(0, "")), change: func(s *scope) { s.clusters = nil },
			want: []string{`region "r" has 0 of the 1 schedulable clusters wanted`},
		},
		"no clusters wanted": {
			scope: observedReleases(bare(0, "")), change: func(s *scope) {
				none := int32(0)
				s.history.Live[0].Release.Spec.Environment.ClusterRequirements.Regions[0].Replicas = &none
			},
			want: []string{"clusterRequirements.regions want no cluster: every region has replicas 0"},
		},
		"blocked": {
			scope: observedReleases(bare(0, "")), change: func(s *scope) {
				s.blocks = []*shipper.RolloutBlock{{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "b"}}}
			},
			want: []string{"rollouts blocked by: default/b"},
		},
		"targets of an earlier release of that name are awaited": {
			scope:  observedReleases(bare(0, "a")),
			change: func(s *scope) { s.history.Foreign["web-0"] = []string{"CapacityTarget is being deleted"} },
		},
		"predecessors let go before the contender takes": {
			scope: observedReleases(completeRelease(0), bare(1, "a")),
			want:  []string{"ask of web-0", "make targets of web-1 in [a]"},
		},
		"an incumbent gets back what it lacks": {
			scope: observedReleases(half, bare(1, "a")),
			want:  []string{"ask of web-0", "make targets of web-1 in [a]", "make targets of web-0 in [a]"},
		},
		"an incumbent whose clusters are not known is left": {
			scope:  observedReleases(half, bare(1, "a")),
			change: func(s *scope) { delete(s.history.Live[0].Release.Annotations, shipper.ReleaseClustersAnnotation) },
			want:   []string{"ask of web-0", "make targets of web-1 in [a]"},
		},
		"the superseded that never ran get nothing": {
			scope: observedReleases(known(bare(0, "a"), shipper.ReleaseScheduled, "False"), bare(1, "a")),
			want:  []string{"make targets of web-1 in [a]"},
		},
		"the superseded that may run are looked after again": {
			scope: observedReleases(known(bare(0, "a"), shipper.ReleaseScheduled, "True"),
				known(bare(1, "a"), shipper.ReleaseScheduled, "Unknown"), bare(2, "a")),
			want: []string{
				"make targets of web-2 in [a]", "make targets of web-1 in [a]", "make targets of web-0 in [a]",
			},
		},
		"all releases that were restored without status get targets": {
			scope: observedReleases(bare(0, "a"), bare(1, "a"), bare(2, "a")),
			want: []string{
				"make targets of web-2 in [a]", "make targets of web-1 in [a]", "make targets of web-0 in [a]",
			},
		},
		"a release that clusters were never chosen for gets nothing when it is superseded": {
			scope: observedReleases(bare(0, ""), bare(1, "a")), want: []string{"make targets of web-1 in [a]"},
		},
		"all is well": {scope: observedReleases(completeRelease(0))},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			for i := range tc.scope.history.Live {
				r := *tc.scope.history.Live[i].Release
				r.Annotations = map[string]string{}
				for key, value := range tc.scope.history.Live[i].Release.Annotations {
					r.Annotations[key] = value
				}
				tc.scope.history.Live[i].Release = &r
			}
			if tc.change != nil {
				tc.change(tc.scope)
			}
			p := planReleases(tc.scope, at)
			if diff := cmp.Diff(tc.want, describePlan(tc.scope, p)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			wants := p.clusters.writes() || len(p.targets) > 0 || p.rollout.Writes()
			if p.writes() != wants {
				t.Errorf("writes: got %t, want %t", p.writes(), wants)
			}
		})
	}
}

func TestTargetsAreMadeWhole(t *testing.T) {
	r := releaseAt(3, "a,b")
	r.Annotations[shipper.ReleaseChartDigestAnnotation] = "abc"
	r.Annotations[shipper.ReleaseLabelPrecedenceAnnotation] = shipper.LabelsOfChart
	r.Spec.Environment.Values = &shipper.ChartValues{"x": int64(1)}
	r.Spec.Environment.ValuesPerRegion = []shipper.ValuesFor{{Name: "eu", Values: &shipper.ChartValues{"x": int64(2)}}}
	r.Spec.Environment.ValuesPerCluster = []shipper.ValuesFor{{Name: "b", Patch: []shipper.PatchOperation{{"op": "remove", "path": "/x"}}}}
	meta := metav1.ObjectMeta{
		Namespace: "default", Name: "web-3", Labels: r.Labels,
		Annotations: map[string]string{shipper.ReleaseChartDigestAnnotation: "abc"},
		OwnerReferences: []metav1.OwnerReference{
			{APIVersion: "shipper.booking.com/v1alpha1", Kind: "Release", Name: "web-3", UID: r.UID},
		},
	}
	kept := *meta.DeepCopy()
	kept.Finalizers = []string{shipper.InstallationFinalizer}
	kept.Annotations[shipper.ReleaseLabelPrecedenceAnnotation] = shipper.LabelsOfChart
	meta.Finalizers = []string{shipper.RolloutFinalizer}
	clusters := []string{"a", "b"}
	chart := r.Spec.Environment.Chart
	for _, tc := range []struct{ want, got any }{
		{
			&shipper.InstallationTarget{ObjectMeta: kept, Spec: shipper.InstallationTargetSpec{
				Clusters: clusters, CanOverride: true, Chart: &chart, Values: r.Spec.Environment.Values,
				ValuesPerRegion: r.Spec.Environment.ValuesPerRegion, ValuesPerCluster: r.Spec.Environment.ValuesPerCluster,
				Regions: map[string]string{"a": "eu"},
			}},
			installationTarget(r, clusters, map[string]string{"a": "eu"}, true),
		},
		{
			&shipper.CapacityTarget{ObjectMeta: meta, Spec: shipper.CapacityTargetSpec{Clusters: []shipper.ClusterCapacityTarget{
				{Name: "a", TotalReplicaCount: 7, AsFound: true}, {Name: "b", TotalReplicaCount: 5, AsFound: true},
			}}},
			capacityTarget(r, clusters, map[string]int32{"a": 7, "b": 5}),
		},
		{
			&shipper.TrafficTarget{ObjectMeta: meta, Spec: shipper.TrafficTargetSpec{Clusters: []shipper.ClusterTrafficTarget{
				{Name: "a", AsFound: true}, {Name: "b", AsFound: true},
			}}},
			trafficTarget(r, clusters),
		},
	} {
		if diff := cmp.Diff(tc.want, tc.got); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	}
	if got := joined([]string{"b", "a", "b"}); got != "a,b" {
		t.Errorf("got %q", got)
	}
}

// unscheduled has the error of an earlier pass.
func unscheduled(rel *shipper.Release) *shipper.Release {
	rel.Status.Conditions = shipper.SetCondition(rel.Status.Conditions, shipper.Condition{
		Type: shipper.ReleaseScheduled, Status: corev1.ConditionFalse, Reason: shipper.ChartError, Message: "it does not render",
	}, at)
	return rel
}

func TestOnlyTheFirstReleaseWithResourcesListsItsClustersAtOnce(t *testing.T) {
	rel := func(i int) *shipper.Release {
		r := releaseAt(i, "a,b")
		r.Spec.Environment.Resources = &shipper.Resources{}
		return r
	}
	for sentence, tc := range map[string]struct {
		all  []*shipper.Release
		want []string
	}{
		"the only one":      {[]*shipper.Release{rel(0)}, []string{"a", "b"}},
		"one after another": {[]*shipper.Release{rel(0), rel(1)}, []string{}},
	} {
		newest := tc.all[len(tc.all)-1]
		h := history.History{All: tc.all, Live: []strategy.Release{{Release: newest}}}
		if diff := cmp.Diff(tc.want, resourcesTarget(h, newest, []string{"a", "b"}).Spec.Clusters); diff != "" {
			t.Errorf("%s (-want +got)\n%s", sentence, diff)
		}
	}
}

func TestReleaseStatus(t *testing.T) {
	bare := strategy.Release{Release: releaseAt(0, "")}
	refused := apierrors.NewForbidden(shipper.Resource("x"), "x", errors.New("rollouts blocked by: a/b (no)"))
	broken := fmt.Errorf("counting: %w", &chart.Error{Reason: shipper.BrokenChartSpec, Message: "no such chart"})
	wait := "step 0 (full on) waits for clusters to be chosen and targets to be created"
	type conditions = map[string]string
	cases := map[string]struct {
		scope *scope
		plan  func(*releasesPlan)
		done  releasesDone
		want  conditions
	}{
		"scheduled just now": {scope: observedReleases(bare), done: releasesDone{scheduled: []string{"web-0"}},
			want: conditions{"Scheduled": "True  "}},
		"no clusters": {
			scope: observedReleases(bare), plan: func(p *releasesPlan) { p.clusters.refusal = errors.New("too few") },
			want: conditions{"Scheduled": "False FailedAPICall too few"},
		},
		"a broken chart": {
			scope: observedReleases(bare), done: releasesDone{scheduling: map[string]error{"web-0": broken}},
			want: conditions{
				"Scheduled":        "False BrokenChartSpec counting: no such chart",
				"StrategyExecuted": "False StrategyInProgress " + wait + ": no such chart",
			},
		},
		"a chart that is broken by now": {
			scope: observedReleases(strategy.Release{Release: releaseAt(0, "a")}), done: releasesDone{scheduling: map[string]error{"web-0": broken}},
			want: conditions{
				"Scheduled":        "Unknown BrokenChartSpec counting: no such chart",
				"StrategyExecuted": "False StrategyInProgress " + wait + ": no such chart",
			},
		},
		"a chart that is broken for a cluster that joins": {
			scope: observedReleases(bare), done: releasesDone{newest: "web-0", rollout: broken},
			want: conditions{"StrategyExecuted": "False StrategyInProgress " + wait + ": no such chart"},
		},
		"a broken chart, of a Release that is not asked about again": {
			scope: observedReleases(strategy.Release{Release: unscheduled(releaseAt(0, ""))}),
			want: conditions{
				"Scheduled":        "False ChartError it does not render",
				"StrategyExecuted": "False StrategyInProgress " + wait + ": it does not render",
			},
		},
		"refused by the gate": {
			scope: observedReleases(bare), done: releasesDone{scheduling: map[string]error{"web-0": refused}},
			want: conditions{
				"Scheduled": `False FailedAPICall x.shipper.booking.com "x" is forbidden: rollouts blocked by: a/b (no)`,
				"Blocked":   "True RolloutsBlocked rollouts blocked by: a/b",
			},
		},
		"nothing is known": {scope: observedReleases(bare)},
		"complete": {
			scope: observedReleases(completeRelease(0)),
			want:  conditions{"Scheduled": "True  ", "StrategyExecuted": "True  ", "Complete": "True  "},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := planReleases(tc.scope, at)
			if tc.plan != nil {
				tc.plan(&p)
			}
			got := releaseStatus(tc.scope, p, tc.done, 0, at)
			if got.Summary == nil || (got.Summary.Outcome == shipper.ReleaseCompleted) != (name == "complete") {
				t.Errorf("it is summed up as %v", got.Summary)
			}
			want := conditions{
				"Blocked": "False  ", "StrategyExecuted": "False StrategyInProgress " + wait,
				"Complete": "False StrategyNotComplete step 0, the last, is not achieved yet",
			}
			for key, value := range tc.want {
				want[key] = value
			}
			is := conditions{}
			for _, c := range got.Conditions {
				is[c.Type] = string(c.Status) + " " + c.Reason + " " + c.Message
			}
			if diff := cmp.Diff(want, is); diff != "" || got.ObservedGeneration != 2 {
				t.Errorf("generation %d, -want +got:\n%s", got.ObservedGeneration, diff)
			}
		})
	}
}

func TestABrokenReleaseSaysSo(t *testing.T) {
	r := releaseAt(0, "a")
	delete(r.Annotations, shipper.ReleaseGenerationAnnotation)
	want := shipper.ReleaseStatus{ObservedGeneration: 2, Conditions: []shipper.Condition{{
		Type: shipper.ReleaseStrategyExecuted, Status: "False", Reason: shipper.StrategyExecutionFailed, LastTransitionTime: at,
		Message: `failed to execute strategy: "release \"web-0\" has no annotation shipper.booking.com/release.generation"`,
	}}}
	if diff := cmp.Diff(want, brokenStatus(r, at)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestHasteOf is about statuses that may lag, because no step depends on them.
func TestHasteOf(t *testing.T) {
	waits := func(what string) shipper.ReleaseStatus {
		s := shipper.ReleaseStatus{
			ObservedGeneration: 2, Strategy: &shipper.ReleaseStrategyStatus{},
			Conditions: []shipper.Condition{
				{Type: shipper.ReleaseBlocked, Status: "False"},
				{Type: shipper.ReleaseStrategyExecuted, Status: "False", Reason: shipper.StrategyInProgress, Message: what},
			},
		}
		return s
	}
	with := func(change func(*shipper.ReleaseStatus)) shipper.ReleaseStatus {
		s := waits("step 1 waits: traffic")
		change(&s)
		return s
	}
	set := func(c shipper.Condition) shipper.ReleaseStatus {
		return with(func(s *shipper.ReleaseStatus) { s.Conditions = shipper.SetCondition(s.Conditions, c, at) })
	}
	was := waits("step 1 waits: capacity")
	for sentence, tc := range map[string]struct {
		is   shipper.ReleaseStatus
		want bool
	}{
		"how far it is is reworded": {waits("step 1 waits: capacity, 2 of 3"), false},
		"objects are healthy":       {set(shipper.Condition{Type: shipper.ReleaseHealthy, Status: "True"}), false},
		"objects are on their way": {
			set(shipper.Condition{Type: shipper.ReleaseHealthy, Status: "False", Reason: shipper.ObjectsInProgress}), false,
		},
		"objects are not healthy": {
			set(shipper.Condition{Type: shipper.ReleaseHealthy, Status: "False", Reason: shipper.ObjectsNotHealthy}), true,
		},
		"how it completes is reworded": {set(shipper.Condition{Type: shipper.ReleaseComplete, Status: "False", Message: "almost"}), true},
		"another step is awaited":      {with(func(s *shipper.ReleaseStatus) { s.ObservedGeneration++ }), true},
		"it is achieved":               {with(func(s *shipper.ReleaseStatus) { s.AchievedStep = &shipper.AchievedStep{Step: 1} }), true},
		"the installation is awaited":  {with(func(s *shipper.ReleaseStatus) { s.Strategy.State.WaitingForInstallation = "True" }), true},
		"capacity is awaited":          {with(func(s *shipper.ReleaseStatus) { s.Strategy.State.WaitingForCapacity = "True" }), true},
		"traffic is awaited":           {with(func(s *shipper.ReleaseStatus) { s.Strategy.State.WaitingForTraffic = "True" }), true},
		"a command is awaited":         {with(func(s *shipper.ReleaseStatus) { s.Strategy.State.WaitingForCommand = "True" }), true},
		"readiness is awaited":         {with(func(s *shipper.ReleaseStatus) { s.Strategy.State.WaitingForReadiness = "True" }), true},
		"it is executed":               {set(shipper.Condition{Type: shipper.ReleaseStrategyExecuted, Status: "True"}), true},
		"it cannot be executed": {
			set(shipper.Condition{Type: shipper.ReleaseStrategyExecuted, Status: "False", Reason: shipper.StrategyExecutionFailed}), true,
		},
		"it is blocked":    {set(shipper.Condition{Type: shipper.ReleaseBlocked, Status: "True", Reason: shipper.RolloutsBlocked}), true},
		"a block is added": {set(shipper.Condition{Type: shipper.ReleaseBlocked, Status: "False", Message: "a/b"}), true},
		"it is scheduled":  {set(shipper.Condition{Type: shipper.ReleaseScheduled, Status: "True"}), true},
		"it was complete":  {set(shipper.Condition{Type: shipper.ReleaseComplete, Status: "False"}), true},
	} {
		if got := statusTurned(was, tc.is); got != tc.want {
			t.Errorf("%s: turned is %t", sentence, got)
		}
	}
	if !statusTurned(shipper.ReleaseStatus{}, was) {
		t.Error("what is said first of all may lag")
	}
}

// TestInWavesTheTurnsOfClustersMayLag: a wave of 50 clusters would otherwise write the status of its Release at each turn.
func TestInWavesTheTurnsOfClustersMayLag(t *testing.T) {
	waits := func(edit func(*shipper.ReleaseStrategyState)) shipper.ReleaseStatus {
		out := shipper.ReleaseStatus{
			Waves: []shipper.ReleaseWave{{Name: "all"}}, Strategy: &shipper.ReleaseStrategyStatus{},
			Conditions: []shipper.Condition{{Type: shipper.ReleaseStrategyExecuted, Status: "False", Reason: shipper.StrategyInProgress}},
		}
		edit(&out.Strategy.State)
		return out
	}
	was := waits(func(*shipper.ReleaseStrategyState) {})
	advancing := func(status corev1.ConditionStatus, reason string) shipper.ReleaseStatus {
		out := *was.DeepCopy()
		out.Conditions = append(out.Conditions, shipper.Condition{Type: shipper.ReleaseAdvancing, Status: status, Reason: reason})
		return out
	}
	if statusTurned(advancing("True", shipper.AdvancingMoving), advancing("False", shipper.ClustersNotOperational)) {
		t.Error("that clusters of a wave begin is written at once")
	}
	if !statusTurned(advancing("True", shipper.AdvancingMoving), advancing("True", shipper.AdvancingSoaking)) {
		t.Error("that a step soaks may lag")
	}
	for sentence, tc := range map[string]struct {
		is   shipper.ReleaseStatus
		want bool
	}{
		"the installation is awaited": {waits(func(s *shipper.ReleaseStrategyState) { s.WaitingForInstallation = "True" }), false},
		"capacity is awaited":         {waits(func(s *shipper.ReleaseStrategyState) { s.WaitingForCapacity = "True" }), false},
		"traffic is awaited":          {waits(func(s *shipper.ReleaseStrategyState) { s.WaitingForTraffic = "True" }), false},
		"a command is awaited":        {waits(func(s *shipper.ReleaseStrategyState) { s.WaitingForCommand = "True" }), true},
		"an approval is awaited":      {waits(func(s *shipper.ReleaseStrategyState) { s.WaitingForApproval = "True" }), true},
	} {
		if got := statusTurned(was, tc.is); got != tc.want {
			t.Errorf("%s: turned is %t", sentence, got)
		}
	}
}

// TestThatAStepBeginsIsToldAtOnce: a client that waits for the next step has no other sign that it has begun.
func TestThatAStepBeginsIsToldAtOnce(t *testing.T) {
	said := func(generation int64, executed shipper.Condition, command shipper.StrategyState) shipper.ReleaseStatus {
		executed.Type = shipper.ReleaseStrategyExecuted
		return shipper.ReleaseStatus{
			ObservedGeneration: generation, AchievedStep: &shipper.AchievedStep{}, Conditions: []shipper.Condition{executed},
			Strategy: &shipper.ReleaseStrategyStatus{State: shipper.ReleaseStrategyState{WaitingForCommand: command}},
		}
	}
	was := said(1, shipper.Condition{Status: "True"}, "True")
	is := said(2, shipper.Condition{Status: "False", Reason: shipper.StrategyInProgress}, "False")
	if !statusTurned(was, is) {
		t.Error("it may lag")
	}
}

// TestEventsTellOnceWhatAStepDoes: the condition StrategyExecuted repeats what other events say.
func TestEventsTellOnceWhatAStepDoes(t *testing.T) {
	executed := func(status corev1.ConditionStatus, reason, message string) []shipper.Condition {
		return []shipper.Condition{{Type: shipper.ReleaseStrategyExecuted, Status: status, Reason: reason, Message: message}}
	}
	state := func(s shipper.ReleaseStrategyState) *shipper.ReleaseStrategyStatus {
		return &shipper.ReleaseStrategyStatus{State: s}
	}
	capacity := state(shipper.ReleaseStrategyState{WaitingForCapacity: "True", WaitingForCommand: "False"})
	command := state(shipper.ReleaseStrategyState{WaitingForCapacity: "False", WaitingForCommand: "True"})
	quiet := state(shipper.ReleaseStrategyState{WaitingForCapacity: "False", WaitingForCommand: "False"})
	objects := func(reason string) shipper.ReleaseStatus {
		return shipper.ReleaseStatus{Conditions: []shipper.Condition{
			{Type: shipper.ReleaseHealthy, Status: "False", Reason: reason, Message: "1 of 2 objects"},
		}}
	}
	waits, does := executed("False", shipper.StrategyInProgress, "step 1 waits"), executed("True", "", "")
	begins := shipper.ReleaseStatus{Strategy: capacity, Conditions: waits}
	for sentence, tc := range map[string]struct {
		was, is shipper.ReleaseStatus
		want    []string
	}{
		"it is achieved": {
			begins,
			shipper.ReleaseStatus{Strategy: command, Conditions: does, AchievedStep: &shipper.AchievedStep{Step: 1}},
			[]string{"StrategyApplied"},
		},
		"the next begins": {shipper.ReleaseStatus{Strategy: command, Conditions: does}, begins, []string{"ReleaseStateTransitioned"}},
		"it is superseded": {
			begins, shipper.ReleaseStatus{Strategy: quiet, Conditions: executed("False", shipper.StrategyInProgress, "superseded")},
			[]string{"ReleaseStateTransitioned"}, // its message is how far it is, and no news
		},
		"it is superseded, after it was achieved": {
			shipper.ReleaseStatus{Strategy: command, Conditions: does},
			shipper.ReleaseStatus{Strategy: quiet, Conditions: executed("False", shipper.StrategyInProgress, "superseded")},
			[]string{"ReleaseStateTransitioned"},
		},
		"it waits for a moment, when it has its step": {
			shipper.ReleaseStatus{Strategy: command, Conditions: does, AchievedStep: &shipper.AchievedStep{}},
			shipper.ReleaseStatus{Strategy: capacity, Conditions: waits, AchievedStep: &shipper.AchievedStep{}}, nil,
		},
		"it fails when it has its step": {
			shipper.ReleaseStatus{Strategy: command, Conditions: does, AchievedStep: &shipper.AchievedStep{}},
			shipper.ReleaseStatus{
				Strategy: quiet, Conditions: executed("False", shipper.StrategyExecutionFailed, "wrong"), AchievedStep: &shipper.AchievedStep{},
			}, []string{"StrategyExecutionFailed"},
		},
		"objects are on their way": {
			shipper.ReleaseStatus{}, objects(shipper.ObjectsInProgress), nil,
		},
		"they are there": {
			objects(shipper.ObjectsInProgress),
			shipper.ReleaseStatus{Conditions: []shipper.Condition{{Type: shipper.ReleaseHealthy, Status: "True"}}}, nil,
		},
		"an object has failed": {
			shipper.ReleaseStatus{}, objects(shipper.ObjectsNotHealthy),
			[]string{"ObjectsNotHealthy"},
		},
		"it fails": {
			begins, shipper.ReleaseStatus{Strategy: quiet, Conditions: executed("False", shipper.StrategyExecutionFailed, "wrong")},
			[]string{"ReleaseStateTransitioned", "StrategyExecutionFailed"},
		},
	} {
		r := releaseAt(0, "a")
		r.Status = tc.was
		var got []string
		for _, e := range releaseChanges(r, tc.is) {
			if !slices.Contains(got, e.Reason) {
				got = append(got, e.Reason)
			}
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s: -want +got:\n%s", sentence, diff)
		}
	}
}

func TestAReleaseWithResourcesHasOneEventAPass(t *testing.T) {
	r := releaseAt(0, "a")
	done := []report.Event{
		clustersSelected(r, []string{"a"}), targetCreated("InstallationTarget", r), events.Warning("ChartNotKept", "Keep", "no"),
	}
	is := shipper.ReleaseStatus{
		Strategy:   &shipper.ReleaseStrategyStatus{State: shipper.ReleaseStrategyState{WaitingForInstallation: "True"}},
		Conditions: []shipper.Condition{{Type: shipper.ReleaseScheduled, Status: "True"}},
	}
	ofKind := func() (out []string) {
		for _, e := range ofPass(r, done, releaseChanges(r, is)) {
			out = append(out, e.Reason)
		}
		return out
	}
	if diff := cmp.Diff([]string{"ClustersSelected", "ReleaseScheduled", "ChartNotKept", "ReleaseStateTransitioned"}, ofKind()); diff != "" {
		t.Errorf("a chart: -want +got:\n%s", diff)
	}
	r.Spec.Environment.Resources = &shipper.Resources{}
	if diff := cmp.Diff([]string{"ClustersSelected", "ChartNotKept"}, ofKind()); diff != "" {
		t.Errorf("resources: -want +got:\n%s", diff)
	}
	r.Status, done = is, nil
	is.Strategy = nil
	is.Conditions = append(is.Conditions, shipper.Condition{
		Type: shipper.ReleaseStrategyExecuted, Status: "False", Reason: shipper.StrategyInProgress, Message: "1 of 2 clusters",
	})
	if got := ofKind(); got != nil {
		t.Errorf("progress of resources has the events %v", got)
	}
}

func TestEvents(t *testing.T) {
	r := releaseAt(0, "a")
	r.Status = shipper.ReleaseStatus{
		Strategy:   &shipper.ReleaseStrategyStatus{State: shipper.ReleaseStrategyState{WaitingForCapacity: "True"}},
		Conditions: []shipper.Condition{{Type: shipper.ReleaseBlocked, Status: "False"}},
	}
	is := shipper.ReleaseStatus{
		AchievedStep: &shipper.AchievedStep{Step: 1, Name: "50/50"},
		Strategy:     &shipper.ReleaseStrategyStatus{State: shipper.ReleaseStrategyState{WaitingForCapacity: "False"}},
		Conditions: []shipper.Condition{{
			Type: shipper.ReleaseBlocked, Status: "True", Reason: shipper.RolloutsBlocked, Message: "rollouts blocked by: a/b",
		}},
	}
	it := installationTarget(r, []string{"a", "b"}, nil, true)
	var got []string
	for _, e := range append(releaseChanges(r, is), clustersSelected(r, []string{"b", "a"}), targetCreated("CapacityTarget", r),
		clustersChanged(it), events.Override("a/b")) {
		got = append(got, e.Type+" "+e.Reason+" "+e.Note)
	}
	want := []string{
		`Normal StrategyApplied step [1] finished; Release "default/web-0" had its state "WaitingForCapacity" transitioned to "False"`,
		`Normal ClustersSelected Set clusters for "default/web-0" to a,b`,
		`Normal ReleaseScheduled Created CapacityTarget "default/web-0"`,
		`Normal ReleaseScheduled Updated InstallationTarget "default/web-0" cluster set to [a,b]`,
		"Normal RolloutBlockOverridden a/b",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	r.Status = is
	if again := releaseChanges(r, is); again != nil {
		t.Errorf("got %v for nothing", again)
	}
}

// TestTheShareOfTheTrafficIsThatOfTheStepAchievedLast: what is requested between two steps is the share of neither.
func TestTheShareOfTheTrafficIsThatOfTheStepAchievedLast(t *testing.T) {
	s := observedReleases(completeRelease(0))
	requested := s.history.Live[0].Traffic.DeepCopy()
	s.history.Live[0].Traffic = requested
	if len(requested.Spec.Clusters) == 0 {
		t.Fatal("the fixture requests no traffic")
	}
	share := func(converged bool, known string) string {
		s.history.Live[0].Release.Status.Summary = &shipper.ReleaseSummary{Traffic: known}
		p := planReleases(s, at)
		p.rollout.Step.Converged = converged
		return releaseStatus(s, p, releasesDone{}, 0, at).Summary.Traffic
	}
	for i := range requested.Spec.Clusters {
		requested.Spec.Clusters[i].Weight = 100
	}
	if got := []string{share(false, ""), share(false, "50 %"), share(true, "50 %")}; !slices.Equal(got, []string{"", "50 %", "100 %"}) {
		t.Errorf("before the first step, under way and achieved it is %q", got)
	}
}
