// SPDX-License-Identifier: Apache-2.0

package native

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"shipper.dev/shipper/apis/rules/shipyard"
	"shipper.dev/shipper/apis/rules/stamp"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// world is a run of version 2 whose task is under way, and an Application with the complete Release web-0 of version 1.
func world(task string, properties shipper.FreeForm, sequence ...string) *observed {
	tasks := []shipper.Task{{Name: task, Properties: properties}}
	for _, name := range sequence {
		tasks = append(tasks, shipper.Task{Name: name})
	}
	run := &shipper.SequenceRun{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "run", UID: "u"},
		Spec: shipper.SequenceRunSpec{
			Shipyard: "shop", Stage: "staging", Sequence: "delivery", Service: "web",
		},
	}
	run.Status.Resolved = &shipper.ResolvedRun{
		ServiceAccountName: "shipper-runner", Version: shipper.RunVersion{Name: "web", Version: "2"},
		Stage: shipper.Stage{Name: "staging"}, Sequence: shipper.Sequence{Name: "delivery", Tasks: tasks},
	}
	run.Status.Tasks = []shipper.TaskStatus{{Name: task, Ordinal: 1, State: shipper.TaskTriggered, EventID: "e"}}
	app := &shipper.Application{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: "web-staging", UID: "a", Generation: 3, ResourceVersion: "7",
	}}
	app.Spec.Template = environment("1")
	o := &observed{
		run: run, task: &run.Status.Tasks[0], of: &tasks[0], app: app, key: types.NamespacedName{Namespace: "shop", Name: "web-staging"},
		now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC),
	}
	o.releases = []*shipper.Release{releaseOf(0, "1", complete)}
	return o
}

func environment(version string) shipper.ReleaseEnvironment {
	return shipper.ReleaseEnvironment{
		Chart: shipper.Chart{Name: "web", Version: version, RepoURL: "r"}, Values: &shipper.ChartValues{"a": "1"},
		Strategy: &shipper.RolloutStrategy{Steps: []shipper.RolloutStrategyStep{{Name: "canary"}, {Name: "half"}, {Name: "full on"}}},
	}
}

func releaseOf(generation int, version string, edits ...func(*shipper.Release)) *shipper.Release {
	rel := &shipper.Release{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: fmt.Sprintf("web-%d", generation), ResourceVersion: "9",
		Annotations: map[string]string{shipper.ReleaseGenerationAnnotation: fmt.Sprint(generation)},
	}}
	rel.Spec.Environment = environment(version)
	for _, edit := range edits {
		edit(rel)
	}
	return rel
}

func complete(rel *shipper.Release) {
	rel.Spec.TargetStep = 2
	rel.Status.AchievedStep = &shipper.AchievedStep{Step: 2}
	rel.Status.Conditions = []shipper.Condition{{Type: shipper.ReleaseComplete, Status: corev1.ConditionTrue}}
}

// achieved is at a step and waits for the next.
func achieved(step int32) func(*shipper.Release) {
	return func(rel *shipper.Release) {
		rel.Spec.TargetStep, rel.Status.AchievedStep = step, &shipper.AchievedStep{Step: step}
		rel.Status.Strategy = &shipper.ReleaseStrategyStatus{State: shipper.ReleaseStrategyState{WaitingForCommand: shipper.StrategyStateTrue}}
	}
}

// ofRun has the claim of the run, and its hold if a task release follows.
func ofRun(o *observed) func(*shipper.Release) {
	return func(rel *shipper.Release) {
		rel.Annotations[shipper.ReleaseRunAnnotation] = stamp.Claim(shipyard.Claim(o.run))
		if shipyard.Claim(o.run).Hold {
			rel.Spec.Hold = stamp.HoldOf(shipyard.Claim(o.run))
		}
	}
}

