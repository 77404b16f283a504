// SPDX-License-Identifier: Apache-2.0

package stamp_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"shipper.dev/shipper/apis/rules/stamp"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

func TestMovesAreCounted(t *testing.T) {
	now := metav1.NewTime(time.Date(2026, 5, 1, 12, 0, 0, 7, time.UTC))
	old, rel := &shipper.Release{}, &shipper.Release{Spec: shipper.ReleaseSpec{TargetStep: 2}}
	if m := stamp.Moved(old); m != (shipper.ReleaseMove{}) {
		t.Errorf("a Release that was never moved has %+v", m)
	}
	rel.Annotations = map[string]string{shipper.ReleaseMovedAnnotation: stamp.Move(old, rel, "a <b>", "", now)}
	expected := `{"by":"a <b>","time":"2026-05-01T12:00:00Z","from":0,"to":2,"count":1}`
	if diff := cmp.Diff(expected, rel.Annotations[shipper.ReleaseMovedAnnotation]); diff != "" {
		t.Errorf("first move (-want +got):\n%s", diff)
	}
	back := rel.DeepCopy()
	back.Spec.TargetStep = 1
	back.Annotations[shipper.ReleaseMovedAnnotation] = stamp.Move(rel, back, "c", "RolloutFailed", now)
	want := shipper.ReleaseMove{By: "c", Time: metav1.NewTime(now.Truncate(time.Second)), From: 2, To: 1, Count: 2, Why: "RolloutFailed"}
	if diff := cmp.Diff(want, stamp.Moved(back)); diff != "" {
		t.Errorf("second move (-want +got):\n%s", diff)
	}
	back.Annotations[shipper.ReleaseMovedAnnotation] = "no JSON"
	if m := stamp.Moved(back); m != (shipper.ReleaseMove{}) {
		t.Errorf("what is no note is %+v", m)
	}
}

func TestFirstReleaseBeginsWhereTheStrategySays(t *testing.T) {
	for sentence, tc := range map[string]struct {
		edit func(*shipper.Application)
		want int32
	}{
		"at the first step": {func(*shipper.Application) {}, 0},
		"at the last, for there is nothing to replace": {func(app *shipper.Application) {
			app.Spec.Template.Strategy.FirstRelease = "Immediate"
		}, 1},
		"at the first, when there was a Release before": {func(app *shipper.Application) {
			app.Spec.Template.Strategy.FirstRelease = "Immediate"
			app.Annotations = map[string]string{shipper.AppHighestObservedGenerationAnnotation: "0"}
		}, 0},
	} {
		t.Run(sentence, func(t *testing.T) {
			app := quickStart()
			app.Spec.Template.Strategy = &shipper.RolloutStrategy{Steps: make([]shipper.RolloutStrategyStep, 2)}
			tc.edit(app)
			rel, err := stamp.Release(app, nil)
			if err != nil || rel.Spec.TargetStep != tc.want {
				t.Errorf("step %d, %v, want %d", rel.Spec.TargetStep, err, tc.want)
			}
		})
	}
}

func TestFailuresAreNoted(t *testing.T) {
	app := quickStart()
	if stamp.Failed(app) != nil || stamp.FailedBefore(nil, &app.Spec.Template) {
		t.Error("nothing has failed")
	}
	rel := release(app, "web-1-0", 1, 0)
	rel.Status.Progress = &shipper.ReleaseProgress{Failure: &shipper.ReleaseFailure{
		Step: 2, Cluster: "eu", Reason: "ProgressDeadlineExceeded",
	}}
	note, err := stamp.Fail(rel)
	if err != nil {
		t.Fatal(err)
	}
	app.Annotations = map[string]string{shipper.AppFailedAnnotation: note}
	f := stamp.Failed(app)
	digest, err := stamp.Digest(app.Spec.Template)
	if err != nil || len(digest) != 64 {
		t.Fatalf("digest %q, %v", digest, err)
	}
	want := &shipper.FailedEnvironment{Digest: digest, Release: "web-1-0", Step: 2, Cluster: "eu", Reason: "ProgressDeadlineExceeded"}
	if diff := cmp.Diff(want, f); diff != "" {
		t.Errorf("note (-want +got):\n%s", diff)
	}
	if !stamp.FailedBefore(f, &app.Spec.Template) {
		t.Error("the environment that failed is not known")
	}
	app.Spec.Template.Chart.Version = "9.9.9"
	if stamp.FailedBefore(f, &app.Spec.Template) {
		t.Error("another environment has not failed")
	}
}

func TestWhetherAReleaseWentBack(t *testing.T) {
	move := func(from, to int32) string {
		return stamp.Move(
			&shipper.Release{Spec: shipper.ReleaseSpec{TargetStep: from}}, &shipper.Release{Spec: shipper.ReleaseSpec{TargetStep: to}},
			"alice", "", metav1.NewTime(time.Unix(0, 0)))
	}
	for sentence, tc := range map[string]struct {
		noted    string
		progress *shipper.ReleaseProgress
		achieved *shipper.AchievedStep
		want     bool
	}{
		"a new Release did not": {},
		"the figures of the step are believed": {
			noted: move(2, 1), progress: &shipper.ReleaseProgress{Step: 1, Move: 1, MovedBack: true}, want: true,
		},
		"the figures of the step are believed before what was achieved": {
			progress: &shipper.ReleaseProgress{Step: 1}, achieved: &shipper.AchievedStep{Step: 2},
		},
		"a noted move down":                       {noted: move(2, 1), progress: &shipper.ReleaseProgress{Step: 2}, want: true},
		"a noted move down without figures":       {noted: move(2, 1), want: true},
		"a noted move up":                         {noted: move(0, 1), progress: &shipper.ReleaseProgress{}},
		"a noted move up below what was achieved": {noted: move(0, 1), achieved: &shipper.AchievedStep{Step: 2}},
		"a move down without a note":              {progress: &shipper.ReleaseProgress{Step: 2}, want: true},
		"a move up without a note":                {progress: &shipper.ReleaseProgress{}, achieved: &shipper.AchievedStep{Step: 2}},
		"a note of an earlier move is not asked": {
			noted: move(0, 2), progress: &shipper.ReleaseProgress{Step: 2, Move: 1}, want: true,
		},
		"without note and figures, the achieved step decides": {achieved: &shipper.AchievedStep{Step: 2}, want: true},
	} {
		t.Run(sentence, func(t *testing.T) {
			rel := &shipper.Release{
				Spec:   shipper.ReleaseSpec{TargetStep: 1},
				Status: shipper.ReleaseStatus{Progress: tc.progress, AchievedStep: tc.achieved},
			}
			rel.Annotations = map[string]string{shipper.ReleaseMovedAnnotation: tc.noted}
			if got := stamp.WentBack(rel); got != tc.want {
				t.Errorf("got %t, want %t", got, tc.want)
			}
		})
	}
}
