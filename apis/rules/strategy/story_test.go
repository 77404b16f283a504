// SPDX-License-Identifier: Apache-2.0

package strategy_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"shipper.dev/shipper/apis/rules/check"
	"shipper.dev/shipper/apis/rules/stamp"
	"shipper.dev/shipper/apis/rules/strategy"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

var update = flag.Bool("update", false, "write the golden files in testdata")

// recorder records what happens to an app, for comparison with a golden file.
type recorder struct {
	*app
	t    *testing.T
	text strings.Builder
	said map[string]string
	ran  string
	tick int
}

// note records an action from outside.
func (s *recorder) note(format string, args ...any) {
	fmt.Fprintf(&s.text, "\n# %s\n", fmt.Sprintf(format, args...))
}

func (s *recorder) line(format string, args ...any) {
	fmt.Fprintf(&s.text, "%3d  %s\n", s.tick, fmt.Sprintf(format, args...))
}

// settle makes plans until nothing changes any more.
func (s *recorder) settle() {
	s.t.Helper()
	for range 60 {
		s.tick++
		before := s.text.Len()
		names := make([]string, 0, len(s.releases))
		for _, r := range s.releases {
			names = append(names, r.Release.Name)
		}
		s.reconcile()
		for i, outcome := range s.plan.Outcomes {
			s.tellWrites(names[i], outcome.Write)
		}
		for i, outcome := range s.plan.Outcomes {
			s.printStatus(names[i], outcome)
		}
		for _, name := range s.plan.Covered {
			s.line("go   %s is deleted", name)
		}
		s.work()
		s.tellRuns()
		if s.text.Len() == before {
			s.tick--
			return
		}
	}
	s.t.Error("this does not come to an end")
}

func (s *recorder) tellWrites(name string, w strategy.Write) {
	if w.Installation != nil {
		s.line("ask  %s installation in %s, canOverride %t", name, w.Installation.Clusters, w.Installation.CanOverride)
	}
	if w.Capacity != nil {
		var parts []string
		for _, c := range w.Capacity.Clusters {
			if c.AsFound {
				parts = append(parts, c.Name+" as found")
			} else {
				parts = append(parts, fmt.Sprintf("%s %d%%", c.Name, c.Percent))
			}
		}
		s.line("ask  %s capacity %s", name, strings.Join(parts, ", "))
	}
	if w.Traffic != nil {
		var parts []string
		for _, c := range w.Traffic.Clusters {
			if c.AsFound {
				parts = append(parts, c.Name+" as found")
			} else {
				parts = append(parts, fmt.Sprintf("%s %d", c.Name, c.Weight))
			}
			if c.Sole {
				parts[len(parts)-1] += " alone"
			}
			if c.Preview != "" {
				parts[len(parts)-1] += " with the preview of " + string(c.Preview)
			}
		}
		s.line("ask  %s traffic %s", name, strings.Join(parts, ", "))
	}
}

// printStatus prints a Release's status if it differs from the last one printed.
func (s *recorder) printStatus(name string, o strategy.Outcome) {
	said := string(o.Role)
	if a := o.Status.AchievedStep; a != nil {
		said += fmt.Sprintf(", achieved %d %s", a.Step, a.Name)
	}
	if shipper.ConditionTrue(o.Status.Conditions, shipper.ReleaseComplete) {
		said += ", complete"
	}
	if o.Status.Strategy != nil {
		said += states(o.Status.Strategy.State)
	}
	if c := shipper.FindCondition(o.Status.Conditions, shipper.ReleaseStrategyExecuted); c.Status == "False" {
		said += "\n       " + strings.TrimSuffix(c.Reason+": "+c.Message, ": ")
	}
	if s.said[name] != said {
		s.line("is   %s %s", name, said)
		s.said[name] = said
	}
}

func states(state shipper.ReleaseStrategyState) string {
	out := ""
	for name, v := range map[string]shipper.StrategyState{
		"installation": state.WaitingForInstallation, "capacity": state.WaitingForCapacity,
		"traffic": state.WaitingForTraffic, "command": state.WaitingForCommand, "readiness": state.WaitingForReadiness,
		"checks": state.WaitingForChecks,
	} {
		if v == shipper.StrategyStateTrue {
			out += ", waiting for " + name
		}
	}
	return out
}

