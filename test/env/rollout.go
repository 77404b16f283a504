// SPDX-License-Identifier: Apache-2.0

package env

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/await"
)

// Rollout is one test, with a namespace of its own in every cluster and an Application in it.
type Rollout struct {
	*testing.T
	// Ctx is the test's.
	Ctx context.Context
	// Env is where the test runs.
	Env *Env
	// User is the client that writes: the administrator's, unless the test says otherwise.
	User client.Client
	// Namespace was made for the test, App is the Application's name.
	Namespace, App string
	// Patience bounds each wait.
	Patience time.Duration
	// Alive is called before each look of a wait, if it is not nil. Its error ends the test.
	Alive func() error
}

// Begin makes a namespace for a test in every cluster, and dumps what is in it when the test fails. A name that ends with "-" is only how
// the namespace's begins.
func (e *Env) Begin(t *testing.T, namespace, app string) *Rollout {
	t.Helper()
	r := e.In(t, namespace, app)
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	if strings.HasSuffix(namespace, "-") {
		ns.ObjectMeta = metav1.ObjectMeta{GenerateName: namespace}
	}
	r.Must("creating a namespace", e.Management.Create(r.Ctx, ns))
	r.Namespace = ns.Name
	for name, c := range e.Clusters {
		r.Must("creating the namespace in "+name, c.Create(r.Ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns.Name}}))
	}
	t.Cleanup(func() {
		if t.Failed() {
			r.Dump()
		}
	})
	return r
}

// In is Begin for a namespace that is there.
func (e *Env) In(t *testing.T, namespace, app string) *Rollout {
	return &Rollout{T: t, Ctx: t.Context(), Env: e, User: e.Management, Namespace: namespace, App: app, Patience: Patience}
}

// Must ends the test on an error.
func (r *Rollout) Must(doing string, err error) {
	r.Helper()
	if err != nil {
		r.Fatalf("%s: %v", doing, err)
	}
}

// Eventually waits until look sees what is expected.
func (r *Rollout) Eventually(what, expected string, look func() (string, error)) {
	r.Helper()
	await.BecomesWithin(r, r.Patience, what, expected, func() (string, error) {
		if r.Alive != nil {
			r.Must("keeping Shipper alive", r.Alive())
		}
		return look()
	})
}

// Key names an object in the test's namespace.
func (r *Rollout) Key(name string) client.ObjectKey {
	return client.ObjectKey{Namespace: r.Namespace, Name: name}
}

// History is the Releases of an Application, the oldest first.
func (r *Rollout) History(app string) ([]string, error) {
	found := &shipper.Application{}
	err := r.Env.Management.Get(r.Ctx, r.Key(app), found)
	return found.Status.History, err
}

// Release waits until the Application has its n-th Release, counting from 0, and names it.
func (r *Rollout) Release(n int) string {
	r.Helper()
	return r.ReleaseOf(r.App, n)
}

// ReleaseOf is Release for another Application of the namespace.
func (r *Rollout) ReleaseOf(app string, n int) string {
	r.Helper()
	name := ""
	r.Eventually("Releases in the history of "+app, fmt.Sprint(n+1), func() (string, error) {
		history, err := r.History(app)
		if len(history) > n {
			name = history[n]
		}
		return fmt.Sprint(len(history)), err
	})
	return name
}

// Get reads a Release.
func (r *Rollout) Get(release string) (*shipper.Release, error) {
	rel := &shipper.Release{}
	return rel, r.Env.Management.Get(r.Ctx, r.Key(release), rel)
}

// Completes waits until a Release is complete.
func (r *Rollout) Completes(release string) {
	r.Helper()
	r.Eventually("completion of "+release, "True", func() (string, error) {
		rel, err := r.Get(release)
		if c := shipper.FindCondition(rel.Status.Conditions, shipper.ReleaseComplete); c != nil {
			return strings.TrimSpace(string(c.Status) + " " + c.Message), err
		}
		return "absent", err
	})
}

// WaitsForCommand waits until a Release has achieved a step and reports that it waits for the next command.
func (r *Rollout) WaitsForCommand(release string, step int32) {
	r.Helper()
	r.Eventually("achieved step of "+release, fmt.Sprintf("step %d, waiting for command True", step), func() (string, error) {
		rel, err := r.Get(release)
		if err != nil || rel.Status.AchievedStep == nil || rel.Status.Strategy == nil {
			return "none", err
		}
		return fmt.Sprintf("step %d, waiting for command %s",
			rel.Status.AchievedStep.Step, rel.Status.Strategy.State.WaitingForCommand), nil
	})
}

// Steps requests a step.
func (r *Rollout) Steps(release string, step int32) {
	r.Helper()
	r.Must("patching targetStep", r.TryStep(release, step))
}

// TryStep is Steps for a request that may be refused.
func (r *Rollout) TryStep(release string, step int32, how ...client.PatchOption) error {
	patch := fmt.Appendf(nil, `{"spec":{"targetStep":%d}}`, step)
	rel := &shipper.Release{ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace, Name: release}}
	return r.User.Patch(r.Ctx, rel, client.RawPatch(types.MergePatchType, patch), how...)
}

// Edits changes the Application as a user who read it a moment ago would.
func (r *Rollout) Edits(edit func(*shipper.Application)) {
	r.Helper()
	r.Must("editing the application", r.TryEdit(edit))
}

// TryEdit is Edits for a request that may be refused.
func (r *Rollout) TryEdit(edit func(*shipper.Application), how ...client.PatchOption) error {
	app := &shipper.Application{}
	if err := r.Env.Management.Get(r.Ctx, r.Key(r.App), app); err != nil {
		return fmt.Errorf("reading the application: %w", err)
	}
	before := app.DeepCopy()
	edit(app)
	return r.User.Patch(r.Ctx, app, client.MergeFrom(before), how...)
}

// Dump prints what helps to find the cause of a failure.
func (r *Rollout) Dump() {
	ctx := context.Background() // the test's own context has ended
	for _, list := range []client.ObjectList{
		&shipper.ApplicationList{}, &shipper.ReleaseList{}, &shipper.InstallationTargetList{},
		&shipper.CapacityTargetList{}, &shipper.TrafficTargetList{},
	} {
		err := r.Env.Management.List(ctx, list, client.InNamespace(r.Namespace))
		b, failure := yaml.Marshal(list)
		r.Logf("%T (%v):\n%s", list, errors.Join(err, failure), b)
	}
	if p := r.Env.Pod; p != nil {
		r.Logf("reconciler:\n%s\nwebhook:\n%s", p.Reconciler.Tail(), p.Webhook.Tail())
	}
}
