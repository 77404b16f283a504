// SPDX-License-Identifier: Apache-2.0

package strategy_test

import (
	"slices"
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"shipper.dev/shipper/apis/rules/strategy"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// team is an Application of three steps with two Releases: one that has completed, and a newer one at its second step.
type team struct {
	app           *shipper.Application
	older, newest *shipper.Release
}

func newTeam() *team {
	t := &team{app: &shipper.Application{ObjectMeta: metav1.ObjectMeta{Name: "app", Annotations: map[string]string{
		shipper.AppHighestObservedGenerationAnnotation: "1",
	}}}}
	t.app.Status.Conditions = []shipper.Condition{{Type: shipper.ApplicationRollingOut, Status: corev1.ConditionTrue}}
	t.older, t.newest = t.release(0, 2), t.release(1, 1)
	t.older.Status.Conditions = append(t.older.Status.Conditions,
		shipper.Condition{Type: shipper.ReleaseComplete, Status: corev1.ConditionTrue})
	t.app.Spec.Template = *t.newest.Spec.Environment.DeepCopy()
	return t
}

// release has achieved the step it is wanted at.
func (t *team) release(generation int, step int32) *shipper.Release {
	rel := &shipper.Release{ObjectMeta: metav1.ObjectMeta{
		Name: "app-cafe-" + strconv.Itoa(generation), Labels: map[string]string{shipper.AppLabel: t.app.Name},
		Annotations: map[string]string{shipper.ReleaseGenerationAnnotation: strconv.Itoa(generation)},
	}}
	rel.Spec.Environment.Chart.Version = strconv.Itoa(generation)
	rel.Spec.Environment.Strategy = &shipper.RolloutStrategy{Steps: make([]shipper.RolloutStrategyStep, 3)}
	rel.Spec.TargetStep, rel.Status.AchievedStep = step, &shipper.AchievedStep{Step: step}
	executed(rel, corev1.ConditionTrue)
	return rel
}

func executed(rel *shipper.Release, status corev1.ConditionStatus) {
	rel.Status.Conditions = []shipper.Condition{{Type: shipper.ReleaseStrategyExecuted, Status: status}}
}

// completed is a team whose newest Release has completed.
func (t *team) completed(status corev1.ConditionStatus) {
	t.newest.Spec.TargetStep, t.newest.Status.AchievedStep.Step = 2, 2
	executed(t.newest, status)
	t.newest.Status.Conditions = append(t.newest.Status.Conditions,
		shipper.Condition{Type: shipper.ReleaseComplete, Status: corev1.ConditionTrue})
}

// back removes the newest Release; the older one lost its last step at a time.
func (t *team) back(at metav1.Time) {
	t.newest = nil
	t.app.Annotations[shipper.AppHighestObservedGenerationAnnotation] = "0"
	t.older.Status.Conditions[0].Status, t.older.Status.Conditions[0].LastTransitionTime = corev1.ConditionFalse, at
}

// aborted sets the Application's condition Aborting, and since when.
func (t *team) aborted(status corev1.ConditionStatus, at metav1.Time) {
	t.app.Status.Conditions = append(t.app.Status.Conditions,
		shipper.Condition{Type: shipper.ApplicationAborting, Status: status, LastTransitionTime: at})
}

// releases are those there are, the newest first.
func (t *team) releases() []*shipper.Release {
	return slices.DeleteFunc([]*shipper.Release{t.newest, t.older}, func(rel *shipper.Release) bool { return rel == nil })
}

func TestRetreats(t *testing.T) {
	tests := []struct {
		name   string
		change func(*team)
		want   bool
	}{
		{name: "at a step it waits", change: func(*team) {}},
		{name: "to the next step it advances", change: func(t *team) { t.newest.Spec.TargetStep = 2 }},
		{name: "to a step before it retreats", change: func(t *team) { t.newest.Spec.TargetStep = 0 }, want: true},
		{
			name:   "before it has achieved anything it advances",
			change: func(t *team) { t.newest.Status, t.newest.Spec.TargetStep = shipper.ReleaseStatus{}, 0 },
		},
		{name: "with its newest Release gone it aborts", change: func(t *team) { t.newest = nil }, want: true},
		{
			name: "with its newest Release being deleted it aborts",
			change: func(t *team) {
				now := metav1.Now()
				t.newest.DeletionTimestamp = &now
			},
			want: true,
		},
		{
			name: "while the Release that was aborted leaves, the earlier one is brought back",
			change: func(t *team) {
				now := metav1.Now()
				t.newest.DeletionTimestamp = &now
				t.app.Annotations[shipper.AppHighestObservedGenerationAnnotation] = "0" // the abort was handled
			},
			want: true,
		},
		{
			name: "an earlier one that has a step to achieve advances, whatever leaves",
			change: func(t *team) {
				now := metav1.Now()
				t.newest.DeletionTimestamp = &now
				t.app.Annotations[shipper.AppHighestObservedGenerationAnnotation] = "0"
				t.older.Status.AchievedStep.Step = 1
			},
		},
		{
			name: "an Application that was restored and waits for its newest Release does not abort",
			change: func(t *team) {
				t.newest, t.app.Status.Conditions = nil, nil
			},
		},
		{
			name: "what had completed is brought back after an abort",
			change: func(t *team) {
				t.back(metav1.Unix(1001, 0))
				t.aborted(corev1.ConditionFalse, metav1.Unix(1000, 0))
			},
			want: true,
		},
		{
			name: "what had completed is brought back while its template is",
			change: func(t *team) {
				t.back(metav1.Unix(1001, 0))
				t.aborted(corev1.ConditionTrue, metav1.Unix(1002, 0))
			},
			want: true,
		},
		{
			name: "what had completed is brought back after an abort that was held up for long",
			change: func(t *team) {
				t.back(metav1.Unix(1000, 0))
				t.aborted(corev1.ConditionFalse, metav1.Unix(2000, 0))
			},
			want: true,
		},
		{
			name: "what loses a cluster long after an abort does not retreat",
			change: func(t *team) {
				t.completed(corev1.ConditionFalse)
				t.newest.Status.Conditions[0].LastTransitionTime = metav1.Unix(2000, 0)
				t.aborted(corev1.ConditionFalse, metav1.Unix(1000, 0))
			},
		},
		{
			name: "what has completed since an abort, or since its Application is there, and loses a cluster does not retreat",
			change: func(t *team) {
				t.completed(corev1.ConditionFalse)
				t.newest.Status.Conditions[0].LastTransitionTime = metav1.Unix(1020, 0)
				t.newest.Status.Conditions[1].LastTransitionTime = metav1.Unix(1010, 0)
				t.aborted(corev1.ConditionFalse, metav1.Unix(1000, 0))
			},
		},
		{
			name: "what was rolled back to and loses a cluster does not retreat",
			change: func(t *team) {
				t.completed(corev1.ConditionFalse)
				t.newest.Annotations[shipper.ReleaseRollbackOfAnnotation] = t.older.Name
			},
		},
		{
			name: "what was brought back after an abort is at rest",
			change: func(t *team) {
				t.newest = nil
				t.app.Annotations[shipper.AppHighestObservedGenerationAnnotation] = "0"
			},
		},
		{name: "what has completed is at rest", change: func(t *team) { t.completed(corev1.ConditionTrue) }},
		{name: "what had completed and loses a cluster goes nowhere", change: func(t *team) { t.completed(corev1.ConditionFalse) }},
		{
			name: "the last step of a first rollout is an advance",
			change: func(t *team) {
				t.newest.Spec.TargetStep = 2
				executed(t.newest, corev1.ConditionFalse)
			},
		},
		{
			name: "an immediate rollback retreats before there is a Release of it",
			change: func(t *team) {
				t.app.Annotations[shipper.AppRollbackStrategyAnnotation] = string(shipper.RollbackImmediate)
				t.app.Spec.Template = t.older.Spec.Environment
			},
			want: true,
		},
		{
			name: "that the last rollback was immediate does not make an advance of its Release a retreat",
			change: func(t *team) {
				t.app.Annotations[shipper.AppRollbackStrategyAnnotation] = string(shipper.RollbackImmediate)
			},
		},
		{
			name: "a rollback to the last step at once retreats",
			change: func(t *team) {
				t.newest.Annotations[shipper.ReleaseRollbackOfAnnotation] = t.older.Name
				t.newest.Spec.TargetStep = 2
				t.newest.Status = shipper.ReleaseStatus{}
			},
			want: true,
		},
		{
			name: "a rollback step by step advances",
			change: func(t *team) {
				t.newest.Annotations[shipper.ReleaseRollbackOfAnnotation] = t.older.Name
				t.newest.Spec.TargetStep = 0
				t.newest.Status = shipper.ReleaseStatus{}
			},
		},
		{name: "without Releases there is nothing to go back to", change: func(t *team) { t.older, t.newest = nil, nil }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a := newTeam()
			tt.change(a)
			if got := strategy.Retreats(a.app, a.releases()); got != tt.want {
				t.Errorf("retreats: %t, want %t", got, tt.want)
			}
		})
	}
}

