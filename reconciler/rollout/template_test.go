// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"shipper.dev/shipper/apis/rules/stamp"
	"shipper.dev/shipper/apis/rules/strategy"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/history"
)

// env is an environment; each number makes another.
func env(n int64) shipper.ReleaseEnvironment {
	return shipper.ReleaseEnvironment{
		Chart:  shipper.Chart{Name: "nginx", Version: "0.0.1", RepoURL: "https://charts.example"},
		Values: &shipper.ChartValues{"n": n},
		Strategy: &shipper.RolloutStrategy{Steps: []shipper.RolloutStrategyStep{{
			Name:     "full on",
			Capacity: shipper.RolloutStrategyStepValue{Contender: 100}, Traffic: shipper.RolloutStrategyStepValue{Contender: 100},
		}}},
	}
}

func hashOf(n int64) string {
	hash, _ := stamp.Hash(env(n))
	return hash
}

// web is an Application of which generation observed was the newest Release, with environment n; its template is now env(t).
func web(template int64, observed string, n int64) *shipper.Application {
	app := &shipper.Application{}
	app.Namespace, app.Name, app.UID, app.Generation = "default", "web", "uid", 7
	app.Finalizers = []string{shipper.RolloutFinalizer}
	app.Spec.Template = env(template)
	app.Annotations = map[string]string{}
	app.Status.Conditions = []shipper.Condition{{Type: shipper.ApplicationValidHistory, Status: corev1.ConditionTrue}}
	if observed != "" {
		app.Annotations[shipper.AppHighestObservedGenerationAnnotation] = observed
		app.Annotations[shipper.AppObservedTemplateAnnotation] = hashOf(n)
	}
	return app
}

// rel is a Release of web with a generation and environment n.
func rel(generation int, n int64, conditions ...string) *shipper.Release {
	r := &shipper.Release{}
	r.Namespace, r.Name = "default", "web-"+hashOf(n)+"-"+strconv.Itoa(generation)
	r.Finalizers = []string{shipper.RolloutFinalizer}
	r.Labels = map[string]string{shipper.AppLabel: "web", shipper.ReleaseHashLabel: hashOf(n)}
	r.Annotations = map[string]string{
		shipper.ReleaseGenerationAnnotation:        strconv.Itoa(generation),
		shipper.ReleaseTemplateIterationAnnotation: strconv.Itoa(generation),
	}
	r.Spec.Environment = env(n)
	for _, conditionType := range conditions {
		r.Status.Conditions = append(r.Status.Conditions, shipper.Condition{Type: conditionType, Status: corev1.ConditionTrue})
	}
	return r
}

func complete(generation int, n int64) *shipper.Release {
	return rel(generation, n, shipper.ReleaseComplete)
}

// movedTo moves a Release.
func movedTo(step int32, r *shipper.Release) *shipper.Release {
	r.Spec.TargetStep = step
	return r
}

func stuckAt(s *scope, names ...string) *scope {
	s.history.Stuck = names
	return s
}

// restored takes away all that was ever said of an Application.
func restored(s *scope) *scope {
	s.app.Status = shipper.ApplicationStatus{}
	return s
}

// waiting says of an Application that its newest Release is missing.
func waiting(s *scope) *scope {
	s.app.Status.Conditions = []shipper.Condition{{
		Type: shipper.ApplicationValidHistory, Status: corev1.ConditionFalse, Reason: shipper.ReleasesMissing,
	}}
	return s
}

// failedBefore notes that an environment failed.
func failedBefore(app *shipper.Application, n int64) *shipper.Application {
	failed := rel(7, n)
	failed.Status.Progress = &shipper.ReleaseProgress{Failure: &shipper.ReleaseFailure{Time: metav1.Unix(1000, 0)}}
	app.Annotations[shipper.AppFailedAnnotation], _ = stamp.Fail(failed)
	return app
}

