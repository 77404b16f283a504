// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"strconv"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"shipper.dev/shipper/apis/rules/stamp"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

func TestTheFirstReleaseIsRolledOut(t *testing.T) {
	t.Parallel()
	s := newRolloutFixture(t)
	a, b := s.cluster("a"), s.cluster("b")
	s.edit(0, vanguard)
	s.until(staging, s.shares)

	app, rel := s.app(), s.release(0)
	want, err := stamp.Release(&shipper.Application{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "web", UID: app.UID}, Spec: app.Spec,
	}, nil)
	s.must(err)
	if rel.Name != want.Name || rel.Annotations[shipper.ReleaseGenerationAnnotation] != "0" {
		t.Errorf("got %s %v, want %s", rel.Name, rel.Annotations, want.Name)
	}
	if got := rel.Annotations[shipper.ReleaseClustersAnnotation]; got != a+","+b {
		t.Errorf("got clusters %q", got)
	}
	if got := app.Annotations[shipper.AppHighestObservedGenerationAnnotation]; got != "0" {
		t.Errorf("got highest observed generation %q", got)
	}
	s.until(`True Rolling out initial release "`+rel.Name+`"`, s.appCondition(shipper.ApplicationRollingOut))
	for _, conditionType := range []string{shipper.ApplicationReleaseSynced, shipper.ApplicationValidHistory} {
		s.until("True", s.appCondition(conditionType))
	}
	s.until("False", s.appCondition(shipper.ApplicationAborting))
	s.until("True", s.relCondition(0, shipper.ReleaseScheduled))
	s.until("False", s.relCondition(0, shipper.ReleaseBlocked))

	s.goTo(1)
	s.until(halfDone, s.shares)
	s.goTo(2)
	s.until(serving, s.shares)
	s.until(`False Release "`+rel.Name+`" is active`, s.appCondition(shipper.ApplicationRollingOut))
	s.until("True", s.relCondition(0, shipper.ReleaseStrategyExecuted))
}

func TestASecondReleaseTakesOverAndBack(t *testing.T) {
	t.Parallel()
	s := contending(t)
	s.until(`True Transitioning from "`+s.releases()[0]+`" to "`+s.releases()[1]+`"`,
		s.appCondition(shipper.ApplicationRollingOut))
	s.goHalfWay()
	s.goTo(0)
	s.until(serving+" | "+staging, s.shares)
	s.goTo(2)
	s.until(done+" | "+serving, s.shares)
}

func TestAnIncumbentThatWasMovedComesBackWhole(t *testing.T) {
	t.Parallel()
	s := newRollout(t)
	s.goTo(2)
	s.until(serving, s.shares)
	s.edit(1, vanguard)
	s.until(serving+" | "+staging, s.shares)
	first := s.release(0)
	ct := &shipper.CapacityTarget{}
	s.must(s.Get(t.Context(), client.ObjectKeyFromObject(first), ct))
	generation := ct.Generation
	was := first.DeepCopy()
	first.Spec.TargetStep = 0
	s.must(s.Patch(t.Context(), first, client.MergeFrom(was)))
	s.until(`False StrategyExecutionFailed failed to execute strategy: "Release `+s.namespace+"/"+first.Name+
		` target step is inconsistent: unexpected value 0 (expected: 2)"`, s.relCondition(0, shipper.ReleaseStrategyExecuted))
	s.must(s.Delete(t.Context(), s.release(1)))
	s.until("2", func() string { return strconv.Itoa(int(s.release(0).Spec.TargetStep)) })
	s.until(serving, s.shares)
	s.until("True", s.relCondition(0, shipper.ReleaseStrategyExecuted))
	s.must(s.Get(t.Context(), client.ObjectKeyFromObject(first), ct))
	if ct.Generation != generation {
		t.Errorf("its capacity was changed meanwhile: generation %d, was %d", ct.Generation, generation)
	}
}

func TestHistoryIsTrimmedToWhatServesNoMore(t *testing.T) {
	t.Parallel()
	s := onTwoClusters(t)
	one := int32(1)
	s.apply(func(app *shipper.Application) {
		app.Spec.Template, app.Spec.RevisionHistoryLimit = s.template(0, allIn), &one
	})
	s.until(serving, s.shares)
	s.edit(1, allIn)
	s.until(done+" | "+serving, s.shares)
	second := s.releases()[1]
	s.edit(2, allIn)
	s.until(done+" | "+serving, func() string {
		if names := s.releases(); names[0] != second {
			return "not yet"
		}
		return s.shares()
	})
	s.edit(0, allIn)
	s.until("3", func() string { return s.release(-1).Annotations[shipper.ReleaseGenerationAnnotation] })
}

