// SPDX-License-Identifier: Apache-2.0

package application_test

import (
	"encoding/json"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart/repository"
	"shipper.dev/shipper/test/admission/ask"
	"shipper.dev/shipper/webhook/application"
	"shipper.dev/shipper/webhook/response"
)

const (
	runner = "system:serviceaccount:shop:shipper-runner"
	claim  = `{"namespace":"shop","run":"web-1","uid":"r","eventID":"e","requesters":["ann","bob"]}`
)

// deploying is a run of namespace shop that deploys nginx 0.0.2 to default/super-server now.
func deploying(edits ...func(*shipper.SequenceRun)) *shipper.SequenceRun {
	run := &shipper.SequenceRun{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-1", UID: "r"},
		Spec: shipper.SequenceRunSpec{
			Shipyard: "shop", Stage: "production", Sequence: "delivery", Service: "super-server",
			RequestedBy: shipper.ApprovalUser{Username: "ann"},
		},
		Status: shipper.SequenceRunStatus{Resolved: &shipper.ResolvedRun{
			ServiceAccountName: "shipper-runner", Version: shipper.RunVersion{Name: "nginx", Version: "0.0.2", Digest: "d"},
			EarlierRequesters: []string{"bob"}, Stage: shipper.Stage{Name: "production", Namespace: "default"},
			Sequence: shipper.Sequence{Name: "delivery", Tasks: []shipper.Task{{Name: "deployment"}}},
		}, Tasks: []shipper.TaskStatus{
			{Name: "deployment", Ordinal: 1, EventID: "e", State: shipper.TaskTriggered},
		}},
	}
	for _, edit := range edits {
		edit(run)
	}
	return run
}

func claiming(text string) func(*shipper.Application) {
	return ask.Annotated(shipper.AppRunAnnotation, text)
}

// releasing gives a run a task release, which comes later.
func releasing(run *shipper.SequenceRun) {
	tasks := &run.Status.Resolved.Sequence.Tasks
	*tasks = append(*tasks, shipper.Task{Name: "release"})
}

// changing gives a run a value.
func changing(run *shipper.SequenceRun) {
	run.Spec.Data = shipper.FreeForm{"configurationChange": map[string]any{"values": map[string]any{"replicas": int64(3)}}}
}

func replicas(n int64) func(*shipper.Application) {
	return func(app *shipper.Application) {
		values := shipper.ChartValues{}
		if app.Spec.Template.Values != nil {
			values = app.Spec.Template.Values.DeepCopy()
		}
		values["replicas"] = n
		app.Spec.Template.Values = &values
	}
}

func unclaimed(app *shipper.Application) { delete(app.Annotations, shipper.AppRunAnnotation) }

// through sends a write through both webhooks, and returns the claim that is stored.
func through(t *testing.T, w *application.Webhook, req *admission.Request) (string, error) {
	t.Helper()
	a := &response.Response{}
	if err := w.Default(t.Context(), req, a); err != nil {
		return "", err
	}
	is := ask.Patched[shipper.Application](t, req, a)
	var err error
	if req.Object.Raw, err = json.Marshal(is); err != nil {
		t.Fatal(err)
	}
	return is.Annotations[shipper.AppRunAnnotation], w.Validate(t.Context(), req, a)
}