func condition(kind string, status corev1.ConditionStatus, reason, message string) func(*shipper.Release) {
	return func(rel *shipper.Release) {
		rel.Status.Conditions = append(rel.Status.Conditions, shipper.Condition{Type: kind, Status: status, Reason: reason, Message: message})
	}
}

// blocked is what is observed under a block of the Release.
func blocked(o *observed) *observed {
	condition(shipper.ReleaseBlocked, corev1.ConditionTrue, shipper.RolloutsBlocked, "rollouts blocked by: x")(o.releases[0])
	return o
}

// told is an action in one line.
func told(a action) string {
	text := string(a.outcome.Result)
	if text == "" {
		text = "under way"
	}
	if a.outcome.Completion != "" && a.outcome.Completion != shipper.CompletionSucceeded {
		text += "/" + string(a.outcome.Completion)
	}
	if a.outcome.Stands {
		text += " (its clock stands)"
	}
	if a.outcome.Blocked != "" {
		text += " blocked: " + a.outcome.Blocked
	} else if a.outcome.Message != "" {
		text += ": " + a.outcome.Message
	}
	if a.outcome.Release != "" {
		text += " [" + a.outcome.Release + "]"
	}
	body := func(is any) string {
		raw, err := json.Marshal(is)
		if err != nil {
			return err.Error()
		}
		return string(raw)
	}
	switch {
	case a.apply != nil:
		spec, _ := a.apply["spec"].(map[string]any)
		text += " apply " + body(spec["template"])
	case a.patch != nil:
		text += fmt.Sprintf(" patch %s %s@%s %s", a.patch.kind, a.patch.key.Name, a.patch.version, body(a.patch.body))
	case a.remove != nil:
		text += " delete " + a.remove.Name
	case a.begin != nil:
		text += " measure " + a.begin.Name + " " + body(a.begin.Spec.Checks)
	}
	return text
}

// noted has stored which Release it takes back.
func noted(o *observed, release string) *observed {
	o.task.Release = "shop/" + release
	return o
}