func TestRests(t *testing.T) {
	for sentence, tc := range map[string]struct {
		change func(*team)
		want   bool
	}{
		"at the step it is wanted at":             {func(*team) {}, true},
		"with all steps done":                     {func(t *team) { t.completed(corev1.ConditionTrue) }, true},
		"to the next step":                        {func(t *team) { t.newest.Spec.TargetStep = 2 }, false},
		"to the step before":                      {func(t *team) { t.newest.Spec.TargetStep = 0 }, false},
		"when its step is not as it was":          {func(t *team) { executed(t.newest, corev1.ConditionFalse) }, false},
		"when its edit was not seen":              {func(t *team) { t.app.Generation++ }, false},
		"when its Release's edit was not seen":    {func(t *team) { t.newest.Generation++ }, false},
		"when its newest Release is gone":         {func(t *team) { t.newest = nil }, false},
		"when its Release has not been looked at": {func(t *team) { t.newest.Status = shipper.ReleaseStatus{} }, false},
	} {
		of := newTeam()
		tc.change(of)
		if got := strategy.Rests(of.app, of.releases()); got != tc.want {
			t.Errorf("%s: it rests is %t", sentence, got)
		}
	}
	of := newTeam()
	if strategy.Rests(of.app, nil) {
		t.Error("without Releases it rests")
	}
}
