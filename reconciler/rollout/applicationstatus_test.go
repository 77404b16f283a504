// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"shipper.dev/shipper/apis/rules/stamp"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

func TestApplicationStatus(t *testing.T) {
	refused := apierrors.NewForbidden(shipper.Resource("releases"), "x", errors.New("rollouts blocked by: a/b (no)"))
	down := errors.New("the gate is down")
	p := func(s *scope) templatePlan { return planTemplate(s, metav1.Unix(1, 0)) }
	first, second := complete(0, 1), rel(1, 2)
	type conditions = map[string]string
	cases := map[string]struct {
		scope   *scope
		applied applied
		change  func(*templatePlan)
		history []string
		want    conditions
	}{
		"a release is created": {
			scope: seen(web(2, "0", 1), first), history: []string{first.Name, "web-" + hashOf(2) + "-0"},
			want: conditions{"RollingOut": `True  Transitioning from "` + first.Name + `" to "web-` + hashOf(2) + `-0"`},
		},
		"the first release is created": {
			scope: seen(web(2, "", 1)), history: []string{"web-" + hashOf(2) + "-0"},
			want: conditions{"RollingOut": `True  Rolling out initial release "web-` + hashOf(2) + `-0"`},
		},
		"a release is active": {
			scope: seen(web(1, "0", 1), first), history: []string{first.Name},
			want: conditions{"RollingOut": `False  Release "` + first.Name + `" is active`},
		},
		"a release cannot be created": {
			scope: seen(web(2, "0", 1), first), applied: applied{create: down}, history: []string{first.Name},
			want: conditions{
				"RollingOut":    `False CreateReleaseFailed could not create a new release: "the gate is down"`,
				"ReleaseSynced": `False CreateReleaseFailed could not create a new release: "the gate is down"`,
			},
		},
		"the gate knows of a block first": {
			scope: seen(web(2, "0", 1), first), applied: applied{create: refused}, history: []string{first.Name},
			want: conditions{
				"Blocked":       "True RolloutsBlocked rollouts blocked by: a/b",
				"ReleaseSynced": "False RolloutsBlocked rollouts blocked by: a/b",
				"RollingOut":    `False  Release "` + first.Name + `" is active`,
			},
		},
		"a release cannot be deleted": {
			scope: seen(web(2, "1", 2), first, second), applied: applied{rest: refused},
			change:  func(p *templatePlan) { p.remove = []*shipper.Release{first} },
			history: []string{first.Name, second.Name},
			want: conditions{
				"Blocked":    "True RolloutsBlocked rollouts blocked by: a/b",
				"RollingOut": `True  Transitioning from "` + first.Name + `" to "` + second.Name + `"`,
			},
		},
		"a release is deleted": {
			scope: seen(web(2, "1", 2), first, second), change: func(p *templatePlan) { p.remove = []*shipper.Release{first} },
			history: []string{second.Name},
			want:    conditions{"RollingOut": `True  Rolling out initial release "` + second.Name + `"`},
		},
		"nothing can be named": {
			scope: seen(web(1, "", 0)), change: func(p *templatePlan) { p.create, p.stampErr = nil, errors.New("too long") },
			want: conditions{
				"RollingOut":    `False CreateReleaseFailed could not create a new release: "too long"`,
				"ReleaseSynced": `False CreateReleaseFailed could not create a new release: "too long"`,
			},
		},
		"nothing is resolved": {
			scope: seen(web(1, "", 0)), change: func(p *templatePlan) {
				p.create, p.unready = nil, refusal{shipper.ChartVersionResolutionFailed, "not one version"}
			},
			want: conditions{
				"RollingOut":    "False ChartVersionResolutionFailed not one version",
				"ReleaseSynced": "False ChartVersionResolutionFailed not one version",
			},
		},
		"blocked from the beginning": {
			scope: seen(web(1, "", 0)),
			change: func(p *templatePlan) {
				*p = templatePlan{blocked: "rollouts blocked by: a/b", pending: "rollouts blocked by: a/b"}
			},
			want: conditions{
				"Blocked":       "True RolloutsBlocked rollouts blocked by: a/b",
				"ReleaseSynced": "False RolloutsBlocked rollouts blocked by: a/b",
				"RollingOut":    `Unknown  no contender release found for application "web"`,
			},
		},
		"history cannot be read": {
			scope: seen(web(1, "0", 1), first), history: []string{first.Name},
			change: func(p *templatePlan) { p.disorder = refusal{"Broken", "mend it"} },
			want:   conditions{"ValidHistory": "False Broken mend it"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			plan := p(tc.scope)
			if tc.change != nil {
				tc.change(&plan)
			}
			got := applicationStatus(tc.scope, plan, tc.applied, metav1.Unix(9, 0))
			want := conditions{"Aborting": "False  ", "Blocked": "False  ", "ReleaseSynced": "True  ", "ValidHistory": "True  "}
			for key, value := range tc.want {
				want[key] = value
			}
			is := conditions{}
			for _, c := range got.Conditions {
				is[c.Type] = string(c.Status) + " " + c.Reason + " " + c.Message
			}
			if _, ok := want["RollingOut"]; !ok {
				delete(is, "RollingOut")
			}
			if diff := cmp.Diff(want, is); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if diff := cmp.Diff(tc.history, got.History); diff != "" || got.ObservedGeneration != 7 {
				t.Errorf("generation %d, history -want +got:\n%s", got.ObservedGeneration, diff)
			}
		})
	}
}

