// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

func TestWaitEndsWhenTheStepIsAchieved(t *testing.T) {
	type scenario struct {
		change func(app *shipper.Application, rel *shipper.Release)
		step   int
		want   []string
	}
	achieves := func(target, achieved int32) func(*shipper.Application, *shipper.Release) {
		return func(_ *shipper.Application, rel *shipper.Release) {
			rel.Spec.TargetStep, rel.Status.AchievedStep = target, &shipper.AchievedStep{Step: achieved}
		}
	}
	completes := func(_ *shipper.Application, rel *shipper.Release) {
		rel.Spec.TargetStep, rel.Status.AchievedStep = 2, &shipper.AchievedStep{Step: 2}
		rel.Status.Conditions = []shipper.Condition{{Type: shipper.ReleaseComplete, Status: corev1.ConditionTrue}}
	}
	pending := []string{"capacity in us"}
	advance := []string{"release web-1 to be advanced, its target is step 1"}
	for sentence, tc := range map[string]scenario{
		"the step that is asked for is not achieved": {achieves(1, 0), asked, pending},
		"it is achieved":                               {achieves(1, 1), asked, nil},
		"an earlier step is achieved":                  {achieves(1, 0), 0, nil},
		"a retreat has not come to its step":           {achieves(0, 1), asked, pending},
		"a step beyond the one that is asked for":      {achieves(1, 1), 2, advance},
		"the last step is achieved, but not complete":  {achieves(2, 2), asked, pending},
		"the rollout is complete":                      {completes, asked, nil},
		"the rollout is complete, and that was wanted": {completes, 2, nil},
		"the release was edited since": {
			func(_ *shipper.Application, rel *shipper.Release) {
				completes(nil, rel)
				rel.Generation, rel.CreationTimestamp = 9, metav1.NewTime(now)
			}, asked,
			[]string{"what was asked for last to begin"},
		},
		"the application was edited since": {
			func(app *shipper.Application, rel *shipper.Release) { completes(app, rel); app.Generation = 9 }, asked,
			[]string{"the last edit of the application to be observed"},
		},
	} {
		o := exampleObserved()
		tc.change(o.app, o.releases[1])
		got, err := awaited(o, tc.step, now)
		if diff := cmp.Diff(tc.want, got); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got)\n%s", sentence, err, diff)
		}
	}
	fails := func(_ *shipper.Application, rel *shipper.Release) {
		rel.Status.Progress = &shipper.ReleaseProgress{}
		rel.Status.Conditions = []shipper.Condition{
			{Type: shipper.ReleaseFailed, Status: corev1.ConditionTrue, Message: "no capacity in eu"},
			{Type: shipper.ReleaseAdvancing, Reason: shipper.AdvancingHeldAfterGoingBack, Message: "it retreated to step 0"},
		}
	}
	aborted := func(app *shipper.Application, rel *shipper.Release) {
		completes(app, rel)
		app.Annotations[shipper.AppFailedAnnotation] = `{"release":"web-9","step":1,"cluster":"eu","reason":"ProgressDeadlineExceeded",` +
			`"time":"2100-01-01T00:00:00Z"}`
	}
	lags := func(_ *shipper.Application, rel *shipper.Release) {
		rel.Spec.TargetStep, rel.Status.AchievedStep, rel.Status.Progress = 2, &shipper.AchievedStep{Step: 2}, &shipper.ReleaseProgress{}
		rel.Status.Conditions = []shipper.Condition{
			{Type: shipper.ReleaseAdvancing, Reason: shipper.AdvancingAwaitingFailedClusters, Message: "1 cluster (eu) failed"},
		}
	}
	for sentence, tc := range map[string]struct {
		change func(*shipper.Application, *shipper.Release)
		want   string
	}{
		"a cluster has failed within maxFailures": {lags, "release web-1 is not complete: 1 cluster (eu) failed"},
		"it has failed":           {fails, "release web-1 has failed: no capacity in eu; it retreated to step 0"},
		"a newer one was aborted": {aborted, "release web-9 has failed at step 1 in eu (ProgressDeadlineExceeded), and was aborted at "},
	} {
		o := exampleObserved()
		if o.app.Annotations == nil {
			o.app.Annotations = map[string]string{}
		}
		tc.change(o.app, o.releases[1])
		if _, err := awaited(o, asked, now); err == nil || !strings.HasPrefix(err.Error(), tc.want) {
			t.Errorf("%s: %v", sentence, err)
		}
	}
	if _, err := awaited(exampleObserved(), 3, now); err == nil || err.Error() != "release web-1 has no step 3: its last one is 2" {
		t.Errorf("a step that there is not: %v", err)
	}
}

func TestAllRolloutsHaveOneLineEach(t *testing.T) {
	blocked, complete := canary(), canary()
	blocked.Blocks.InEffect, blocked.Clusters, blocked.Waiting = []string{"shop/freeze (no; ann)"}, nil, nil
	complete.Application, complete.Complete, complete.Clusters, complete.Waiting = "web", true, nil, nil
	complete.Blocks.Overridden = []string{"global/year-end (books; joe)"}
	const want = `NAMESPACE   APPLICATION    RELEASE                   STEP               STATE
shop        super-server   super-server-6f19aa85-1   1/2 canary 50/50   blocked by shop/freeze (no; ann)
shop        web            super-server-6f19aa85-1   1/2 canary 50/50   complete; overrides global/year-end (books; joe)
`
	if diff := cmp.Diff(want, allText([]*View{blocked, complete}, 0)); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}
