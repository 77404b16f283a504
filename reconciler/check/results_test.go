// SPDX-License-Identifier: Apache-2.0

package check

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"shipper.dev/shipper/apis/rules/check"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

var noon = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

// target is a run of one check in two clusters, of which one has a result.
func target() *shipper.CheckTarget {
	out := &shipper.CheckTarget{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-1", UID: "u", Generation: 4}}
	out.Spec = shipper.CheckTargetSpec{
		Run: 3, Clusters: []string{"eu", "us"}, StartTime: metav1.NewTime(noon), Incumbent: "web-0",
		Checks: []shipper.CheckRun{{Name: "errors", Count: 2, Check: shipper.CheckSpec{
			Prometheus: &shipper.PrometheusCheck{Queries: map[string]shipper.CheckQuery{"new": "x"}}, Pass: "new < 1",
		}}},
	}
	out.Status.Run = 3
	out.Status.Results = []shipper.CheckResult{
		{Name: "errors", Cluster: "eu", Phase: shipper.CheckRunning, Passed: 1}, {Name: "gone", Cluster: "eu", Phase: shipper.CheckPassed},
	}
	return out
}

func key(cluster string) Key { return Key{"shop", "web-1", "errors", cluster} }

var good = check.Measurement{Time: noon, Verdict: shipper.VerdictPassed, Value: "new = 0"}

func TestCountsSurviveARestart(t *testing.T) {
	s := newResults().of(target())
	if is := s.get(key("eu")); is.Passed != 1 || is.Phase != shipper.CheckRunning {
		t.Errorf("%+v", is)
	}
	if is := s.get(key("us")); is.Phase != shipper.CheckPending {
		t.Errorf("%+v", is)
	}
	if is := s.add(key("eu"), &target().Spec.Checks[0], good); is.Phase != shipper.CheckPassed || is.Passed != 2 {
		t.Errorf("%+v", is)
	}
}

func TestAnotherRunBeginsWithNothing(t *testing.T) {
	all, next := newResults(), target()
	before := all.of(target())
	before.add(key("us"), &target().Spec.Checks[0], good)
	next.Spec.Run = 4
	for _, cluster := range []string{"eu", "us"} {
		if is := all.of(next).get(key(cluster)); is.Phase != shipper.CheckPending || is.Passed != 0 {
			t.Errorf("%s: %+v", cluster, is)
		}
	}
	if now := all.of(next); all.of(target()) != now {
		t.Error("an old copy of the target brings the old run back")
	}
	another := target()
	another.UID = "v"
	if is := all.of(another).get(key("us")); is.Passed != 0 {
		t.Errorf("the results of an earlier target of the name count: %+v", is)
	}
}

// TestClustersThatAnEarlierProcessLostAreLookedAtAgain has a run that is over, or whose checks are decided: nothing is measured any more
// that would write another status.
func TestClustersThatAnEarlierProcessLostAreLookedAtAgain(t *testing.T) {
	all, is := newResults(), target()
	if all.unsettled(is) {
		t.Error("a status without lost clusters is written again")
	}
	is.Status.Conditions = []shipper.Condition{{Type: shipper.TargetOperational, Status: corev1.ConditionFalse}}
	if !all.unsettled(is) {
		t.Error("a status with lost clusters is left as it is")
	}
	s := all.of(is)
	if !s.inherits() || s.inherits() {
		t.Error("clusters are not looked at once")
	}
	s.lose("us", "hangs")
	s.take(noon)
	s.add(key("us"), &is.Spec.Checks[0], check.Measurement{Time: noon, Verdict: shipper.VerdictFailed})
	s.take(noon)
	if !all.unsettled(is) {
		t.Error("a cluster is lost still, and its status is left as it is")
	}
	if got := all.waitingFor("us"); len(got) != 1 || got[0] != key("us") {
		t.Errorf("when the cluster is back, these are looked at: %v", got)
	}
	s.regain("us")
	if _, due := s.due(noon); !due || !all.unsettled(is) {
		t.Error("that the cluster is back is not written")
	}
	s.take(noon)
	if all.unsettled(is) {
		t.Error("a status that is right is written again")
	}
}

func TestWhenAStatusIsWritten(t *testing.T) {
	s, run := newResults().of(target()), &target().Spec.Checks[0]
	wait := func(after time.Duration) any {
		if d, due := s.due(noon.Add(after)); due {
			return d
		}
		return "never"
	}
	run.Count = 9
	if is := wait(0); is != "never" {
		t.Errorf("nothing is new, and it is written after %v", is)
	}
	s.add(key("us"), run, good)
	if is := wait(0); is != gather {
		t.Errorf("the first results are written after %v", is)
	}
	if is := wait(gather); is != time.Duration(0) {
		t.Errorf("they wait for %v more", is)
	}
	s.take(noon.Add(gather))
	s.add(key("us"), run, good)
	if is := wait(11 * time.Second); is != 20*time.Second {
		t.Errorf("progress is written after %v", is)
	}
	run.Count = 3
	s.add(key("us"), run, good)
	if is := wait(11 * time.Second); is != time.Duration(0) {
		t.Errorf("a decision is written after %v", is)
	}
	s.take(noon.Add(11 * time.Second))
	s.writeAgain()
	if is := wait(12 * time.Second); is != time.Duration(0) {
		t.Errorf("a write that failed is repeated after %v", is)
	}
}

func TestStatusOfATarget(t *testing.T) {
	s, now := newResults().of(target()), metav1.NewTime(noon)
	s.add(key("eu"), &target().Spec.Checks[0], good)
	s.lose("us", "no answer")
	is := target()
	results, lost := s.take(noon)
	setStatus(is, results, lost, now)
	expected := shipper.CheckTargetStatus{
		ObservedGeneration: 4, Run: 3,
		Results: []shipper.CheckResult{
			{Name: "errors", Cluster: "eu", Phase: shipper.CheckPassed, Passed: 2, LastTime: &now, Measurements: []shipper.CheckMeasurement{
				{Time: now, Result: shipper.VerdictPassed, Value: "new = 0"},
			}},
			{Name: "errors", Cluster: "us", Phase: shipper.CheckPending},
		},
		Conditions: []shipper.Condition{
			{Type: shipper.TargetOperational, Status: corev1.ConditionFalse, LastTransitionTime: now, Reason: shipper.ClustersNotOperational,
				Message: "us: no answer"},
			{Type: shipper.TargetReady, Status: corev1.ConditionFalse, LastTransitionTime: now, Reason: shipper.ChecksNotPassed,
				Message: "check errors has 0 of 2 results in us"},
		},
	}
	if diff := cmp.Diff(expected, is.Status); diff != "" {
		t.Error(diff)
	}
}

func TestNamesOfJobs(t *testing.T) {
	c := &one{key: Key{"shop", "web-1", "probe", "eu"}, target: target(), state: newResults().of(target())}
	if is := jobName(c); is != "web-1-probe-3-0" {
		t.Error(is)
	}
	c.key.Check = "a-check-with-a-name-of-almost-as-many-characters-as-there-may-be"
	first := jobName(c)
	c.target.Spec.Run++
	if second := jobName(c); len(first) > maxJobName || len(second) > maxJobName || first == second {
		t.Errorf("%s and %s", first, second)
	}
}