// A user who deletes the newest Release must not have what they once selected taken with the rights of who chose something else.
func TestRestoreOfOtherSelectorsForgetsWhoConsented(t *testing.T) {
	selecting := func(kind string) *shipper.Resources {
		return &shipper.Resources{Select: []shipper.ResourceSelector{{Kind: kind}}}
	}
	for kind, want := range map[string]string{"ConfigMap": "ann", "Secret": ""} {
		app, rel := &shipper.Application{}, complete(3, 1)
		app.Annotations = map[string]string{shipper.AppSelectedByAnnotation: "ann"}
		app.Spec.Template.Resources, rel.Spec.Environment.Resources = selecting("ConfigMap"), selecting(kind)
		restore(app, rel)
		if got := app.Annotations[shipper.AppSelectedByAnnotation]; got != want {
			t.Errorf("%s: consent of %q, not of %q", kind, got, want)
		}
	}
}

func TestRestoreKeepsTheConstraintOfTheSameChart(t *testing.T) {
	old := complete(3, 1)
	old.Annotations[shipper.ReleaseChartDigestAnnotation] = "abc"
	notes := func(name, raw, resolved, digest string) map[string]string {
		return map[string]string{
			shipper.AppChartNameAnnotation: name, shipper.AppChartRepoAnnotation: "https://charts.example",
			shipper.AppChartVersionRawAnnotation: raw, shipper.AppChartVersionResolvedAnnotation: resolved,
			shipper.AppChartDigestAnnotation: digest,
		}
	}
	for name, tc := range map[string]struct{ before, want map[string]string }{
		"the same chart":  {notes("nginx", "~0.0", "0.0.2", "def"), notes("nginx", "~0.0", "0.0.1", "abc")},
		"another chart":   {notes("apache", "~2", "2.4", "def"), notes("nginx", "0.0.1", "0.0.1", "abc")},
		"no chart at all": {nil, notes("nginx", "0.0.1", "0.0.1", "abc")},
	} {
		t.Run(name, func(t *testing.T) {
			app := web(2, "", 2)
			app.Annotations = tc.before
			restore(app, old)
			for key, value := range mark("3", 1) {
				tc.want[key] = value
			}
			if diff := cmp.Diff(tc.want, app.Annotations); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if !stamp.SameEnvironment(&app.Spec.Template, &old.Spec.Environment) {
				t.Error("the template is not that of the release")
			}
		})
	}
	app := web(2, "", 2)
	app.Annotations[shipper.AppChartDigestAnnotation] = "def"
	restore(app, complete(3, 1))
	if digest, ok := app.Annotations[shipper.AppChartDigestAnnotation]; ok {
		t.Errorf("digest %q is of another version", digest)
	}
}

