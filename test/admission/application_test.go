// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"shipper.dev/shipper/apis/rules/stamp"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/admission/ask"
	"shipper.dev/shipper/test/env"
)

// application returns a valid Application in a namespace, whose chart is in r.
func application(namespace string, r *repository, edits ...func(*shipper.Application)) *shipper.Application {
	app := ask.Application()
	app.Namespace, app.UID = namespace, ""
	app.Spec.Template.Chart.RepoURL = r.URL
	for _, edit := range edits {
		edit(app)
	}
	return app
}

// replicas edits the values.
func replicas(n int64) func(*shipper.Application) {
	return func(app *shipper.Application) { app.Spec.Template.Values = &shipper.ChartValues{"replicaCount": n} }
}

// nameOf returns the name of the first Release of app.
func nameOf(t *testing.T, app *shipper.Application) string {
	t.Helper()
	rel, err := stamp.Release(app, nil)
	if err != nil {
		t.Fatal(err)
	}
	return rel.Name
}

// serverLocal creates the one Cluster on which tests' Applications can be scheduled.
func serverLocal(t *testing.T) {
	t.Helper()
	c := &shipper.Cluster{Spec: shipper.ClusterSpec{Region: "local", APIMaster: "https://10.0.0.1"}}
	c.GenerateName = "local-"
	create(t, admin, c)
}

