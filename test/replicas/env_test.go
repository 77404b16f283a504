// SPDX-License-Identifier: Apache-2.0

package replicas

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"shipper.dev/shipper/apis/rules/stamp"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/admission/ask"
	"shipper.dev/shipper/test/env"
	"shipper.dev/shipper/test/pod"
)

// reconcilerUser is who makes Releases.
const reconcilerUser = "system:serviceaccount:shipper-system:shipper-mgmt-cluster"

// step is one request, and what is to come of it.
type step struct {
	what string
	do   func(context.Context) error
}

// sequence is a user who does one thing after the other, and notes what was not as it should be.
type sequence struct {
	steps []step
	took  map[string][]time.Duration
	wrong []string
}

// play takes the steps over and over, one in every so often after a start, until ctx is done.
func (s *sequence) play(ctx context.Context, start, every time.Duration) {
	next := time.NewTimer(start)
	defer next.Stop()
	due := time.Now().Add(start)
	for i := 0; ; i = (i + 1) % len(s.steps) {
		select {
		case <-ctx.Done():
			return
		case <-next.C:
		}
		s.take(ctx, s.steps[i])
		due = due.Add(every)
		next.Reset(time.Until(due))
	}
}

// take takes one step to its end.
func (s *sequence) take(ctx context.Context, what step) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), env.Patience)
	defer cancel()
	began := time.Now()
	err := what.do(ctx)
	s.took[what.what] = append(s.took[what.what], time.Since(began))
	if err != nil {
		s.wrong = append(s.wrong, fmt.Sprintf("%s %s: %v", began.Format("15:04:05.000"), what.what, err))
	}
}

// newSequences makes n of them in namespaces of their own.
func newSequences(t *testing.T, n int) []*sequence {
	t.Helper()
	free, frozen, blocks := namespace(t, "free-"), namespace(t, "frozen-"), namespace(t, "blocks-")
	block(t, frozen, "dns-outage")
	user, reconciler := as(t, "dev"), as(t, reconcilerUser)
	sequences := make([]*sequence, n)
	for i := range sequences {
		rel := rollOut(t, reconciler, application(free, fmt.Sprintf("rolled-out-%d", i)))
		sequences[i] = &sequence{took: map[string][]time.Duration{}}
		name := fmt.Sprintf("app-%d", i)
		sequences[i].steps = append(sequences[i].steps, applicationSteps(user, free, frozen, name)...)
		sequences[i].steps = append(sequences[i].steps, releaseSteps(user, rel)...)
		sequences[i].steps = append(sequences[i].steps, blockSteps(user, blocks, name)...)
	}
	return sequences
}

func applicationSteps(user client.Client, free, frozen, name string) []step {
	count := 0
	patched := func(ctx context.Context, patch string, opts ...client.PatchOption) error {
		app := &shipper.Application{ObjectMeta: metav1.ObjectMeta{Namespace: free, Name: name}}
		err := user.Patch(ctx, app, client.RawPatch(types.MergePatchType, []byte(patch)), opts...)
		return errors.Join(err, pinned(app, err))
	}
	edit := func() string {
		count++
		return fmt.Sprintf(`{"spec":{"template":{"values":{"replicaCount":%d}}}}`, count)
	}
	return []step{
		{"Application created", func(ctx context.Context) error {
			app := application(free, name)
			err := user.Create(ctx, app)
			return errors.Join(err, pinned(app, err))
		}},
		{"Application edited", func(ctx context.Context) error { return patched(ctx, edit()) }},
		{"edit dry-run", func(ctx context.Context) error { return patched(ctx, edit(), client.DryRunAll) }},
		{"edit refused as invalid", func(ctx context.Context) error {
			err := patched(ctx, `{"spec":{"template":{"clusterRequirements":{"regions":[]}}}}`)
			return refused(err, http.StatusUnprocessableEntity, "spec.template.clusterRequirements.regions")
		}},
		{"Application refused by a block", func(ctx context.Context) error {
			return refused(user.Create(ctx, application(frozen, name)), http.StatusForbidden, "rollouts blocked by: "+frozen+"/dns-outage")
		}},
		{"dry run refused by a block", func(ctx context.Context) error {
			err := user.Create(ctx, application(frozen, name), client.DryRunAll)
			return refused(err, http.StatusForbidden, "rollouts blocked by: "+frozen+"/dns-outage")
		}},
		{"Application deleted", func(ctx context.Context) error {
			return user.Delete(ctx, &shipper.Application{ObjectMeta: metav1.ObjectMeta{Namespace: free, Name: name}})
		}},
	}
}

