// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/cmd/shipperctl/cli"
)

// checkedObserved is a rollout whose second step has three checks, one of which does not count, in two clusters.
func checkedObserved() (*observed, *shipper.Release, *shipper.CheckTarget) {
	o := exampleObserved()
	rel := o.releases[1]
	rel.UID = "rel"
	rel.Spec.Environment.Strategy.Steps[1].Checks = []shipper.StepCheck{
		{Check: "smoke"}, {Check: "shipper-checks/errors"}, {Check: "latency", DryRun: true},
	}
	rel.Status.Strategy.Conditions = nil
	rel.Status.Progress = &shipper.ReleaseProgress{Step: 1, Checks: []shipper.ReleaseCheck{
		{Name: "smoke", Phase: shipper.CheckPassed, Cluster: "eu", Measured: 1, Count: 1},
		{Name: "errors", Phase: shipper.CheckRunning, Cluster: "us", Measured: 7, Count: 10, Value: "new = 0.0021"},
		{Name: "latency", Phase: shipper.CheckHasFailed, Cluster: "us", Measured: 2, Count: 10, DryRun: true},
	}}
	advancing(rel, shipper.AdvancingChecking, "check errors has 7 of 10 results in us")
	controlled := true
	target := &shipper.CheckTarget{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: rel.Name, Labels: map[string]string{shipper.AppLabel: "web"},
		OwnerReferences: []metav1.OwnerReference{{Kind: "Release", Name: rel.Name, UID: rel.UID, Controller: &controlled}},
	}}
	target.Spec.Run, target.Spec.Step, target.Status.Run = 1, 1, 1
	target.Spec.Clusters = []string{"eu", "us"}
	target.Status.Results = []shipper.CheckResult{
		{Name: "errors", Cluster: "us", Phase: shipper.CheckRunning, Passed: 7, Message: "the server is down"},
		{Name: "errors", Cluster: "eu", Phase: shipper.CheckPassed, Passed: 10},
		{Name: "latency", Phase: shipper.CheckHasFailed, Failed: 2},
		{Name: "smoke", Cluster: "eu", Phase: shipper.CheckPassed, Passed: 1},
		{Name: "smoke", Cluster: "us", Phase: shipper.CheckPassed, Passed: 1},
	}
	o.checks = map[string]*shipper.CheckTarget{rel.Name: target}
	return o, rel, target
}

func advancing(rel *shipper.Release, reason, message string) {
	rel.Status.Conditions = shipper.SetCondition(rel.Status.Conditions, shipper.Condition{
		Type: shipper.ReleaseAdvancing, Status: corev1.ConditionFalse, Reason: reason, Message: message,
	}, metav1.NewTime(now))
}

func TestChecksAreShownWithTheirClusters(t *testing.T) {
	o, _, _ := checkedObserved()
	p := viewOf(o, now)
	for _, want := range []string{
		"steps      ✓ staging    ● half ‖ gate (3 checks)    · full on\n" +
			"checks     ✓ smoke           eu ✓   us ✓\n" +
			"           ◐ errors          7/10   new = 0.0021 (us)   eu ✓   us ◐\n" +
			"           ◌ latency (dry)   failed   2/10\n",
	} {
		if got := p.Screen(200, now); !strings.Contains(got, want) {
			t.Errorf("the screen has not\n%s\nbut is\n%s", want, got)
		}
	}
	const lines = "check smoke: Passed, 1 of 1 measurements, in cluster eu\n" +
		"check smoke in cluster eu: Passed\ncheck smoke in cluster us: Passed\n" +
		"check errors: Running, 7 of 10 measurements, new = 0.0021, in cluster us\n" +
		"check errors in cluster eu: Passed\ncheck errors in cluster us: Running, the server is down\n" +
		"check latency (dry run): Failed, 2 of 10 measurements, in cluster us\n"
	if got := p.Lines(now); !strings.Contains(got, lines) {
		t.Errorf("the lines have not\n%s\nbut are\n%s", lines, got)
	}
}