func TestAnApplicationIsCompleted(t *testing.T) {
	t.Parallel()
	ns, repo, dev := namespace(t), startRepository(t, "0.0.1", "0.0.2", "1.0.0"), as(t, "dev")
	app := application(ns, repo, ask.Version("~0.0"))
	app.Spec.RevisionHistoryLimit = nil
	create(t, dev, app)

	want := application(ns, repo, ask.Version("0.0.2"))
	want.Annotations = map[string]string{
		shipper.AppChartVersionRawAnnotation:      "~0.0",
		shipper.AppChartVersionResolvedAnnotation: "0.0.2",
		shipper.AppChartNameAnnotation:            "nginx",
		shipper.AppChartRepoAnnotation:            repo.URL,
		shipper.AppChartDigestAnnotation:          strings.Repeat("0", 63) + "2",
		shipper.AppRequestedByAnnotation:          "dev",
	}
	if diff := cmp.Diff(want.Annotations, app.Annotations); diff != "" {
		t.Errorf("annotations (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want.Spec, app.Spec); diff != "" {
		t.Errorf("spec (-want +got):\n%s", diff)
	}
	warned := []string{
		`chart nginx, version "~0.0", was resolved to 0.0.2`,
		"this makes Release " + nameOf(t, want),
		`might not roll out: no clusters can be chosen for it as they are now: region "local" has 0 of the 1 schedulable clusters wanted`,
	}
	if diff := cmp.Diff(warned, dev.warnings()); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
}

func TestApplyingTwiceNeverMakesARelease(t *testing.T) {
	t.Parallel()
	ns, repo, dev := namespace(t), startRepository(t, "0.0.1", "0.0.2"), as(t, "dev")
	apply := func(edits ...func(*shipper.Application)) *shipper.Application {
		t.Helper()
		app := application(ns, repo, edits...)
		app.APIVersion, app.Kind = shipper.GroupVersion.String(), "Application"
		//nolint:staticcheck // it applies a whole typed object, as kubectl sends it
		if err := dev.Patch(t.Context(), app, client.Apply, client.FieldOwner("test")); err != nil {
			t.Fatal(err)
		}
		return app
	}
	first := apply(ask.Version("~0.0"))
	cleanUp(t, first)
	repo.publish("0.0.3")
	dev.warnings()

	again := apply(ask.Version("~0.0"))
	if again.Generation != first.Generation || again.Spec.Template.Chart.Version != "0.0.2" {
		t.Errorf("the same manifest made generation %d with chart %s", again.Generation, again.Spec.Template.Chart.Version)
	}
	if warned := dev.warnings(); len(warned) > 0 {
		t.Errorf("the same manifest warned %q", warned)
	}

	edited := apply(ask.Version("~0.0"), replicas(7))
	if edited.Spec.Template.Chart.Version != "0.0.2" {
		t.Errorf("an edit beside the chart moved it to %s", edited.Spec.Template.Chart.Version)
	}

	// A version that was published meanwhile is resolved only when the user requests it. A repository that was just queried
	// is not queried again.
	refreshes := 0
	env.Eventually(t, "a refresh to find the newer version", func(context.Context) error {
		refreshes++
		refreshed := apply(ask.Version("~0.0"), replicas(7), ask.Annotated(shipper.AppChartVersionRefreshAnnotation, strconv.Itoa(refreshes)))
		return differs([]string{"0.0.3", "~0.0"},
			[]string{refreshed.Spec.Template.Chart.Version, refreshed.Annotations[shipper.AppChartVersionRawAnnotation]})
	})
	exact := apply(ask.Version("0.0.1"), replicas(7), ask.Annotated(shipper.AppChartVersionRefreshAnnotation, strconv.Itoa(refreshes)))
	if exact.Spec.Template.Chart.Version != "0.0.1" || exact.Annotations[shipper.AppChartVersionRawAnnotation] != "0.0.1" {
		t.Errorf("naming another version gave %s", exact.Spec.Template.Chart.Version)
	}
}

func TestARepositoryThatIsDown(t *testing.T) {
	t.Parallel()
	ns, dev := namespace(t), as(t, "dev")
	unknown := startRepository(t)
	unknown.setDown(true)
	t.Run("with a constraint, creation has to wait", func(t *testing.T) {
		err := dev.Create(t.Context(), application(ns, unknown, ask.Version("~0.0")))
		checkRefused(t, err, refused{503, `chart nginx, version "~0.0", cannot be resolved to a version now`})
	})
	t.Run("with an exact version, creation passes with a warning", func(t *testing.T) {
		create(t, dev, application(ns, unknown))
		if warned := dev.warnings(); len(warned) == 0 || !strings.HasPrefix(warned[0], `chart nginx, version "0.0.1", was admitted unseen`) {
			t.Errorf("warned %q", warned)
		}
	})
	t.Run("what is pinned is edited without it", func(t *testing.T) {
		repo := startRepository(t, "0.0.1")
		app := application(ns, repo, ask.Version("~0"), func(a *shipper.Application) { a.Name = "pinned" })
		create(t, dev, app)
		repo.setDown(true)
		replicas(9)(app)
		if err := dev.Update(t.Context(), app); err != nil {
			t.Fatal(err)
		}
	})
	t.Run("a constraint that nothing matches lists what there is", func(t *testing.T) {
		repo := startRepository(t, "0.0.1", "0.0.2")
		err := dev.Create(t.Context(), application(ns, repo, ask.Version("~7"), func(a *shipper.Application) { a.Name = "far" }))
		checkRefused(t, err, refused{422, "spec.template.chart.version"})
		checkRefused(t, err, refused{422, "0.0.2"})
	})
}

func TestAnApplicationUnderABlock(t *testing.T) {
	ns, repo, dev := namespace(t), startRepository(t, "0.0.1", "0.0.2"), as(t, "dev")
	live := application(ns, repo)
	create(t, dev, live)
	dns := block(t, shipper.GlobalBlocksNamespace)
	key := dns.Namespace + "/" + dns.Name
	command := "To override: kubectl annotate app super-server shipper.booking.com/rollout-block.override=" + key + " -n " + ns
	change := func(edits ...func(*shipper.Application)) error {
		app := live.DeepCopy()
		for _, edit := range edits {
			edit(app)
		}
		return dev.Update(t.Context(), app, client.DryRunAll)
	}
	t.Run("is not created", func(t *testing.T) {
		err := dev.Create(t.Context(), application(ns, repo, func(a *shipper.Application) { a.Name = "new" }))
		checkRefused(t, err, refused{403, `admission webhook "mutate.application.shipper.booking.com" denied the request: ` +
			"rollouts blocked by: " + key + " (DNS issues, troubleshooting in progress; jdoe, "})
		checkRefused(t, err, refused{403, "To override: add the annotation shipper.booking.com/rollout-block.override: " + key})
	})
	t.Run("does not change its spec", func(t *testing.T) { checkRefused(t, change(replicas(4)), refused{403, command}) })
	t.Run("does not change its chart", func(t *testing.T) { checkRefused(t, change(ask.Version("0.0.2")), refused{403, command}) })
	t.Run("is not deleted", func(t *testing.T) {
		checkRefused(t, dev.Delete(t.Context(), live.DeepCopy(), client.DryRunAll), refused{403, command})
	})
	t.Run("changes its metadata", func(t *testing.T) { checkRefused(t, change(ask.Annotated("a", "b")), refused{}) })
	t.Run("changes its status", func(t *testing.T) {
		live.Status.History = []string{"x"}
		checkRefused(t, admin.Status().Update(t.Context(), live), refused{})
	})
	t.Run("does not override without the right", func(t *testing.T) {
		checkRefused(t, change(ask.Overriding(key)), refused{403, `user "dev" may not override RolloutBlock ` + key})
	})
	t.Run("does not override what there is not", func(t *testing.T) {
		checkRefused(t, change(ask.Overriding(key+"-typo")), refused{422, "there is no RolloutBlock " + key + "-typo"})
	})
	t.Run("does not override what is none", func(t *testing.T) {
		checkRefused(t, change(ask.Overriding("typo")),
			refused{422, "metadata.annotations[shipper.booking.com/rollout-block.override]"})
	})
	t.Run("changes when it overrides with the right", func(t *testing.T) {
		grant(t, "sre", "override", "rolloutblocks")
		sre, app := as(t, "sre"), live.DeepCopy()
		ask.Overriding(" " + key + " , " + key)(app)
		env.Eventually(t, "RBAC to grant the right", func(ctx context.Context) error { return sre.Update(ctx, app, client.DryRunAll) })
		if got := app.Annotations[shipper.RolloutBlockOverrideAnnotation]; got != key {
			t.Errorf("the override was stored as %q", got)
		}
		app = live.DeepCopy()
		ask.Overriding(key)(app)
		replicas(4)(app)
		checkRefused(t, sre.Update(t.Context(), app), refused{})
		replicas(5)(app)
		checkRefused(t, dev.Update(t.Context(), app), refused{}) // the override was made with the right; other users may edit the Application
		live = app
	})
	t.Run("goes on when the block is gone", func(t *testing.T) {
		unblock(t, dns)
		ask.Annotated("c", "d")(live)
		checkRefused(t, dev.Update(t.Context(), live), refused{})
		if live.Annotations[shipper.RolloutBlockOverrideAnnotation] != key {
			t.Error("an edit of metadata touched the override")
		}
		dev.warnings()
		replicas(6)(live)
		checkRefused(t, dev.Update(t.Context(), live), refused{})
		if v, there := live.Annotations[shipper.RolloutBlockOverrideAnnotation]; there {
			t.Errorf("the override is still %q", v)
		}
		want := "RolloutBlock " + key + " is gone and was taken out of the override annotation"
		if warned := dev.warnings(); len(warned) == 0 || warned[0] != want {
			t.Errorf("warned %q", warned)
		}
	})
}

func TestDryRunAnswersTheSame(t *testing.T) {
	ns, repo, dev := namespace(t), startRepository(t, "0.0.1", "0.0.2"), as(t, "dev")
	serverLocal(t)
	dry, real := application(ns, repo, ask.Version("^0.0.1")), application(ns, repo, ask.Version("^0.0.1"))
	if err := dev.Create(t.Context(), dry, client.DryRunAll); err != nil {
		t.Fatal(err)
	}
	dryWarned := dev.warnings()
	create(t, dev, real)
	if diff := cmp.Diff(real.Spec, dry.Spec); diff != "" {
		t.Errorf("spec (-real +dry):\n%s", diff)
	}
	if diff := cmp.Diff(real.Annotations, dry.Annotations); diff != "" {
		t.Errorf("annotations (-real +dry):\n%s", diff)
	}
	isPlan := func(warning string) bool { return strings.HasPrefix(warning, "plan: ") }
	if !slices.ContainsFunc(dryWarned, isPlan) {
		t.Errorf("the dry run warned of no plan: %q", dryWarned)
	}
	if diff := cmp.Diff(dev.warnings(), slices.DeleteFunc(dryWarned, isPlan)); diff != "" {
		t.Errorf("warnings (-real +dry):\n%s", diff)
	}
}

func TestControlAnnotationsOfApplications(t *testing.T) {
	t.Parallel()
	ns, repo, dev := namespace(t), startRepository(t, "0.0.1"), as(t, "dev")
	app := application(ns, repo)
	create(t, dev, app)
	const observed = shipper.AppHighestObservedGenerationAnnotation
	reconciler := as(t, reconcilerUser)
	if err := reconciler.Patch(t.Context(), app, client.RawPatch("application/merge-patch+json",
		[]byte(`{"metadata":{"annotations":{"`+observed+`":"4"}}}`))); err != nil {
		t.Fatal(err)
	}
	want := app.Annotations

	app.Annotations = map[string]string{"mine": "x"}
	checkRefused(t, dev.Update(t.Context(), app), refused{})
	want["mine"] = "x"
	if diff := cmp.Diff(want, app.Annotations); diff != "" {
		t.Errorf("what was left out (-want +got):\n%s", diff)
	}
	forged := app.DeepCopy()
	forged.Annotations[observed] = "9"
	checkRefused(t, dev.Update(t.Context(), forged), refused{422, "metadata.annotations[" + observed + "]: Forbidden"})
	grant(t, "stamper", "stamp", "applications")
	env.Eventually(t, "RBAC to grant the right", func(ctx context.Context) error { return as(t, "stamper").Update(ctx, forged.DeepCopy()) })
}