// since makes a Release younger than that failure.
func since(r *shipper.Release) *shipper.Release {
	r.CreationTimestamp = metav1.Unix(2000, 0)
	return r
}

// seen is a scope of an Application with Releases, none of which has targets.
func seen(app *shipper.Application, rels ...*shipper.Release) *scope {
	s := &scope{app: app, history: history.History{All: rels}}
	ordered, broken := stamp.SortByGeneration(rels)
	for _, r := range ordered {
		s.history.Live = append(s.history.Live, strategy.Release{Release: r})
	}
	s.history.Broken = broken
	return s
}

// planned is what a plan does, in words.
type planned struct {
	Create, Abort  string
	Back           string
	Remove         []string
	Mark           map[string]string
	Disorder       string
	Unresolved     bool
	Failed, Blocks bool
}

func described(p templatePlan) planned {
	t := planned{
		Mark: p.mark, Disorder: p.disorder.reason,
		Unresolved: p.unready.reason == shipper.ChartVersionResolutionFailed, Failed: p.stampErr != nil, Blocks: p.blocked != "",
	}
	if p.create != nil {
		t.Create = p.create.Name + " " + p.create.Annotations[shipper.ReleaseGenerationAnnotation]
	}
	if p.abort != nil {
		t.Abort = p.abort.Name
	}
	if p.back != nil {
		t.Back = p.back.Name
	}
	t.Remove = names(p.remove)
	return t
}

func mark(generation string, n int64) map[string]string {
	return map[string]string{
		shipper.AppHighestObservedGenerationAnnotation: generation, shipper.AppObservedTemplateAnnotation: hashOf(n),
	}
}