func TestTasks(t *testing.T) {
	with := func(o *observed, generation int, version string, edits ...func(*shipper.Release)) *observed {
		o.releases = append(o.releases, releaseOf(generation, version, edits...))
		return o
	}
	edit := func(o *observed, do func(o *observed)) *observed {
		do(o)
		return o
	}
	written := func(o *observed) *observed {
		o.app.Annotations = map[string]string{shipper.AppRunAnnotation: stamp.Claim(shipyard.Claim(o.run))}
		o.app.Spec.Template = environment("2")
		o.task.Generation = 3
		return o
	}
	release := world("release", nil)
	held := func(rel *shipper.Release) { rel.Spec.Hold = "DNS" }
	for sentence, tc := range map[string]struct {
		o    *observed
		want string
	}{
		"deployment: it writes the version": {
			world("deployment", nil), `under way: writes Application shop/web-staging apply {"chart":{"version":"2"}}`,
		},
		"deployment: it writes values over those of its properties, and keeps what earlier runs set": {
			edit(world("deployment", shipper.FreeForm{"values": map[string]any{"b": "p"}}), func(o *observed) {
				values := map[string]any{"b": "q", "c": map[string]any{"d": "e"}}
				o.run.Status.Data = shipper.FreeForm{"configurationChange": map[string]any{"values": values}}
				o.app.Spec.Template.Values = &shipper.ChartValues{"a": "1", "old": map[string]any{"run": "x", "user": "y"}}
				o.app.ManagedFields = []metav1.ManagedFieldsEntry{{
					Manager: shipper.RunFieldManager, Operation: metav1.ManagedFieldsOperationApply,
					FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:template":{"f:values":{"f:old":{"f:run":{}}}}}}`),
				}}
			}),
			`under way: writes Application shop/web-staging apply {"chart":{"version":"2"},"values":{"b":"q","c":{"d":"e"},"old":{"run":"x"}}}`,
		},
		"deployment: the strategy of Keptn": {
			world("deployment", shipper.FreeForm{"deploymentstrategy": "direct"}),
			`under way: writes Application shop/web-staging apply {"chart":{"version":"2"},"strategy":{"steps":[{"capacity":{"contender":100,` +
				`"incumbent":0},"name":"full on","traffic":{"contender":100,"incumbent":0}}]}}`,
		},
		"deployment: there is no Application": {
			edit(world("deployment", nil), func(o *observed) { o.app = nil }),
			"fail/errored: there is no Application shop/web-staging: create it, with its chart and where it runs",
		},
		"deployment: something else was approved": {
			edit(world("deployment", nil), func(o *observed) {
				o.run.Status.Tasks = append([]shipper.TaskStatus{{Name: "approval", Subject: "other"}}, o.run.Status.Tasks...)
			}),
			"fail/errored: this is not what was approved: the version or the values have changed since; retry the run, and approve it again",
		},
		"deployment: this was approved": {
			edit(world("deployment", nil), func(o *observed) {
				o.run.Status.Tasks = append([]shipper.TaskStatus{{Name: "approval", Subject: shipyard.Subject(o.run)}}, o.run.Status.Tasks...)
			}),
			`under way: writes Application shop/web-staging apply {"chart":{"version":"2"}}`,
		},
		"deployment: the Release is awaited": {
			written(world("deployment", nil)), "under way: the Release of Application shop/web-staging is awaited",
		},
		"deployment: a block keeps the Release from being made": {
			edit(written(world("deployment", nil)), func(o *observed) {
				o.app.Status.Conditions = []shipper.Condition{{Type: shipper.ApplicationBlocked, Status: "True", Message: "rollouts are " +
					"blocked by dns"}}
			}),
			"under way blocked: rollouts are blocked by dns",
		},
		"deployment: another user changed the template": {
			edit(written(world("deployment", nil)), func(o *observed) {
				o.app.Annotations = map[string]string{shipper.AppRequestedByAnnotation: "eve"}
				o.app.Spec.Template = environment("3")
			}),
			"fail/errored: Application shop/web-staging was changed by eve before its Release was made",
		},
		"deployment: it is so already": {
			edit(world("deployment", nil), func(o *observed) { o.run.Status.Resolved.Version.Version = "1" }), "pass [shop/web-0]",
		},
		"deployment: the repository has another archive": {
			func() *observed {
				o := written(world("deployment", nil))
				o.run.Status.Resolved.Version.Digest = "aa"
				return with(o, 1, "2", ofRun(o), func(rel *shipper.Release) { rel.Annotations[shipper.ReleaseChartDigestAnnotation] = "bb" })
			}(),
			"fail/errored: the repository has another archive of web 2 than when the run was created [shop/web-1]",
		},
		"deployment: its Release goes on to the last step": {
			func() *observed {
				o := written(world("deployment", nil))
				return with(o, 1, "2", ofRun(o), achieved(1))
			}(),
			`under way: Release web-1 is on its way [shop/web-1] patch Release web-1@9 {"spec":{"targetStep":2}}`,
		},
		"deployment: a task release follows": {
			func() *observed {
				o := written(world("deployment", nil, "test", "release"))
				return with(o, 1, "2", ofRun(o), achieved(0))
			}(),
			"pass [shop/web-1]",
		},
		"deployment: its Release has failed": {
			func() *observed {
				o := written(world("deployment", nil))
				return with(o, 1, "2", ofRun(o), condition(shipper.ReleaseFailed, "True", "", "no image"))
			}(),
			"fail/errored: Release web-1 has failed: no image [shop/web-1]",
		},
		"deployment: its Release was deleted": {
			edit(written(world("deployment", nil)), func(o *observed) { o.task.Release = "shop/web-1" }), "fail/errored: Release " +
				"shop/web-1 was deleted",
		},
		"deployment: another Release replaced it": {
			func() *observed {
				o := written(world("deployment", nil))
				return with(with(o, 1, "2", ofRun(o), achieved(0)), 2, "3")
			}(),
			"fail/errored: Release web-2 replaced Release web-1 [shop/web-1]",
		},
		"deployment: a user holds the Release": {
			func() *observed {
				o := written(world("deployment", nil))
				return with(o, 1, "2", ofRun(o), achieved(0), held)
			}(),
			"under way (its clock stands): Release web-1 is held: DNS [shop/web-1]",
		},
		"deployment: the Release waits for approvals": {
			func() *observed {
				o := written(world("deployment", nil))
				return with(o, 1, "2", ofRun(o), achieved(0), condition(shipper.ReleaseAdvancing, "False", shipper.AdvancingAwaitingApproval, "1 of 2"))
			}(),
			"under way (its clock stands): 1 of 2 [shop/web-1]",
		},
		"release: it takes its hold away": {
			func() *observed {
				o := release
				return with(o, 1, "2", ofRun(o), func(rel *shipper.Release) { rel.Spec.Hold = stamp.HoldOf(shipyard.Claim(o.run)) }, achieved(0))
			}(),
			`under way: takes the hold of Release web-1 away [shop/web-1] patch Release web-1@9 {"spec":{"hold":null}}`,
		},
		"release: it ends at the step that is named": {
			with(world("release", shipper.FreeForm{"to": "half"}), 1, "2", achieved(1)), "pass [shop/web-1]",
		},
		"release: a step that is not there": {
			with(world("release", shipper.FreeForm{"to": "all"}), 1, "2", achieved(1)), `fail/errored: Release web-1 has no step "all"`,
		},
		"release: a user moved it back": {
			with(world("release", nil), 1, "2", achieved(0), func(rel *shipper.Release) {
				rel.Annotations[shipper.ReleaseMovedAnnotation] = `{"from":1,"to":0,"count":2}`
			}),
			"under way (its clock stands): Release web-1 was moved back to step 0: raise targetStep to go on, or abort the run [shop/web-1]",
		},
		"release: a block holds it": {
			with(world("release", nil), 1, "2", achieved(0), condition(shipper.ReleaseBlocked, "True", "RolloutsBlocked", "blocked by dns")),
			"under way blocked: blocked by dns [shop/web-1]",
		},
		"rollback: which Release it takes back is stored first": {
			with(world("rollback", nil), 1, "2", achieved(0)), "under way: takes Release web-1 back [shop/web-1]",
		},
		"rollback: what is not complete is aborted": {
			noted(with(world("rollback", nil), 1, "2", achieved(0)), "web-1"), "under way: aborts Release web-1 [shop/web-1] delete web-1",
		},
		"rollback: after the abort": {
			edit(world("rollback", nil), func(o *observed) { o.task.Release = "shop/web-1" }), "pass",
		},
		"rollback: what is complete is gone back from": {
			noted(with(world("rollback", nil), 1, "2", complete), "web-1"),
			`under way: goes back to Release web-0 [shop/web-1] patch Application web-staging@7 {"spec":{"rollbackTo":{"release":"web-0",` +
				`"strategy":"Immediate"}}}`,
		},
		"rollback: the run before made nothing": {
			edit(with(world("rollback", nil), 1, "2", complete), func(o *observed) {
				o.run.Status.Resolved.TriggeredBy, o.before = &shipper.RunTrigger{Run: "x"}, &shipper.SequenceRun{}
			}),
			"pass: nothing was delivered",
		},
		"rollback: the run before made a Release that another replaced": {
			edit(with(with(world("rollback", nil), 1, "2", achieved(0)), 2, "3"), func(o *observed) {
				o.before = &shipper.SequenceRun{Status: shipper.SequenceRunStatus{Tasks: []shipper.TaskStatus{{Release: "shop/web-1"}}}}
				o.before.UID = "b"
				o.releases[1].Annotations[shipper.ReleaseRunAnnotation] = `{"namespace":"shop","run":"x","uid":"b"}`
			}),
			"pass: Release web-2 replaced it",
		},
		"rollback: the run before changed nothing": {
			edit(world("rollback", nil), func(o *observed) {
				o.before = &shipper.SequenceRun{ObjectMeta: metav1.ObjectMeta{UID: "before"}}
				o.before.Status.Tasks = []shipper.TaskStatus{{Release: "shop/web-0"}}
			}),
			"pass: Release web-0 was there before: nothing was delivered",
		},
		"rollback: the run before is gone": {
			edit(world("rollback", nil), func(o *observed) { o.run.Status.Resolved.TriggeredBy = &shipper.RunTrigger{Run: "x"} }),
			"fail/errored: run x, which it takes back, is gone: start one of this sequence by hand",
		},
		"rollback: the first Release stays": {
			edit(noted(world("rollback", nil), "web-0"), func(o *observed) {
				o.releases = []*shipper.Release{releaseOf(0, "1", achieved(0))}
			}),
			"pass: there is no complete Release before web-0: it stays",
		},
		"test: it asks for the tests of the chart": {
			world("test", nil),
			`under way: asks for the tests of Release web-0 patch Release web-0@9 {"metadata":{"annotations":{"` +
				shipper.ReleaseTestAnnotation + `":"e"}}}`,
		},
		"test: it waits for all clusters": {tested("e", shipper.HookRunning, shipper.HookSucceeded), "under way: the tests run in eu"},
		"test: it fails with one":         {tested("e", shipper.HookHasFailed, shipper.HookSucceeded), "fail: the tests failed: eu: exit 1"},
		"test: it passes with all":        {tested("e", shipper.HookSucceeded, shipper.HookSucceeded), "pass"},
		"test: results of another run":    {tested("x", shipper.HookSucceeded, shipper.HookSucceeded), "under way: the tests run in eu, us"},
		"test: a Job": {
			world("test", shipper.FreeForm{"job": map[string]any{"template": map[string]any{}}}),
			`under way: begins 1 checks of Release web-0 measure run-e ` +
				`[{"name":"test","from":"shop/run","count":1,"check":{"job":{"template":{}}}}]`,
		},
		"test: a Job waits for the end of a block": {
			blocked(world("test", shipper.FreeForm{"job": map[string]any{"template": map[string]any{}}})),
			"under way blocked: rollouts blocked by: x",
		},
		"test: the tests of the chart wait for the end of a block": {blocked(world("test", nil)), "under way blocked: rollouts blocked by: x"},
		"test: tests that have begun continue under a block": {
			blocked(tested("e", shipper.HookSucceeded, shipper.HookSucceeded)), "pass",
		},
		"evaluation: no checks": {world("evaluation", nil), "pass: nothing was measured: properties.checks names no Check"},
		"evaluation: a Check that is not there": {
			edit(world("evaluation", shipper.FreeForm{"checks": []any{map[string]any{"check": "errors"}}}), func(o *observed) {
				o.find = func(types.NamespacedName) *shipper.Check { return nil }
			}),
			"fail/errored: check errors: there is no Check shop/errors",
		},
		"evaluation: of 3 to 1 passed": {
			evaluated(shipper.CheckPassed, shipper.CheckHasFailed), "warning: score 75 of 100, and pass needs 90",
		},
		"evaluation: the heavy one failed": {
			evaluated(shipper.CheckHasFailed, shipper.CheckPassed), "fail: score 25 of 100, and warning needs 75",
		},
		"evaluation: all passed": {evaluated(shipper.CheckPassed, shipper.CheckPassed), "pass: score 100 of 100"},
		"evaluation: one is measured": {
			evaluated(shipper.CheckPassed, shipper.CheckRunning), "under way: check b has 0 of 1 results in eu",
		},
		"evaluation: the heavy one is undecided": {evaluated(shipper.CheckUndecided, shipper.CheckPassed), "fail/unknown: check a in eu: "},
	} {
		t.Run(sentence, func(t *testing.T) {
			if got := told(decisions[tc.o.task.Name](tc.o)); got != tc.want {
				t.Errorf("got:  %s\nwant: %s", got, tc.want)
			}
		})
	}
}