func TestABlockHoldsEverything(t *testing.T) {
	t.Parallel()
	s := contending(t)
	b := s.block("dns-outage")
	blocked := "True RolloutsBlocked rollouts blocked by: " + s.namespace + "/dns-outage"
	s.until(blocked, s.appCondition(shipper.ApplicationBlocked))
	s.until(blocked, s.relCondition(0, shipper.ReleaseBlocked))
	s.until(blocked, s.relCondition(1, shipper.ReleaseBlocked))

	s.goTo(1)
	s.until("False StrategyInProgress step 1 (50/50) waits: rollouts blocked by: "+s.namespace+"/dns-outage",
		s.relCondition(1, shipper.ReleaseStrategyExecuted))
	s.edit(2, vanguard)
	s.until("False RolloutsBlocked rollouts blocked by: "+s.namespace+"/dns-outage",
		s.appCondition(shipper.ApplicationReleaseSynced))
	s.until(serving+" | 1%/0 1%/0 at staging", s.shares)

	s.edit(1, vanguard)
	s.until("True", s.appCondition(shipper.ApplicationReleaseSynced))
	rel := s.release(1)
	was := rel.DeepCopy()
	rel.Annotations[shipper.RolloutBlockOverrideAnnotation] = s.namespace + "/dns-outage"
	s.must(s.Patch(t.Context(), rel, client.MergeFrom(was)))
	s.until(halfLeft+" | "+halfDone, s.shares)
	s.untilEvent(rel.Name, "RolloutBlockOverridden", s.namespace+"/dns-outage")
	s.until(blocked, s.relCondition(0, shipper.ReleaseBlocked))
	s.until("False", s.relCondition(1, shipper.ReleaseBlocked))

	was = s.release(1)
	rel = was.DeepCopy()
	delete(rel.Annotations, shipper.RolloutBlockOverrideAnnotation)
	s.must(s.Patch(t.Context(), rel, client.MergeFrom(was)))
	s.until(blocked, s.relCondition(1, shipper.ReleaseBlocked))
	s.must(s.Delete(t.Context(), b))
	s.until("False", s.appCondition(shipper.ApplicationBlocked))
	s.until("False", s.relCondition(1, shipper.ReleaseBlocked))
}

func TestAReleaseWaitsForClusters(t *testing.T) {
	t.Parallel()
	s := newRolloutFixture(t)
	s.cluster("a")
	s.edit(0, allIn)
	s.until(`False NotEnoughClustersInRegion region "`+s.namespace+`" has 1 of the 2 schedulable clusters wanted`,
		s.relCondition(0, shipper.ReleaseScheduled))
	s.cluster("b")
	s.until(serving, s.shares)
	s.until("True", s.relCondition(0, shipper.ReleaseScheduled))
}

func TestAReleaseWaitsForAClusterToBeFreed(t *testing.T) {
	t.Parallel()
	s := newRolloutFixture(t)
	s.cluster("a")
	drained := &shipper.Cluster{}
	s.must(s.Get(t.Context(), client.ObjectKey{Name: s.cluster("b")}, drained))
	drained.Spec.Scheduler.Unschedulable = true
	s.must(s.Update(t.Context(), drained))
	s.edit(0, allIn)
	s.until(`False NotEnoughClustersInRegion region "`+s.namespace+`" has 1 of the 2 schedulable clusters wanted`,
		s.relCondition(0, shipper.ReleaseScheduled))
	drained.Spec.Scheduler.Unschedulable = false
	s.must(s.Update(t.Context(), drained))
	s.until(serving, s.shares)

	// Chosen clusters stay, also if the Cluster is cordoned or deleted.
	drained.Spec.Scheduler.Unschedulable = true
	s.must(s.Update(t.Context(), drained))
	s.edit(1, allIn)
	s.until(serving+" |  at -", s.shares)
	s.until(`False NotEnoughClustersInRegion region "`+s.namespace+`" has 1 of the 2 schedulable clusters wanted`,
		s.relCondition(1, shipper.ReleaseScheduled))
}

func TestAChartThatIsNoneMakesNoTargets(t *testing.T) {
	t.Parallel()
	s := running(t)
	s.apply(func(app *shipper.Application) {
		app.Spec.Template = s.template(1, vanguard)
		app.Spec.Template.Chart.Name = "broken"
	})
	s.until(serving+" |  at -", s.shares)
	s.until(`False WrongChartDeployments counting the replicas of release `+s.namespace+"/"+s.release(1).Name+
		": the chart has no Deployment", s.relCondition(1, shipper.ReleaseScheduled))
	its := &shipper.InstallationTargetList{}
	s.must(s.List(t.Context(), its, client.InNamespace(s.namespace)))
	if len(its.Items) != 1 {
		t.Errorf("got %d installation targets", len(its.Items))
	}
	s.edit(2, vanguard)
	s.until(serving+" | "+staging, s.shares)
}