func TestChecksOfManyClustersAreCounted(t *testing.T) {
	c := checkState{Name: "errors", Phase: shipper.CheckRunning, Cluster: "c", Measured: 1, Count: 3}
	for _, name := range strings.Split("abcdefghi", "") {
		c.Clusters = append(c.Clusters, checkInCluster{Name: name, Phase: shipper.CheckPassed, Measured: 3})
	}
	c.Clusters[2].Phase = shipper.CheckRunning
	if diff := cmp.Diff([]string{"1/3", "8 of 9 clusters ✓"}, c.parts()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestResultsOfAnotherRunAreNotShown keeps the marks of an earlier step, or of a run before a retry, from a screen.
func TestResultsOfAnotherRunAreNotShown(t *testing.T) {
	for sentence, change := range map[string]func(*shipper.Release, *shipper.CheckTarget){
		"the run is of another step": func(_ *shipper.Release, target *shipper.CheckTarget) { target.Spec.Step = 0 },
		"the run was before a retry": func(rel *shipper.Release, _ *shipper.CheckTarget) {
			rel.Annotations[shipper.ReleaseChecksRetryAnnotation] = "1"
		},
		"the run has not measured yet":    func(_ *shipper.Release, target *shipper.CheckTarget) { target.Spec.Run = 2 },
		"the target is another Release's": func(rel *shipper.Release, _ *shipper.CheckTarget) { rel.UID = "another" },
		"nothing was measured":            func(_ *shipper.Release, target *shipper.CheckTarget) { target.Status.Results = nil },
	} {
		t.Run(sentence, func(t *testing.T) {
			_, rel, target := checkedObserved()
			change(rel, target)
			for _, c := range checksOf(rel, target) {
				if len(c.Clusters) > 0 {
					t.Errorf("check %s shows %v", c.Name, c.Clusters)
				}
			}
		})
	}
	_, rel, _ := checkedObserved()
	if got := len(checksOf(rel, nil)); got != 3 {
		t.Errorf("without a target there are %d checks", got)
	}
}

func TestAFailedCheckSaysWhereItFailedAndWhatWasDone(t *testing.T) {
	time.Local = time.UTC
	const failed = "step 1 (half) failed check errors in us: new = 0.041 (2 of 5 measurements failed)"
	const where = "step 1 (half), us: check errors: new = 0.041 (2 of 5 measurements failed), 3m ago"
	const retry = "a user: `shipperctl rollout retry-checks` makes the checks again, `shipperctl rollout abort` gives the release up"
	for sentence, tc := range map[string]struct {
		state, message string
		action         shipper.FailurePolicy
		want           string
		waits          bool
	}{
		"it went back": {
			shipper.AdvancingHeldAfterGoingBack, "it retreated to step 1: nothing advances", shipper.OnFailureRetreat,
			where + ": went back to step 1", false,
		},
		"it is aborted":   {shipper.AdvancingFailed, failed + "; is aborted", shipper.OnFailureAbort, where + ": is aborted", false},
		"nothing is done": {shipper.AdvancingFailed, failed, shipper.OnFailureHold, where, true},
	} {
		t.Run(sentence, func(t *testing.T) {
			o, rel, _ := checkedObserved()
			advancing(rel, tc.state, tc.message)
			rel.Status.Conditions = append(rel.Status.Conditions, shipper.Condition{
				Type: shipper.ReleaseFailed, Status: corev1.ConditionTrue, Reason: shipper.CheckFailed, Message: failed,
				LastTransitionTime: metav1.NewTime(now.Add(-3 * time.Minute)),
			})
			rel.Status.Progress.Failure = &shipper.ReleaseFailure{
				Step: 1, Cluster: "us", Reason: shipper.CheckFailed, Check: "errors", Action: tc.action,
				Message: "new = 0.041 (2 of 5 measurements failed)",
			}
			p := viewOf(o, now)
			if got := p.Screen(200, now); !strings.Contains(got, "failed     "+tc.want+"\n") {
				t.Errorf("the screen is\n%s", got)
			}
			if got := p.Lines(now); !strings.Contains(got, "failed: "+tc.want+"\n") {
				t.Errorf("the lines are\n%s", got)
			}
			if waits := strings.Join(p.Waiting, "\n") == retry; waits != tc.waits {
				t.Errorf("it waits for %q", p.Waiting)
			}
		})
	}
}

func TestAnUndecidedCheckSaysHowItIsMadeAgain(t *testing.T) {
	o, rel, _ := checkedObserved()
	advancing(rel, shipper.AdvancingCheckUndecided, "check errors in us: the server is down")
	rel.Status.Progress.Checks[1].Phase = shipper.CheckUndecided
	want := []string{"a user: what keeps a check undecided has to end, then `shipperctl rollout retry-checks` makes the checks again"}
	if diff := cmp.Diff(want, viewOf(o, now).Waiting); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	rel.Status.Progress.Checks = nil // the run cannot begin: it does by itself when it can
	if got := viewOf(o, now).Waiting; len(got) > 0 {
		t.Errorf("it waits for %q", got)
	}
}

// TestChecksForPrograms holds the names that programs read.
func TestChecksForPrograms(t *testing.T) {
	o, rel, _ := checkedObserved()
	rel.Status.Progress.Checks = rel.Status.Progress.Checks[1:2]
	p := viewOf(o, now)
	raw, err := cli.YAML.Marshal(map[string]any{"step": p.Steps[1], "checks": p.Checks})
	if err != nil {
		t.Fatal(err)
	}
	var want, got any
	unmarshal(t, []byte(`step: {achieved: false, checks: [smoke, errors, latency], gate: true, name: half, target: true}
checks:
- name: errors
  phase: Running
  cluster: us
  measured: 7
  count: 10
  value: new = 0.0021
  clusters:
  - {name: eu, phase: Passed, measured: 10}
  - {name: us, phase: Running, measured: 7, message: the server is down}
`), &want)
	unmarshal(t, raw, &got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