// tested is a Release whose tests were asked for, with results in two clusters.
func tested(request string, eu, us shipper.HookPhase) *observed {
	o := world("test", nil)
	o.releases[0].Annotations[shipper.ReleaseTestAnnotation] = "e"
	o.installation = &shipper.InstallationTarget{Spec: shipper.InstallationTargetSpec{Clusters: []string{"us", "eu"}}}
	for name, phase := range map[string]shipper.HookPhase{"eu": eu, "us": us} {
		one := shipper.ClusterInstallationStatus{Test: &shipper.TestRun{Request: request, Phase: phase, Message: "exit 1"}}
		one.Name = name
		o.installation.Status.Clusters = append(o.installation.Status.Clusters, one)
	}
	return o
}

// evaluated has two Checks, of weights 3 and 1, and their results.
func evaluated(a, b shipper.CheckPhase) *observed {
	o := world("evaluation", shipper.FreeForm{"checks": []any{
		map[string]any{"check": "a", "weight": int64(3)}, map[string]any{"check": "b"},
	}})
	spec := shipper.CheckSpec{HTTP: &shipper.HTTPCheck{}}
	o.checks = &shipper.CheckTarget{
		Spec: shipper.CheckTargetSpec{
			Run: 1, Clusters: []string{"eu"}, Checks: []shipper.CheckRun{{Name: "a", Count: 1, Check: spec}, {Name: "b", Count: 1, Check: spec}},
		},
		Status: shipper.CheckTargetStatus{Run: 1, Results: []shipper.CheckResult{
			{Name: "a", Cluster: "eu", Phase: a}, {Name: "b", Cluster: "eu", Phase: b},
		}},
	}
	return o
}