func (s *recorder) tellRuns() {
	clusters := map[string][]string{}
	for _, r := range s.releases {
		for name, run := range s.runs[r.Release.Name] {
			clusters[name] = append(clusters[name],
				fmt.Sprintf("%s %d pods %d in traffic", r.Release.Name, run.pods, run.traffic))
		}
	}
	var parts []string
	for name, runs := range clusters {
		parts = append(parts, name+": "+strings.Join(runs, ", "))
	}
	slices.Sort(parts)
	if ran := strings.Join(parts, " | "); ran != s.ran {
		s.ran = ran
		s.line("runs %s", ran)
	}
}

func (s *recorder) create(steps []shipper.RolloutStrategyStep, replicas int32, clusters ...string) {
	r := s.release(steps, replicas, clusters...)
	s.note("Release %s is created: %d replicas in %s", r.Release.Name, replicas, strings.Join(clusters, " and "))
	s.settle()
}

func (s *recorder) goTo(step int32) {
	s.newest().Spec.TargetStep = step
	s.note("targetStep of %s becomes %d", s.newest().Name, step)
	s.settle()
}

func (s *recorder) lose(status bool) {
	s.restore(status)
	s.note("the management cluster is lost and restored, with status: %t", status)
	s.settle()
}

func (s *recorder) abort() {
	s.note("%s is deleted", s.newest().Name)
	s.remove(s.newest().Name)
	s.settle()
}

// say sets a condition of another controller on the newest Release.
func (s *recorder) say(conditionType string, status corev1.ConditionStatus, reason, message string) {
	s.note("somebody sets %s of %s to %s (%s)", conditionType, s.newest().Name, status, reason)
	s.newest().Status.Conditions = shipper.SetCondition(s.newest().Status.Conditions, shipper.Condition{
		Type: conditionType, Status: status, Reason: reason, Message: message,
	}, metav1.NewTime(s.now))
	s.settle()
}

// gated is a step with readinessGates.
func gated(s shipper.RolloutStrategyStep, gates ...string) shipper.RolloutStrategyStep {
	s.ReadinessGates = gates
	return s
}

// guarded is vanguard with gates of its first and its last step.
var guarded = []shipper.RolloutStrategyStep{
	gated(vanguard[0], "example.com/Verified", "example.com/Approved"), vanguard[1], gated(vanguard[2], "example.com/Verified"),
}

// checkedStep is a step with a check.
func checkedStep(s shipper.RolloutStrategyStep) shipper.RolloutStrategyStep {
	s.Checks = []shipper.StepCheck{{Check: "errors"}}
	return s
}

// check says how far the checks of the step are.
func (s *recorder) check(what string, state *check.State) {
	s.note("the checks of %s %s", s.newest().Name, what)
	s.checks = state
	s.settle()
}

// rollBack creates the Release of a rollback to another one, stamped as the webhook would.
func (s *recorder) rollBack(to string, how shipper.RollbackStrategy, replicas int32, clusters ...string) {
	s.t.Helper()
	app := &shipper.Application{}
	app.Name, app.Namespace = "web", "default"
	app.Annotations = map[string]string{
		shipper.AppRolledBackToAnnotation: to, shipper.AppRollbackStrategyAnnotation: string(how),
	}
	var goal *shipper.Release
	for _, r := range s.releases {
		if r.Release.Name == to {
			goal = r.Release.DeepCopy()
		}
	}
	app.Spec.Template = goal.Spec.Environment
	goal.Namespace, goal.Labels = app.Namespace, map[string]string{shipper.AppLabel: app.Name}
	stamped, err := stamp.Release(app, []*shipper.Release{goal})
	if err != nil {
		s.t.Fatal(err)
	}
	r := s.release(app.Spec.Template.Strategy.Steps, replicas, clusters...).Release
	r.Spec.TargetStep = stamped.Spec.TargetStep
	r.Annotations[shipper.ReleaseRollbackOfAnnotation] = stamped.Annotations[shipper.ReleaseRollbackOfAnnotation]
	s.note("%s is gone back to (%s), Release %s is created: %d replicas in %s, targetStep %d",
		to, how, r.Name, replicas, strings.Join(clusters, " and "), r.Spec.TargetStep)
	s.settle()
}

