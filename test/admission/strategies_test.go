// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"shipper.dev/shipper/apis/rules/stamp"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/admission/ask"
	"shipper.dev/shipper/test/env"
)

// TestAnApplicationKeepsTheStrategyThatItTook applies a manifest again, after an edit of the Strategy, by server-side apply, and edits it.
func TestAnApplicationKeepsTheStrategyThatItTook(t *testing.T) {
	t.Parallel()
	ns, repo := namespace(t), startRepository(t, "0.0.1", "0.0.2")
	grant(t, "planner", "*", "strategies")
	dev, planner := as(t, "dev"), as(t, "planner")
	careful := &shipper.Strategy{Spec: *application(ns, repo).Spec.Template.Strategy}
	careful.Namespace, careful.Name = ns, "careful"
	env.Eventually(t, "the rights to be known", func(ctx context.Context) error { return planner.Create(ctx, careful) })
	cleanUp(t, careful)
	apply := func(edits ...func(*shipper.Application)) *shipper.Application {
		t.Helper()
		app := application(ns, repo, edits...)
		app.Spec.Template.Strategy = &shipper.RolloutStrategy{From: &shipper.StrategyReference{Name: careful.Name}}
		app.APIVersion, app.Kind = shipper.GroupVersion.String(), "Application"
		//nolint:staticcheck // it applies a whole typed object, as kubectl sends it
		if err := dev.Patch(t.Context(), app, client.Apply, client.FieldOwner("test")); err != nil {
			t.Fatal(err)
		}
		return app
	}
	has := func(app *shipper.Application) string {
		t.Helper()
		from := app.Spec.Template.Strategy.From
		want := &shipper.RolloutStrategy{From: &shipper.StrategyReference{Name: careful.Name, Digest: from.Digest}}
		if diff := cmp.Diff(want, app.Spec.Template.Strategy); diff != "" {
			t.Errorf("the Application (-want +got)\n%s", diff)
		}
		return from.Digest
	}
	digest := func() string {
		t.Helper()
		out, err := stamp.StrategyDigest(careful.Spec)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	first, before := apply(), digest()
	cleanUp(t, first)
	if got := has(first); got != before {
		t.Errorf("it took %s, and the Strategy is %s", got, before)
	}
	careful.Spec.Steps = append([]shipper.RolloutStrategyStep{ask.Step("canary", 100, 10, 90, 10)}, careful.Spec.Steps...)
	if err := planner.Update(t.Context(), careful); err != nil {
		t.Fatal(err)
	}
	if again := apply(); has(again) != before || again.Generation != first.Generation {
		t.Errorf("the same manifest made generation %d of %d", again.Generation, first.Generation)
	}
	dev.warnings()
	if got := has(apply(replicas(7))); got != digest() {
		t.Errorf("after an edit it has %s, and the Strategy is %s", got, digest())
	}
	const changed = "has changed since this Application took it last: this takes it as it is now"
	if warned := strings.Join(dev.warnings(), "\n"); !strings.Contains(warned, "Strategy "+ns+"/careful "+changed) {
		t.Errorf("warned: %s", warned)
	}
}
