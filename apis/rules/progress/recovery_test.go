// SPDX-License-Identifier: Apache-2.0

package progress_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"shipper.dev/shipper/apis/rules/progress"
	"shipper.dev/shipper/apis/rules/strategy"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// inWaves is a Release with clusters eu-0 to eu-2, of which one may fail, and whose position has had what it wants.
func inWaves() *shipper.Release {
	s := failing("")
	s.MaxFailures, s.Waves = new(intstr.FromInt32(1)), []shipper.Wave{{Name: "all"}}
	r := achieved(rel(s, s.LastStep(), soaking(s.LastStep())))
	r.Annotations = map[string]string{
		shipper.ReleaseClustersAnnotation: "eu-0,eu-1,eu-2", shipper.ReleaseWavesAnnotation: "eu-0=0,eu-1=0,eu-2=0",
	}
	return r
}

// recovers is a cluster that was ready again, as the status has it.
func recovers(deadline *metav1.Time, pods int32) shipper.RecoveringCluster {
	return shipper.RecoveringCluster{Name: "eu-2", DeadlineTime: deadline, AvailablePods: pods}
}

func TestAClusterThatRecoversHasItsOwnTime(t *testing.T) {
	in := func(d time.Duration) *metav1.Time { return new(at(time.Hour + d)) }
	type outcome struct {
		Recovering []shipper.RecoveringCluster
		Failed     []string
		Failure    string
		Again      time.Duration
	}
	still := func(deadline *metav1.Time, pods int32, again time.Duration) outcome {
		return outcome{Recovering: []shipper.RecoveringCluster{recovers(deadline, pods)}, Again: again}
	}
	for sentence, tc := range map[string]struct {
		is     strategy.Recovery
		failed []string
		edit   func(o *progress.Observed)
		want   outcome
	}{
		"it begins with the movement": {
			is: strategy.Recovery{RecoveringCluster: recovers(nil, 0), Judged: true, Available: 1}, want: still(in(5*time.Minute), 1, 5*time.Minute),
		},
		"it goes on": {
			is:   strategy.Recovery{RecoveringCluster: recovers(in(time.Minute), 2), Judged: true, Available: 1},
			want: still(in(time.Minute), 2, time.Minute),
		},
		"it begins again with each Pod": {
			is:   strategy.Recovery{RecoveringCluster: recovers(in(time.Minute), 1), Judged: true, Available: 2},
			want: still(in(5*time.Minute), 2, 5*time.Minute),
		},
		"and at each position": {
			is:   strategy.Recovery{RecoveringCluster: recovers(in(time.Minute), 1), Judged: true, Available: 1},
			edit: func(o *progress.Observed) { o.Release.Status.Progress.Move++ }, want: still(in(5*time.Minute), 1, 5*time.Minute),
		},
		"it stops where the cluster cannot move": {
			is: strategy.Recovery{RecoveringCluster: recovers(in(-time.Minute), 1), Available: 1}, want: still(nil, 1, 0),
		},
		"and while the rollout is held": {
			is:   strategy.Recovery{RecoveringCluster: recovers(in(-time.Minute), 1), Judged: true, Available: 1},
			edit: func(o *progress.Observed) { o.Release.Spec.Hold = "lunch" }, want: still(nil, 1, 0),
		},
		"and under a block": {
			is:   strategy.Recovery{RecoveringCluster: recovers(in(-time.Minute), 1), Judged: true, Available: 1},
			edit: func(o *progress.Observed) { o.WritesHeldBy = "freeze" }, want: still(nil, 1, 0),
		},
		"a reconciler that has just begun waits a little": {
			is:   strategy.Recovery{RecoveringCluster: recovers(in(-time.Minute), 1), Judged: true, Available: 1},
			edit: func(o *progress.Observed) { o.Since = at(time.Hour - 10*time.Second).Time },
			want: still(in(-time.Minute), 1, 20*time.Second),
		},
		"a cluster that misses it fails again": {
			is:   strategy.Recovery{RecoveringCluster: recovers(in(0), 1), Judged: true, Available: 1},
			want: outcome{Failed: []string{"eu-2"}},
		},
		"beyond maxFailures the rollout has failed": {
			is:     strategy.Recovery{RecoveringCluster: recovers(in(0), 1), Judged: true, Available: 1, Message: "2/4"},
			failed: []string{"eu-1"},
			want: outcome{
				Recovering: []shipper.RecoveringCluster{recovers(in(0), 1)}, Failure: "eu-2: 2/4; 2 clusters (eu-1, eu-2) failed, and maxFailures is 1",
			},
		},
		"and so it has after what served there gave up Pods": {
			is: strategy.Recovery{RecoveringCluster: recovers(in(0), 1), Judged: true, Available: 1, Exposed: true},
			want: outcome{
				Recovering: []shipper.RecoveringCluster{recovers(in(0), 1)},
				Failure: "eu-2: capacity is awaited; 1 cluster (eu-2) failed after what served there gave up Pods, which maxFailures does not " +
					"cover",
			},
		},
	} {
		o := progress.Observed{Release: inWaves(), Step: lacking, Since: at(0).Time}
		o.Step.Lacking = []strategy.Lack{{Cluster: "eu-2", Reachable: true, Recovering: true}}
		o.Step.Recovering, o.Step.Failed = []strategy.Recovery{tc.is}, tc.failed
		if tc.edit != nil {
			tc.edit(&o)
		}
		d := progress.Decide(o, at(time.Hour).Time)
		got := outcome{Recovering: d.Recovering, Failed: d.Failed, Again: d.Again}
		if f := d.Progress.Failure; f != nil {
			got.Failure = f.Cluster + ": " + f.Message
		}
		if len(got.Recovering) == 0 {
			got.Recovering = nil
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", sentence, diff)
		}
	}
}

// TestTheTimeOfAStepStopsWhileOnlyRecoveringClustersAreAwaited because each of these has a time of its own.
func TestTheTimeOfAStepStopsWhileOnlyRecoveringClustersAreAwaited(t *testing.T) {
	step := lacking
	step.Lacking = []strategy.Lack{{Cluster: "eu-1"}, {Cluster: "eu-2", Reachable: true, Recovering: true}}
	decide := func() *shipper.ReleaseProgress {
		o := progress.Observed{Release: rel(failing(""), 1, awaited(1)), Step: step, Since: at(-time.Hour).Time}
		return progress.Decide(o, at(4*time.Minute).Time).Progress
	}
	if p := decide(); p.DeadlineTime != nil || p.DeadlineRemaining != "1m0s" {
		t.Errorf("%+v", p)
	}
	step.Lacking[0].Reachable = true
	if p := decide(); p.DeadlineTime == nil || !p.DeadlineTime.Time.Equal(at(5*time.Minute).Time) {
		t.Errorf("with another one: %+v", p)
	}
}