var stories = map[string]func(*recorder){
	"first-rollout": func(s *recorder) {
		s.create(vanguard, 10, "a", "b")
		s.goTo(1)
		s.goTo(2)
	},
	"second-rollout-forward": func(s *recorder) {
		s.create(allIn, 10, "a", "b")
		s.create(vanguard, 10, "a", "b")
		s.goTo(1)
		s.goTo(2)
	},
	"second-rollout-back": func(s *recorder) {
		s.create(allIn, 10, "a", "b")
		s.create(vanguard, 10, "a", "b")
		s.goTo(2)
		s.goTo(1)
		s.goTo(0)
	},
	"gates-are-passed": func(s *recorder) {
		s.create(allIn, 10, "a", "b")
		s.create(guarded, 10, "a", "b")
		s.say("example.com/Verified", "False", "TestsFailed", "3 of 10 failed")
		s.say("example.com/Verified", "True", "", "")
		s.say("example.com/Approved", "True", "", "")
		s.say("example.com/Approved", "False", "Withdrawn", "")
		s.goTo(1)
		s.say("example.com/Verified", "Unknown", "Running", "")
		s.goTo(2)
		s.say("example.com/Verified", "True", "", "")
		s.say("example.com/Verified", "False", "TestsFailed", "")
	},
	"checks-come-after-readiness-gates": func(s *recorder) {
		s.create(allIn, 10, "a", "b")
		first := checkedStep(gated(vanguard[0], "example.com/Verified"))
		s.create([]shipper.RolloutStrategyStep{first, vanguard[1], vanguard[2]}, 10, "a", "b")
		s.check("begin", &check.State{Awaited: "check errors has 0 of 3 results in a"})
		s.say("example.com/Verified", "True", "", "")
		s.check("have passed in a", &check.State{Awaited: "check errors has 2 of 3 results in b"})
		s.check("have passed everywhere", &check.State{Passed: true})
		s.goTo(1)
		s.goTo(0)
	},
	"a-failed-check-does-not-delay-a-retreat": func(s *recorder) {
		s.create(allIn, 10, "a", "b")
		s.create([]shipper.RolloutStrategyStep{vanguard[0], checkedStep(vanguard[1]), vanguard[2]}, 10, "a", "b")
		s.goTo(1)
		s.check("fail", &check.State{Awaited: "check errors has failed in b: new = 4"})
		s.goTo(0)
		s.abort()
	},
	"a-closed-gate-holds-up-nobody-who-goes-back": func(s *recorder) {
		s.create(allIn, 10, "a", "b")
		s.create([]shipper.RolloutStrategyStep{
			gated(vanguard[0], "example.com/Verified"), gated(vanguard[1], "example.com/Verified"), vanguard[2],
		}, 10, "a", "b")
		s.say("example.com/Verified", "True", "", "")
		s.say("example.com/Verified", "False", "TestsFailed", "")
		s.goTo(1)
		s.goTo(0)
		s.abort()
	},
	"a-closed-gate-holds-up-nobody-who-goes-past-it": func(s *recorder) {
		s.create(allIn, 10, "a")
		s.create(guarded[:2:2], 10, "a")
		s.goTo(1)
	},
	"turning-round-halfway": func(s *recorder) {
		s.create(allIn, 10, "a", "b")
		s.create(vanguard, 10, "a", "b")
		s.newest().Spec.TargetStep = 2
		s.note("targetStep of %s becomes 2, and 1 before that is achieved", s.newest().Name)
		for len(s.releases[0].Capacity.Spec.Clusters) > 0 && s.releases[0].Capacity.Spec.Clusters[0].Percent > 0 {
			s.reconcile()
			s.work()
		}
		s.tellRuns()
		s.goTo(1)
	},
	"skip-forward-and-back": func(s *recorder) {
		s.create(allIn, 10, "a", "b")
		s.create(vanguard, 10, "a", "b")
		s.goTo(2)
		s.goTo(0)
	},
	"abort": func(s *recorder) {
		s.create(allIn, 10, "a", "b")
		s.create(vanguard, 10, "a", "b")
		s.goTo(1)
		s.abort()
	},
	"superseded-in-the-middle": func(s *recorder) {
		s.create(allIn, 10, "a", "b")
		s.create(vanguard, 10, "a", "b")
		s.goTo(1)
		s.create(vanguard, 10, "a", "b")
		s.goTo(2)
	},
	"superseded-without-incumbent": func(s *recorder) {
		s.create(vanguard, 10, "a")
		s.goTo(1)
		s.create(vanguard, 4, "a")
		s.goTo(1)
		s.goTo(2)
	},
	"superseded-while-broken": func(s *recorder) {
		s.create(allIn, 10, "a")
		s.broken["web-1"] = true
		s.create(vanguard, 10, "a")
		s.create(vanguard, 10, "a")
	},
	"complete-then-stepped-back-then-superseded": func(s *recorder) {
		s.create(allIn, 10, "a")
		s.create(vanguard, 10, "a")
		s.goTo(2)
		s.goTo(1)
		s.create(vanguard, 10, "a")
		s.goTo(2)
	},
	"a-third-release-retires-the-first": func(s *recorder) {
		s.create(allIn, 10, "a")
		s.create(allIn, 10, "a")
		s.note("somebody gives web-0 capacity and traffic again")
		first := s.releases[0]
		first.Capacity.Spec.Clusters[0].Percent, first.Traffic.Spec.Clusters[0].Weight = 50, 10
		s.create(allIn, 10, "a")
	},
	"the-first-rollout-while-a-cluster-is-down": func(s *recorder) {
		s.down["b"] = true
		s.note("cluster b is down")
		s.create(vanguard, 10, "a", "b")
		s.goTo(2)
		s.note("cluster b is back")
		s.down["b"] = false
		s.settle()
	},
	"a-cluster-is-down": func(s *recorder) {
		s.create(allIn, 10, "a", "b")
		s.create(vanguard, 10, "a", "b")
		s.down["b"] = true
		s.goTo(1)
		s.note("cluster b is back")
		s.down["b"] = false
		s.settle()
	},
	"abort-while-a-cluster-is-down": func(s *recorder) {
		s.create(allIn, 10, "a", "b")
		s.create(vanguard, 10, "a", "b")
		s.goTo(1)
		s.down["b"] = true
		s.note("cluster b is down")
		s.settle()
		s.abort()
	},
	"abort-of-all-traffic-while-a-cluster-is-down": func(s *recorder) {
		s.create(allIn, 10, "a", "b")
		s.create(allIn, 10, "a", "b")
		s.create([]shipper.RolloutStrategyStep{
			step("all traffic", 100, 100, 0, 100), step("full on", 0, 100, 0, 100),
		}, 10, "a", "b")
		s.down["b"] = true
		s.note("cluster b is down")
		s.settle()
		s.abort()
		s.note("cluster b is back")
		s.down["b"] = false
		s.settle()
	},
	"broken-contender": func(s *recorder) {
		s.create(allIn, 4, "a")
		s.broken["web-1"] = true
		s.create(vanguard, 4, "a")
		s.goTo(1)
		s.goTo(0)
		s.abort()
	},
	"broken-incumbent": func(s *recorder) {
		s.create(allIn, 4, "a")
		s.note("web-0 loses a pod that does not come back")
		s.broken["web-0"] = true
		s.runs["web-0"]["a"].pods = 3
		s.create(vanguard, 4, "a")
		s.goTo(1)
		s.goTo(2)
	},
	"one-replica": func(s *recorder) {
		s.create(allIn, 1, "a")
		s.create(vanguard, 1, "a")
		s.goTo(1)
		s.goTo(2)
	},
	"zero-replicas": func(s *recorder) {
		s.create(allIn, 0, "a")
		s.create(vanguard, 2, "a")
		s.goTo(2)
	},
	"a-step-that-shrinks-the-contender": func(s *recorder) {
		s.create(allIn, 10, "a")
		s.create([]shipper.RolloutStrategyStep{
			step("load test", 100, 80, 3, 1), step("watch", 100, 20, 3, 1), step("full on", 0, 100, 0, 1),
		}, 10, "a")
		s.goTo(1)
		s.goTo(2)
	},
	"traffic-for-nobody-and-weights-of-any-sum": func(s *recorder) {
		s.create(allIn, 10, "a")
		s.create([]shipper.RolloutStrategyStep{
			step("one in eight", 100, 100, 7, 1), step("maintenance", 100, 100, 0, 0), step("full on", 0, 100, 0, 12345),
		}, 10, "a")
		s.goTo(1)
		s.goTo(2)
	},
	"the-clusters-change": func(s *recorder) {
		s.create(allIn, 10, "a", "b")
		s.note("web-0 is moved from a and b to b and c")
		s.newest().Annotations[shipper.ReleaseClustersAnnotation] = "b,c"
		s.settle()
		s.create(vanguard, 10, "b", "d")
		s.goTo(1)
		s.goTo(2)
	},
	"blocked": func(s *recorder) {
		s.create(allIn, 10, "a")
		s.create(vanguard, 10, "a")
		s.blocked = "rollouts blocked by: rollout-blocks-global/dns-outage"
		s.goTo(1)
		s.note("the block goes")
		s.blocked = ""
		s.settle()
	},
	"the-incumbent-is-moved-and-then-returned-to": func(s *recorder) {
		s.create(vanguard, 4, "a", "b")
		s.goTo(2)
		s.create(vanguard, 4, "a", "b")
		first := s.releases[0].Release
		first.Spec.TargetStep = 0
		s.note("targetStep of %s, which is not the newest, becomes 0", first.Name)
		s.settle()
		s.returning = true
		s.abort()
		s.note("the application reconciler brings %s back to its last step", first.Name)
		first.Spec.TargetStep, s.returning = 2, false
		s.settle()
		s.goTo(1)
	},
	"superseded-and-held": func(s *recorder) {
		s.create(allIn, 10, "a")
		s.create(vanguard, 10, "a")
		s.note("a block comes that web-2 overrides and web-1 does not")
		s.releases[1].Held = "rollouts blocked by: default/freeze"
		s.create(vanguard, 10, "a")
		s.note("the block is everybody's now")
		s.blocked = "rollouts blocked by: default/freeze"
		s.settle()
		s.note("the block goes")
		s.blocked, s.releases[1].Held = "", ""
		s.settle()
	},
	"restored-when-all-was-done": func(s *recorder) {
		s.create(allIn, 10, "a", "b")
		s.create(vanguard, 10, "a", "b")
		s.goTo(2)
		s.create(vanguard, 10, "a", "b")
		s.goTo(2)
		s.lose(true)
		s.lose(false)
		s.create(vanguard, 10, "a", "b")
	},
	"restored-halfway": func(s *recorder) {
		s.create(allIn, 3, "a")
		s.create(vanguard, 3, "a")
		s.goTo(1)
		s.lose(true)
		s.lose(false)
		s.goTo(2)
	},
	"restored-on-the-way-there-and-back": func(s *recorder) {
		s.create(allIn, 10, "a")
		s.create(vanguard, 10, "a")
		s.goTo(1)
		s.newest().Spec.TargetStep = 2
		s.note("targetStep of %s becomes 2, and nobody does anything about it", s.newest().Name)
		s.lose(false)
		s.newest().Spec.TargetStep = 0
		s.note("targetStep of %s becomes 0, and nobody does anything about it", s.newest().Name)
		s.lose(false)
	},
	"restored-while-a-cluster-is-down": func(s *recorder) {
		s.create(allIn, 10, "a", "b")
		s.create(vanguard, 10, "a", "b")
		s.goTo(1)
		s.down["b"] = true
		s.note("cluster b is down")
		s.lose(false)
		s.goTo(2)
		s.note("cluster b is back")
		s.down["b"] = false
		s.work()
		s.settle()
	},
	"restored-when-superseded": func(s *recorder) {
		s.create(allIn, 10, "a")
		s.create(vanguard, 10, "a")
		s.goTo(1)
		s.note("web-2 is created, and nobody does anything about it: 10 replicas in a")
		s.release(vanguard, 10, "a")
		s.lose(false)
		s.goTo(2)
	},
	"restored-when-the-incumbent-had-been-moved": func(s *recorder) {
		s.create(vanguard, 10, "a")
		s.goTo(2)
		s.create(vanguard, 10, "a")
		s.goTo(1)
		s.note("targetStep of web-0, which is not the newest, becomes 0")
		s.releases[0].Release.Spec.TargetStep = 0
		s.lose(false)
		s.goTo(2)
	},
	"rollback": func(s *recorder) {
		s.create(vanguard, 10, "a", "b")
		s.goTo(2)
		s.create(vanguard, 10, "a", "b")
		s.goTo(2)
		s.rollBack("web-0", shipper.RollbackSteps, 10, "a", "b")
		s.goTo(1)
		s.goTo(2)
	},
	"rollback-at-once": func(s *recorder) {
		s.create(vanguard, 10, "a", "b")
		s.goTo(2)
		s.create(vanguard, 10, "a", "b")
		s.goTo(2)
		s.rollBack("web-0", shipper.RollbackImmediate, 10, "a", "b")
	},
	"rollback-of-what-is-half-way": func(s *recorder) {
		s.create(vanguard, 10, "a")
		s.goTo(2)
		s.create(vanguard, 10, "a")
		s.goTo(1)
		s.broken["web-1"] = true
		s.note("Pods of web-1 break")
		s.runs["web-1"]["a"].pods = 0
		s.rollBack("web-0", shipper.RollbackImmediate, 10, "a")
	},
	"rollback-during-a-rollback": func(s *recorder) {
		s.create(vanguard, 10, "a")
		s.goTo(2)
		s.create(vanguard, 10, "a")
		s.goTo(2)
		s.rollBack("web-0", shipper.RollbackSteps, 10, "a")
		s.goTo(1)
		s.rollBack("web-1", shipper.RollbackSteps, 10, "a")
		s.goTo(2)
	},
	"rollback-of-a-rollback": func(s *recorder) {
		s.create(vanguard, 10, "a")
		s.goTo(2)
		s.create(allIn, 10, "a")
		s.rollBack("web-0", shipper.RollbackImmediate, 10, "a")
		s.rollBack("web-1", shipper.RollbackSteps, 10, "a")
	},
	"rollback-while-a-cluster-is-down": func(s *recorder) {
		s.create(vanguard, 10, "a", "b")
		s.goTo(2)
		s.create(vanguard, 10, "a", "b")
		s.goTo(2)
		s.down["b"] = true
		s.note("cluster b is down")
		s.settle()
		s.rollBack("web-0", shipper.RollbackImmediate, 10, "a", "b")
		s.note("cluster b is back")
		s.down["b"] = false
		s.settle()
	},
	"blue-green": func(s *recorder) {
		s.preview = map[string]bool{"a": true, "b": true}
		s.create(bluegreen, 10, "a", "b")
		s.goTo(2)
		s.byItself(bluegreen)
		s.goTo(1)
		s.note("step 1 was wrong")
		s.goTo(0)
		s.goTo(1)
		s.goTo(2)
		s.byItself(bluegreen)
	},
	"blue-green-abandoned-in-the-preview": func(s *recorder) {
		s.preview = map[string]bool{"a": true}
		s.create(bluegreen, 10, "a")
		s.goTo(2)
		s.byItself(bluegreen)
		s.byItself(bluegreen)
		s.note("the newest is deleted")
		s.remove("web-2")
		s.settle()
	},
	"no-such-step": func(s *recorder) {
		s.create(allIn, 10, "a")
		s.create(vanguard, 10, "a")
		s.goTo(3)
		s.goTo(1)
	},
}

var bluegreen = []shipper.RolloutStrategyStep{
	step("preview", 100, 20, 100, 0), step("switched", 100, 100, 0, 100), step("full on", 0, 100, 0, 100),
}

// byItself makes a Release whose strategy lets all traffic be switched at once.
func (s *recorder) byItself(steps []shipper.RolloutStrategyStep) {
	s.t.Helper()
	clusters := stamp.Clusters(s.newest())
	r := s.release(steps, 10, clusters...)
	r.Release.Spec.Environment.Strategy.Steps = slices.Clone(steps)
	r.Release.Spec.Environment.Strategy.Steps[0].Gate = &shipper.StepGate{}
	s.note("%s is created, with a gate", r.Release.Name)
	s.settle()
}

func TestStories(t *testing.T) {
	for name, story := range stories {
		t.Run(name, func(t *testing.T) {
			s := &recorder{app: newApp(), t: t, said: map[string]string{}}
			story(s)
			got := strings.TrimPrefix(s.text.String(), "\n")
			file := filepath.Join("testdata", name+".golden")
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
	files, err := os.ReadDir("testdata")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if stories[strings.TrimSuffix(f.Name(), ".golden")] == nil {
			t.Errorf("no test writes testdata/%s", f.Name())
		}
	}
}