func TestADeploymentReports(t *testing.T) {
	o := world("deployment", nil)
	rel := releaseOf(1, "2", complete, ofRun(o), func(rel *shipper.Release) {
		rel.Annotations[shipper.ReleaseClustersAnnotation] = "eu,us"
		rel.Annotations[shipper.ReleaseChartDigestAnnotation] = "aa"
	})
	o.releases = append(o.releases, rel)
	want := shipper.FreeForm{"deployment": map[string]any{
		"application": "shop/web-staging", "release": "web-1", "previousRelease": "web-0", "name": "web", "version": "2", "digest": "aa",
		"clusters": []any{"eu", "us"},
	}}
	if diff := cmp.Diff(want, deploy(o).outcome.Data); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestFieldsThatOthersDeclareStay(t *testing.T) {
	const left = "spec.template.chart.version is set by %s: leave it out of the manifest there, so that runs can set it"
	for message, by := range map[string]string{
		`conflict with "kubectl-create" using shipper.booking.com/v1alpha1`:            "",
		`conflict with "kubectl-client-side-apply" using shipper.booking.com/v1alpha1`: "",
		`conflict with "kubectl"`: "",
		`conflict with "shipperctl" using shipper.booking.com/v1alpha1`:                 "",
		`conflict with "shipperctl"`:                                                    "shipperctl",
		`conflict with "helm" using shipper.booking.com/v1alpha1`:                       "helm",
		`conflict with "argocd-controller"`:                                             "argocd-controller",
		`conflict with "kustomize-controller" with subresource "status" using apps/v1 `: "kustomize-controller",
	} {
		err := apierrors.NewApplyConflict([]metav1.StatusCause{
			{Type: metav1.CauseTypeFieldManagerConflict, Message: message, Field: ".spec.template.chart.version"},
		}, "Apply failed with 1 conflict")
		want := ""
		if by != "" {
			want = fmt.Sprintf(left, by)
		}
		if got := declared(err); got != want {
			t.Errorf("%s: %q, want %q", message, got, want)
		}
	}
}