func TestRunsClaimWhatTheyWrite(t *testing.T) {
	const (
		invalid = `Application.shipper.booking.com "super-server" is invalid: `
		at      = invalid + "metadata.annotations[shipper.booking.com/app.run]: "
		forged  = at + "Forbidden: is written by Shipper; leave it out"
		refuses = at + `Invalid value: "{\"namespace\":\"shop\",\"run\":\"web-1\",\"uid\":\"r\",\"eventID\":\"e\",` +
			`\"requesters\":[\"ann\",\"bob\"]}": `
		held = `{"namespace":"shop","run":"web-1","uid":"r","eventID":"e","hold":true,"requesters":["ann","bob"]}`
	)
	old, next := ask.Application(ask.Pinned("0.0.1")), ask.Version("0.0.2")
	claimed := ask.Application(ask.Pinned("0.0.1"), claiming(claim))
	digest := catalog{found: repository.Resolution{Version: "0.0.2", Digest: "d"}}
	for sentence, tc := range map[string]struct {
		user     string
		now, old *shipper.Application
		run      *shipper.SequenceRun
		want     string // the claim that is stored
		message  string
	}{
		"by the runner": {user: runner, now: ask.Application(ask.Pinned("0.0.1"), next, claiming(claim)), want: claim},
		"by the runner of a run that releases later": {
			user: runner, run: deploying(releasing), now: ask.Application(ask.Pinned("0.0.1"), next, claiming(held)), want: held,
		},
		"without the hold of a run that releases later": {
			user: runner, run: deploying(releasing), now: ask.Application(ask.Pinned("0.0.1"), next, claiming(claim)),
			message: refuses + "the claim of run shop/web-1 is " + held,
		},
		"without who asked for the run": {
			user: runner, run: deploying(func(run *shipper.SequenceRun) { run.Status.Resolved.EarlierRequesters = []string{"bob", "cay"} }),
			now:     ask.Application(ask.Pinned("0.0.1"), next, claiming(claim)),
			message: refuses + "the claim of run shop/web-1 is " + strings.Replace(claim, `"bob"`, `"bob","cay"`, 1),
		},
		"with the values of the run": {
			user: runner, run: deploying(changing), now: ask.Application(ask.Pinned("0.0.1"), next, claiming(claim), replicas(3)), want: claim,
		},
		"with other values than the run has": {
			user: runner, run: deploying(changing), now: ask.Application(ask.Pinned("0.0.1"), next, claiming(claim), replicas(4)),
			message: refuses + "the template has other changes than what run shop/web-1 delivers",
		},
		"with values that the run has not": {
			user: runner, now: ask.Application(ask.Pinned("0.0.1"), next, claiming(claim), replicas(3)),
			message: refuses + "the template has other changes than what run shop/web-1 delivers",
		},
		"by the runner, again": {
			user: runner, old: claimed, now: ask.Application(ask.Pinned("0.0.1"), next, claiming(claim)), want: claim,
		},
		"by another user": {user: "ann", now: ask.Application(ask.Pinned("0.0.1"), next, claiming(claim)), message: forged},
		"by another account of the namespace": {
			user: "system:serviceaccount:shop:default", now: ask.Application(ask.Pinned("0.0.1"), next, claiming(claim)), message: forged,
		},
		"by the account of that name in another namespace": {
			user: "system:serviceaccount:other:shipper-runner", now: ask.Application(ask.Pinned("0.0.1"), next, claiming(claim)), message: forged,
		},
		"in other words": {
			user: runner, now: ask.Application(ask.Pinned("0.0.1"), next, claiming(`{"run":"web-1","namespace":"shop","uid":"r"}`)), message: forged,
		},
		"of another run of that name": {
			user: runner, run: deploying(func(run *shipper.SequenceRun) { run.UID = "s" }),
			now: ask.Application(ask.Pinned("0.0.1"), next, claiming(claim)), message: refuses + "there is no run shop/web-1 with uid r",
		},
		"of a run that has finished": {
			user: runner, run: deploying(func(run *shipper.SequenceRun) {
				run.Status.Conditions = []shipper.Condition{{Type: shipper.RunFinished, Status: "True"}}
			}),
			now: ask.Application(ask.Pinned("0.0.1"), next, claiming(claim)), message: refuses + "run shop/web-1 has finished",
		},
		"of a run that waits for approval": {
			user: runner, run: deploying(func(run *shipper.SequenceRun) {
				run.Status.Tasks = []shipper.TaskStatus{{Name: "approval", State: shipper.TaskWaiting}}
			}),
			now:     ask.Application(ask.Pinned("0.0.1"), next, claiming(claim)),
			message: refuses + "task deployment of run shop/web-1 is not under way",
		},
		"of a run of another Application": {
			user: runner, run: deploying(func(run *shipper.SequenceRun) { run.Spec.Service = "api" }),
			now:     ask.Application(ask.Pinned("0.0.1"), next, claiming(claim)),
			message: refuses + "run shop/web-1 deploys to Application default/api",
		},
		"with another version than was approved": {
			user: runner, run: deploying(func(run *shipper.SequenceRun) { run.Status.Resolved.Version.Version = "0.0.3" }),
			now:     ask.Application(ask.Pinned("0.0.1"), next, claiming(claim)),
			message: invalid + `spec.template.chart: Invalid value: "nginx 0.0.2 d": run shop/web-1 delivers nginx 0.0.3 d`,
		},
		"with another archive than was approved": {
			user: runner, run: deploying(func(run *shipper.SequenceRun) { run.Status.Resolved.Version.Digest = "e" }),
			now:     ask.Application(ask.Pinned("0.0.1"), next, claiming(claim)),
			message: invalid + `spec.template.chart: Invalid value: "nginx 0.0.2 d": run shop/web-1 delivers nginx 0.0.2 e`,
		},
		"left out by a user who changes no template": {
			user: "ann", old: claimed, now: ask.Application(ask.Pinned("0.0.1"), ask.Annotated("a", "b")), want: claim,
		},
		"left out by a user who changes the template": {user: "ann", old: claimed, now: ask.Application(ask.Pinned("0.0.1"), next)},
		"kept by a user who changes the template": {
			user: "ann", old: claimed, now: ask.Application(ask.Pinned("0.0.1"), next, claiming(claim)),
		},
		"kept by Shipper, which restores a template": {
			user: ask.Reconciler, old: claimed, now: ask.Application(ask.Pinned("0.0.1"), next, claiming(claim)),
		},
		"on an Application that is restored from another cluster": {
			user: "ann", old: ask.Application(func(app *shipper.Application) { app.Name = "" }), now: ask.Application(claiming(claim)),
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			if tc.run == nil {
				tc.run = deploying()
			}
			if tc.old == nil {
				tc.old = old
			}
			req := ask.Update(tc.user, tc.now, tc.old)
			if tc.old.Name == "" {
				req = ask.Create(tc.user, tc.now)
			}
			got, err := through(t, webhookOf(t, ask.Grant(), &digest, tc.run), req)
			decision := response.Decision("")
			if tc.message != "" {
				decision = response.Invalid
			}
			ask.CheckRefusal(t, err, decision, tc.message)
			if err == nil && got != tc.want {
				t.Errorf("the claim is %q, want %q", got, tc.want)
			}
		})
	}
	for _, req := range []*admission.Request{ask.Update("ann", claimed, old), ask.Create("ann", claimed)} { // without the mutating webhook
		err := webhookOf(t, ask.Grant(), &digest, deploying()).Validate(t.Context(), req, &response.Response{})
		ask.CheckRefusal(t, err, response.Invalid, forged)
	}
	now := ask.Application(ask.Pinned("0.0.1"), unclaimed)
	if err := webhookOf(t, ask.Grant(), &digest).Validate(t.Context(), ask.Update("ann", now, claimed), &response.Response{}); err != nil {
		t.Errorf("one that is removed: %v", err)
	}
}