func TestAbortIsToldBeforeItIsDone(t *testing.T) {
	s := seen(web(2, "1", 2), complete(0, 1))
	got := abortingStatus(s, planTemplate(s, metav1.Unix(1, 0)), metav1.Unix(9, 0))
	message := `abort in progress, returning state to release "web-` + hashOf(1) + `-0"`
	at := metav1.Unix(9, 0)
	want := shipper.ApplicationStatus{
		ObservedGeneration: 7, History: []string{"web-" + hashOf(1) + "-0"},
		Conditions: []shipper.Condition{
			{Type: shipper.ApplicationAborting, Status: corev1.ConditionTrue, Message: message, LastTransitionTime: at},
			{Type: shipper.ApplicationRollingOut, Status: corev1.ConditionTrue, Message: message, LastTransitionTime: at},
			{Type: shipper.ApplicationValidHistory, Status: corev1.ConditionTrue},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestChangesAreTold(t *testing.T) {
	blocked := shipper.ApplicationStatus{Conditions: []shipper.Condition{
		{Type: shipper.ApplicationBlocked, Status: corev1.ConditionTrue, Reason: shipper.RolloutsBlocked, Message: "rollouts blocked by: a/b"},
	}}
	var got []string
	for _, e := range applicationChanges(shipper.ApplicationStatus{}, blocked) {
		got = append(got, e.Type+" "+e.Reason+" "+e.Note)
	}
	want := []string{
		"Warning RolloutBlocked rollouts blocked by: a/b",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	lifted := shipper.ApplicationStatus{Conditions: []shipper.Condition{{Type: shipper.ApplicationBlocked, Status: corev1.ConditionFalse}}}
	if end := applicationChanges(blocked, lifted); end != nil {
		t.Errorf("the end of a block that held nothing is reported: %v", end)
	}
	for _, s := range []*shipper.ApplicationStatus{&blocked, &lifted} {
		s.Conditions = append(s.Conditions, shipper.Condition{Type: shipper.ApplicationRollingOut, Status: corev1.ConditionTrue})
	}
	if end := applicationChanges(blocked, lifted); len(end) != 1 || end[0].Reason != "ApplicationConditionChanged" {
		t.Errorf("the end of a block that held a rollout is reported: %v", end)
	}
	if again := applicationChanges(blocked, blocked); again != nil {
		t.Errorf("got %v for nothing", again)
	}
}

func TestContentThatIsTakenIsOneEvent(t *testing.T) {
	var none shipper.ApplicationStatus
	status := func(synced shipper.Condition, more ...shipper.Condition) shipper.ApplicationStatus {
		synced.Type = shipper.ApplicationReleaseSynced
		return shipper.ApplicationStatus{Conditions: append(more, synced)}
	}
	reading := status(shipper.Condition{Status: corev1.ConditionFalse, Reason: shipper.SelectionPending, Message: "being taken"})
	taken := status(shipper.Condition{Status: corev1.ConditionTrue}, shipper.Condition{
		Type: shipper.ApplicationResourcesSelected, Status: corev1.ConditionTrue, Message: "1 object",
	})
	taken.Resources = &shipper.TakenResources{Digest: "d"}
	blocked := reading
	blocked.Conditions = append(slices.Clone(blocked.Conditions), shipper.Condition{
		Type: shipper.ApplicationBlocked, Status: corev1.ConditionTrue, Reason: shipper.RolloutsBlocked, Message: "by a/b",
	})
	for sentence, tc := range map[string]struct {
		was, is shipper.ApplicationStatus
		want    []string
	}{
		"while it is read there is none": {was: none, is: reading},
		"nor after another":              {was: taken, is: reading},
		"but of a block":                 {was: none, is: blocked, want: []string{"Warning RolloutBlocked by a/b"}},
		"at once": {
			was: none, is: taken, want: []string{"Normal ResourcesSelected 1 object; [] -> [ReleaseSynced True]"},
		},
		"after it was read": {
			was: reading, is: taken, want: []string{
				"Normal ResourcesSelected 1 object; [ReleaseSynced False SelectionPending being taken] -> [ReleaseSynced True]",
			},
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			var got []string
			for _, e := range applicationChanges(tc.was, tc.is) {
				got = append(got, e.Type+" "+e.Reason+" "+e.Note)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestFailuresAreSaid(t *testing.T) {
	first, second := complete(0, 1), rel(1, 2)
	s := seen(web(2, "1", 2), first, second)
	said := func() string {
		s.app.Status = applicationStatus(s, planTemplate(s, metav1.Unix(1, 0)), applied{}, metav1.Unix(1, 0))
		c := shipper.FindCondition(s.app.Status.Conditions, shipper.ApplicationFailed)
		if c == nil {
			return "nothing"
		}
		return strings.TrimSpace(string(c.Status) + " " + c.Reason + " " + c.Message)
	}
	check := func(sentence, want string) {
		t.Helper()
		if got := said(); got != want {
			t.Errorf("%s: it says %q, want %q", sentence, got, want)
		}
	}
	check("before any", "nothing")
	second.Status.Conditions = []shipper.Condition{
		{Type: shipper.ReleaseFailed, Status: corev1.ConditionTrue, Reason: shipper.CheckFailed, Message: "check errors: 5 % > 1 %"},
	}
	check("a check has failed", `True CheckFailed Release "`+second.Name+`": check errors: 5 % > 1 %`)
	second.Status.Conditions = nil
	check("it was retried", "False")
	s.app.Annotations[shipper.AppFailedAnnotation] = `{"release":"web-9","step":1,"cluster":"eu","reason":"ProgressDeadlineExceeded"}`
	check("one that failed was aborted", `True ProgressDeadlineExceeded Release "web-9" failed at step 1 in eu and was aborted; `+
		`this ends when another environment completes`)
}

func TestRollbacksAreSaid(t *testing.T) {
	first, second := complete(0, 1), rel(1, 2)
	s := seen(web(2, "1", 2), first, second)
	now := metav1.Unix(1, 0)
	said := func() string {
		s.app.Status = applicationStatus(s, planTemplate(s, now), applied{}, now)
		c := shipper.FindCondition(s.app.Status.Conditions, shipper.ApplicationRolledBack)
		if c == nil {
			return "nothing"
		}
		return string(c.Status) + " " + c.Message
	}
	if got := said(); got != "nothing" {
		t.Errorf("of what was never rolled back it says %s", got)
	}
	second.Annotations[shipper.ReleaseRollbackOfAnnotation] = "web-0"
	if got, want := said(), `True Release "`+second.Name+`" has the environment of "web-0"`; got != want {
		t.Errorf("it says %s, want %s", got, want)
	}
	delete(second.Annotations, shipper.ReleaseRollbackOfAnnotation)
	if got := said(); got != "False " {
		t.Errorf("after the next edit it says %s", got)
	}
}