func TestTemplatePlan(t *testing.T) {
	unresolved := web(1, "", 0)
	unresolved.Spec.Template.Chart.Version = "~0.0"
	resolvedOdd := web(1, "", 0)
	resolvedOdd.Spec.Template.Chart.Version = "~0.0"
	resolvedOdd.Annotations[shipper.AppChartVersionResolvedAnnotation] = "~0.0"
	resolvedOdd.Annotations[shipper.AppChartNameAnnotation] = "nginx"
	odd, _ := stamp.Hash(resolvedOdd.Spec.Template)
	noHash := web(1, "1", 1)
	delete(noHash.Annotations, shipper.AppObservedTemplateAnnotation)
	nameless := web(1, "", 0)
	nameless.Name = "a-name-that-leaves-no-room-for-a-hash-and-an-iteration-in-a-label"
	lost := rel(1, 1)
	delete(lost.Annotations, shipper.ReleaseGenerationAnnotation)
	name := func(n int64, iteration string) string { return "web-" + hashOf(n) + "-" + iteration }

	cases := map[string]struct {
		scope *scope
		want  planned
	}{
		"a template without releases becomes the first": {
			seen(web(1, "", 0)), planned{Create: name(1, "0") + " 0", Mark: mark("0", 1)},
		},
		"a template that is a release is left alone": {seen(web(1, "0", 1), rel(0, 1)), planned{}},
		"another template becomes the next release": {
			seen(web(2, "3", 1), complete(3, 1)), planned{Create: name(2, "0") + " 4", Mark: mark("4", 2)},
		},
		"an old template is a new release, too": {
			seen(web(1, "1", 2), complete(0, 1), complete(1, 2)), planned{Create: name(1, "1") + " 2", Mark: mark("2", 1)},
		},
		"a crash before the newest was remembered": {seen(web(2, "0", 1), rel(0, 1), rel(1, 2)), planned{Mark: mark("1", 2), Remove: nil}},
		"the newest was deleted":                   {seen(web(2, "1", 2), complete(0, 1)), planned{Abort: name(1, "0")}},
		"the newest of many was deleted": {
			seen(web(2, "5", 2), complete(0, 1), rel(3, 3)), planned{Abort: name(3, "3"), Back: name(3, "3")},
		},
		"the newest was deleted, and an older shipper knew it": {
			seen(noHash, complete(0, 2)), planned{Abort: name(2, "0")},
		},
		"the newest was deleted and the template edited": {
			seen(web(3, "1", 2), complete(0, 1)), planned{Create: name(3, "0") + " 1", Mark: mark("1", 3)},
		},
		"the newest was deleted and the template taken back by hand": {
			seen(web(1, "1", 2), complete(0, 1)), planned{Mark: mark("0", 1)},
		},
		"another template has completed since one failed": {
			seen(failedBefore(web(1, "1", 1), 2), complete(0, 3), since(complete(1, 1))),
			planned{Mark: map[string]string{shipper.AppFailedAnnotation: ""}},
		},
		"none has completed since":           {seen(failedBefore(web(1, "1", 1), 2), complete(0, 3), since(rel(1, 1))), planned{}},
		"the one before is what is back":     {seen(failedBefore(web(1, "1", 1), 2), complete(1, 1)), planned{}},
		"the one that failed is tried again": {seen(failedBefore(web(1, "1", 1), 1), complete(0, 3), since(complete(1, 1))), planned{}},
		"the only one was deleted":           {seen(web(1, "0", 1)), planned{Create: name(1, "0") + " 0"}},
		"the newest was deleted and the one before moved meanwhile": {
			seen(web(2, "1", 2), movedTo(3, complete(0, 1))), planned{Abort: name(1, "0"), Back: name(1, "0")},
		},
		"the newest was deleted and the one before never completed": {
			seen(web(2, "1", 2), movedTo(3, rel(0, 1))), planned{Abort: name(1, "0"), Back: name(1, "0")},
		},
		"the one before moved, and the template taken back by hand": {
			seen(web(1, "1", 2), movedTo(3, complete(0, 1))), planned{Back: name(1, "0"), Mark: mark("0", 1)},
		},
		"the one before moved, and the template edited": {
			seen(web(3, "1", 2), movedTo(3, complete(0, 1))), planned{Create: name(3, "0") + " 1", Mark: mark("1", 3)},
		},
		"the newest itself was moved": {seen(web(1, "0", 1), movedTo(3, complete(0, 1))), planned{}},
		"a name that is kept by a cluster out of reach": {
			stuckAt(seen(web(1, "0", 1)), name(1, "0")), planned{Create: name(1, "1") + " 0"},
		},
		"the newest cannot have targets for such a name": {
			stuckAt(seen(web(1, "0", 1), rel(0, 1)), name(1, "0")), planned{Create: name(1, "1") + " 1", Mark: mark("1", 1)},
		},
		"a constraint is no version": {
			seen(unresolved, complete(0, 2)), planned{Unresolved: true, Mark: mark("0", 2)},
		},
		"what the gate calls resolved is": {
			seen(resolvedOdd), planned{Create: "web-" + odd + "-0 0", Mark: map[string]string{
				shipper.AppHighestObservedGenerationAnnotation: "0", shipper.AppObservedTemplateAnnotation: odd,
			}},
		},
		"a name that is too long": {seen(nameless), planned{Failed: true}},
		"a release that lost its generation is not made again": {
			seen(web(1, "1", 1), complete(0, 2), lost), planned{Disorder: shipper.BrokenReleaseGeneration},
		},
		"an edit is a release even so": {
			seen(web(3, "1", 1), complete(0, 2), lost),
			planned{Disorder: shipper.BrokenReleaseGeneration, Create: name(3, "0") + " 1", Mark: mark("1", 3)},
		},
		"restored, and no release is yet": {
			restored(seen(web(1, "3", 1))), planned{Disorder: shipper.ReleasesMissing},
		},
		"restored, and the newest release is not yet": {
			restored(seen(web(2, "1", 2), rel(0, 1))), planned{Disorder: shipper.ReleasesMissing},
		},
		"restored, and it was said that something is missing": {
			waiting(seen(web(2, "1", 2), rel(0, 1))), planned{Disorder: shipper.ReleasesMissing},
		},
		"restored, and all is there":         {restored(seen(web(2, "1", 2), rel(0, 1), rel(1, 2))), planned{}},
		"restored before it had any release": {restored(seen(web(1, "", 0))), planned{Create: name(1, "0") + " 0", Mark: mark("0", 1)}},
		"restored at last, and edited meanwhile": {
			waiting(seen(web(3, "1", 2), rel(0, 1), rel(1, 2))), planned{Create: name(3, "0") + " 2", Mark: mark("2", 3)},
		},
		"an observed generation that is none": {
			seen(web(1, "x", 1), complete(0, 1)), planned{Disorder: shipper.BrokenApplicationObservedGeneration},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, described(planTemplate(tc.scope, metav1.Unix(1, 0)))); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			tc.scope.blocks = []*shipper.RolloutBlock{{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "b"}}}
			p := planTemplate(tc.scope, metav1.Unix(1, 0))
			want := planned{Blocks: tc.want.Disorder != shipper.ReleasesMissing, Disorder: tc.want.Disorder}
			if diff := cmp.Diff(want, described(p)); diff != "" {
				t.Errorf("while blocked: -want +got:\n%s", diff)
			}
		})
	}
}