func releaseSteps(user client.Client, rel *shipper.Release) []step {
	to := func(ctx context.Context, step int) error {
		patch := fmt.Appendf(nil, `{"spec":{"targetStep":%d}}`, step)
		return user.Patch(ctx, rel.DeepCopy(), client.RawPatch(types.MergePatchType, patch))
	}
	return []step{
		{"targetStep raised", func(ctx context.Context) error { return to(ctx, 1) }},
		{"targetStep refused as invalid", func(ctx context.Context) error {
			return refused(to(ctx, 7), http.StatusUnprocessableEntity, "spec.targetStep: Invalid value: 7: must be a step")
		}},
		{"targetStep lowered", func(ctx context.Context) error { return to(ctx, 0) }},
	}
}

func blockSteps(user client.Client, namespace, name string) []step {
	return []step{
		{"RolloutBlock created", func(ctx context.Context) error {
			b := &shipper.RolloutBlock{Spec: shipper.RolloutBlockSpec{Message: "wait"}}
			b.Namespace, b.Name = namespace, name
			if err := user.Create(ctx, b); err != nil {
				return err
			}
			return differs(shipper.RolloutBlockAuthor{Type: "user", Name: "dev"}, b.Spec.Author)
		}},
		{"RolloutBlock deleted", func(ctx context.Context) error {
			return user.Delete(ctx, &shipper.RolloutBlock{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}})
		}},
	}
}

// pinned says where app is not completed as the gate completes it. err is what came of writing it.
func pinned(app *shipper.Application, err error) error {
	if err != nil {
		return nil
	}
	type completed struct{ Version, Raw, Requester string }
	return differs(completed{"0.0.2", "~0.0", "dev"}, completed{
		app.Spec.Template.Chart.Version, app.Annotations[shipper.AppChartVersionRawAnnotation],
		app.Annotations[shipper.AppRequestedByAnnotation],
	})
}

// refused is nil when err is a refusal of code that says message.
func refused(err error, code int32, message string) error {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return fmt.Errorf("got %w, want a refusal with %d: …%s…", err, code, message)
	}
	if got := status.Status(); got.Code != code || !strings.Contains(got.Message, message) {
		return fmt.Errorf("refused with %d: %s, want %d: …%s…", got.Code, got.Message, code, message)
	}
	return nil
}

// differs is nil when got is what is wanted.
func differs[T any](want, got T) error {
	if diff := cmp.Diff(want, got); diff != "" {
		return errors.New("(-want +got):\n" + diff)
	}
	return nil
}

// application is an Application whose chart the gate has to resolve.
func application(namespace, name string) *shipper.Application {
	return ask.Application(ask.Version("~0.0"), func(app *shipper.Application) {
		app.Namespace, app.Name, app.UID = namespace, name, ""
		app.Spec.Template.Chart.RepoURL = world.Charts.URL
	})
}

// rollOut makes app and its first Release.
func rollOut(t *testing.T, reconciler client.Client, app *shipper.Application) *shipper.Release {
	t.Helper()
	if err := world.Management.Create(t.Context(), app); err != nil {
		t.Fatal(err)
	}
	rel, err := stamp.Release(app, nil)
	if err != nil {
		t.Fatal(err)
	}
	rel.Finalizers = nil // no reconciler runs here that would remove it
	if err := reconciler.Create(t.Context(), rel); err != nil {
		t.Fatal(err)
	}
	return rel
}

// block makes a RolloutBlock that all replicas know when this returns.
func block(t *testing.T, namespace, name string) *shipper.RolloutBlock {
	t.Helper()
	b := &shipper.RolloutBlock{Spec: ask.Block("x/y").Spec}
	b.Namespace, b.Name = namespace, name
	if err := world.Management.Create(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := world.Management.Delete(context.Background(), b); client.IgnoreNotFound(err) != nil {
			t.Errorf("removing RolloutBlock %s: %v", name, err)
		}
	})
	for _, r := range world.replicas {
		r.knows(t, b, true)
	}
	return b
}

// namespace makes a namespace for one test.
func namespace(t *testing.T, prefix string) string {
	t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: prefix}}
	if err := world.Management.Create(t.Context(), ns); err != nil {
		t.Fatal(err)
	}
	return ns.Name
}

// as is a client with all rights, whose first answers are final.
func as(t *testing.T, name string) client.WithWatch {
	t.Helper()
	c, err := pod.NewClient(env.As(world.Fleet.Management.Config, name, "system:masters"))
	if err != nil {
		t.Fatal(err)
	}
	return c
}