func TestAStepThatDoesNotExistIsTold(t *testing.T) {
	t.Parallel()
	s := running(t)
	s.goTo(3)
	s.until(`False StrategyExecutionFailed failed to execute strategy: "no step 3 in strategy for Release \"`+
		s.namespace+"/"+s.releases()[0]+`\""`, s.relCondition(0, shipper.ReleaseStrategyExecuted))
	s.until("False NoLongerComplete targetStep is 3, the last step is 0", s.relCondition(0, shipper.ReleaseComplete))
	s.goTo(0)
	s.until(serving, s.shares)
}

func TestTargetsThatAreLostComeBackAsTheyWere(t *testing.T) {
	t.Parallel()
	s := contending(t)
	s.goHalfWay()
	const half = halfLeft + " | " + halfDone
	ct := &shipper.CapacityTarget{}
	s.must(s.Get(t.Context(), client.ObjectKeyFromObject(s.release(0)), ct))
	was := ct.DeepCopy()
	ct.Finalizers = nil
	s.must(s.Patch(t.Context(), ct, client.MergeFrom(was)))
	s.must(s.Delete(t.Context(), ct))
	s.until(half, func() string {
		is := &shipper.CapacityTarget{}
		s.must(client.IgnoreNotFound(s.Get(t.Context(), client.ObjectKeyFromObject(ct), is)))
		if is.UID == ct.UID || is.UID == "" {
			return "not yet"
		}
		if is.Generation > 2 {
			t.Errorf("it was asked for more than for what was found: generation %d", is.Generation)
		}
		return s.shares()
	})
}

func TestWhatACrashLeftOutIsRemembered(t *testing.T) {
	t.Parallel()
	s := running(t)
	s.apply(func(app *shipper.Application) {
		delete(app.Annotations, shipper.AppHighestObservedGenerationAnnotation)
		delete(app.Annotations, shipper.AppObservedTemplateAnnotation)
	})
	s.until("0", func() string { return s.app().Annotations[shipper.AppHighestObservedGenerationAnnotation] })
	s.apply(func(app *shipper.Application) {
		app.Annotations[shipper.AppHighestObservedGenerationAnnotation] = "many"
	})
	s.until(`False BrokenApplicationObservedGeneration application "web": annotation `+
		shipper.AppHighestObservedGenerationAnnotation+`: "many" is not a decimal number from 0 on; `+
		"nothing is aborted or deleted until the annotation is corrected or removed",
		s.appCondition(shipper.ApplicationValidHistory))
}

func TestAReleaseWithoutAPlaceInHistoryStopsNobody(t *testing.T) {
	t.Parallel()
	s := contending(t)
	was := s.release(1)
	rel := was.DeepCopy()
	delete(rel.Annotations, shipper.ReleaseGenerationAnnotation)
	s.must(s.Patch(t.Context(), rel, client.MergeFrom(was)))
	s.until(`False BrokenReleaseGeneration release "`+rel.Name+`" has no annotation `+
		shipper.ReleaseGenerationAnnotation+"; nothing is aborted or deleted until it has one, or is deleted",
		s.appCondition(shipper.ApplicationValidHistory))
	if edit := (*s.app().Spec.Template.Values)["edit"]; edit != int64(1) {
		t.Errorf("the template was taken back to %v", edit)
	}
	back := rel.DeepCopy()
	back.Annotations[shipper.ReleaseGenerationAnnotation] = "1"
	s.must(s.Patch(t.Context(), back, client.MergeFrom(rel)))
	s.until("True", s.appCondition(shipper.ApplicationValidHistory))
}

// TestSomethingIsSaidBeforeTheNewestReleaseIsNoted has no moment in which an Application has the note alone: a user who deleted its
// first Release then would leave it as if made again from a backup.
func TestSomethingIsSaidBeforeTheNewestReleaseIsNoted(t *testing.T) {
	t.Parallel()
	s := onTwoClusters(t)
	w, err := rollouts.admin.Watch(t.Context(), &shipper.ApplicationList{}, client.InNamespace(s.namespace))
	s.must(err)
	defer w.Stop()
	s.edit(1, allIn)
	for event := range w.ResultChan() {
		app, ok := event.Object.(*shipper.Application)
		if !ok || app.Annotations[shipper.AppHighestObservedGenerationAnnotation] == "" {
			continue
		}
		if len(app.Status.Conditions) == 0 {
			t.Error("the newest Release was noted before anything was said")
		}
		return
	}
	t.Error("the newest Release is not noted")
}