func TestOnlyWhatServesNoMoreIsTrimmed(t *testing.T) {
	ct := func(percent, total, available int32, current bool) *shipper.CapacityTarget {
		ct := &shipper.CapacityTarget{}
		ct.Generation = 1
		if current {
			ct.Status.ObservedGeneration = 1
		}
		ct.Spec.Clusters = []shipper.ClusterCapacityTarget{{Name: "a", Percent: percent, TotalReplicaCount: total}}
		ct.Status.Clusters = []shipper.ClusterCapacityStatus{{Name: "a", AvailableReplicas: available}}
		return ct
	}
	found := func(ct *shipper.CapacityTarget) *shipper.CapacityTarget {
		ct.Spec.Clusters[0].AsFound = true
		return ct
	}
	one := int32(1)
	for name, tc := range map[string]struct {
		ct   *shipper.CapacityTarget
		gone bool
	}{
		"no target":                       {nil, true},
		"nothing asked, nothing there":    {ct(0, 4, 0, true), true},
		"nothing asked, some still there": {ct(0, 4, 2, true), true},
		"all of nothing":                  {ct(100, 0, 0, true), true},
		"some asked, none there":          {ct(50, 4, 0, true), true},
		"some asked, none there yet":      {ct(50, 4, 0, false), false},
		"some asked, some there":          {ct(50, 4, 2, true), false},
		"some asked, and some were there": {ct(50, 4, 2, false), false},
		"as found, some there":            {found(ct(0, 4, 2, true)), false},
		"as found, none there":            {found(ct(0, 4, 0, true)), true},
		"as found, not looked at":         {found(ct(0, 4, 0, false)), false},
	} {
		t.Run(name, func(t *testing.T) {
			app := web(4, "3", 4)
			app.Spec.RevisionHistoryLimit = &one
			s := seen(app, complete(0, 1), complete(1, 2), complete(2, 3), rel(3, 4))
			for i := range s.history.Live {
				s.history.Live[i].Capacity = ct(100, 4, 4, true)
			}
			s.history.Live[0].Capacity = tc.ct
			s.history.Live[1].Capacity = ct(0, 4, 0, true)
			want := []string{s.history.Live[1].Release.Name}
			if tc.gone {
				want = []string{s.history.Live[0].Release.Name, s.history.Live[1].Release.Name}
			}
			p := planTemplate(s, metav1.Unix(1, 0))
			if diff := cmp.Diff(want, names(p.remove)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestWhatBlocksHoldIsNotTried(t *testing.T) {
	blocked := func(s *scope) *scope {
		s.app.Annotations[shipper.RolloutBlockOverrideAnnotation] = "default/b"
		s.blocks = []*shipper.RolloutBlock{{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "b"}}}
		return s
	}
	one := int32(1)
	long := func() *scope {
		app := web(2, "1", 2)
		app.Spec.RevisionHistoryLimit = &one
		return seen(app, complete(0, 3), complete(1, 1), rel(2, 2))
	}
	if p := planTemplate(long(), metav1.Unix(1, 0)); len(p.remove) != 1 {
		t.Errorf("without a block: got %v, want the oldest to go", names(p.remove))
	}
	if p := planTemplate(blocked(long()), metav1.Unix(1, 0)); p.acts() || p.blocked != "" {
		t.Errorf("with a block only the application overrides: got %+v", described(p))
	}
	p := planTemplate(blocked(seen(web(2, "1", 2), movedTo(3, complete(0, 1)))), metav1.Unix(1, 0))
	if p.acts() || p.blocked != "rollouts blocked by: default/b" || p.pending != p.blocked {
		t.Errorf("half an abort: got %+v", described(p))
	}
}

// A freeze that lets people go back lets nothing advance: neither the abort of a rollback, which they may begin in it.
func TestAnAbortUnderABlockBringsBackNoFurther(t *testing.T) {
	achieved := func(step int32, r *shipper.Release) *shipper.Release {
		r.Status.AchievedStep = &shipper.AchievedStep{Step: step}
		return r
	}
	allowing := &shipper.RolloutBlock{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "b"}}
	allowing.Spec.Allow = []shipper.RolloutBlockChange{
		shipper.RolloutBlockAbort, shipper.RolloutBlockRetreat, shipper.RolloutBlockRollback,
	}
	type back struct {
		Step     int32
		Returned string
	}
	for sentence, tc := range map[string]struct {
		before *shipper.Release
		blocks []*shipper.RolloutBlock
		want   back
	}{
		"without a block it goes on to its step":        {movedTo(3, achieved(1, rel(1, 2))), nil, back{3, "3"}},
		"under one it stays at the step that it was at": {movedTo(3, achieved(1, rel(1, 2))), []*shipper.RolloutBlock{allowing}, back{1, ""}},
		"under one, when it was at none, it begins":     {movedTo(3, rel(1, 2)), []*shipper.RolloutBlock{allowing}, back{0, "0"}},
		"under one that lets it pass it goes on":        {movedTo(3, achieved(1, rel(1, 1))), []*shipper.RolloutBlock{allowing}, back{3, "3"}},
		"under one, what had completed is complete again": {movedTo(3, achieved(0, complete(1, 2))), []*shipper.RolloutBlock{allowing},
			back{0, ""}},
	} {
		t.Run(sentence, func(t *testing.T) {
			s := seen(web(1, "2", 1), complete(0, 1), tc.before) // the rollback to 1 was deleted
			if tc.before.Labels[shipper.ReleaseHashLabel] == hashOf(1) {
				s = seen(web(2, "2", 2), complete(0, 1), tc.before)
			}
			s.blocks = tc.blocks
			p := planTemplate(s, metav1.Unix(1, 0))
			if p.backAs == nil {
				t.Fatalf("it is not brought back: %+v", described(p))
			}
			got := back{p.backAs.Spec.TargetStep, p.backAs.Annotations[shipper.ReleaseReturnedAnnotation]}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestHistoryLimitHasBounds(t *testing.T) {
	for _, tc := range []struct{ set, want int32 }{{-5, 1}, {0, 1}, {3, 3}, {5000, 1000}} {
		app := web(0, "", 0)
		app.Spec.RevisionHistoryLimit = &tc.set
		if got := limit(app); got != int(tc.want) {
			t.Errorf("%d: got %d, want %d", tc.set, got, tc.want)
		}
	}
	if got := limit(web(0, "", 0)); got != 20 {
		t.Errorf("by default: got %d", got)
	}
}
