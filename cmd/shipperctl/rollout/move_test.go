// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/cmd/shipperctl/cli"
)

// outcome is what a decision comes to: a value, or an error.
func outcome[T any](value T, err error) any {
	if err != nil {
		return err.Error()
	}
	return value
}

func TestMoves(t *testing.T) {
	at := func(target, achieved int32) *shipper.Release {
		rel := exampleObserved().releases[1]
		rel.Spec.TargetStep, rel.Status.AchievedStep = target, nil
		if achieved >= 0 {
			rel.Status.AchievedStep = &shipper.AchievedStep{Step: achieved}
		}
		return rel
	}
	gate := func(rel *shipper.Release) *shipper.Release {
		rel.Spec.Environment.Strategy.Steps[1].Gate = &shipper.StepGate{}
		return rel
	}
	on := func(rel *shipper.Release, step int, force bool) any { return outcome(advance(rel, step, force, false)) }
	back := func(rel *shipper.Release, step int) any { return outcome(retreat(rel, step)) }
	for sentence, tc := range map[string]struct{ got, want any }{
		"to the next step": {on(at(0, 0), -1, false), 1},
		"to the last step": {on(at(0, 0), 2, false), 2},
		"before a step is achieved": {on(at(1, 0), -1, false), "release web-1 has not achieved step 1 (half) yet: " +
			"`shipperctl rollout status` says what it waits for, and --force advances without that"},
		"before any step is achieved": {on(at(0, -1), -1, true), 1},
		"past a gate that is closed": {outcome(advance(gate(at(1, 0)), -1, true, false)), "step 1 (half) of release web-1 is a gate and is not " +
			"achieved: `shipperctl rollout status` says what it waits for, and a user with the " +
			"verb skip passes it by --skip"},
		"past a gate all the same":    {outcome(advance(gate(at(1, 0)), -1, true, true)), 2},
		"past a gate that is open":    {on(gate(at(1, 1)), -1, false), 2},
		"beyond the last step":        {on(at(2, 2), -1, false), "release web-1 is at its last step, 2 (full on), already"},
		"to a step that is not there": {on(at(1, 1), 7, false), "release web-1 has no step 7: its last is 2 (full on)"},
		"on to an earlier step": {on(at(1, 1), 0, false), "release web-1 is at step 1 (half): " +
			"to go back there is `shipperctl rollout retreat`"},
		"back one step":          {back(at(2, 1), -1), 1},
		"back to the first step": {back(at(2, 2), 0), 0},
		"back from the first step": {back(at(0, 0), -1), "release web-1 is at its first step: " +
			"to give it up there is `shipperctl rollout abort`"},
		"back to a later step": {back(at(1, 1), 2), "release web-1 is at step 1 (half): to go on there is `shipperctl rollout advance`"},
	} {
		t.Run(sentence, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, tc.got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// TestOutrun is what API servers say when a patch does not fit, and when a rule refuses it.
func TestOutrun(t *testing.T) {
	unfit := apierrors.NewGenericServerResponse(
		http.StatusUnprocessableEntity, "", schema.GroupResource{}, "", "testing value failed", 0, false)
	err := explainConflict(unfit)
	if cli.ExitCode(err) != cli.Failed || !strings.HasPrefix(err.Error(), "another user changed it meanwhile") {
		t.Errorf("%d, %v", cli.ExitCode(err), err)
	}
	rule := apierrors.NewInvalid(schema.GroupKind{Kind: "Release"}, "web-1", nil)
	if err := explainConflict(rule); !errors.Is(err, rule) {
		t.Errorf("a rule that is broken: %v", err)
	}
}

func TestGoal(t *testing.T) {
	for sentence, tc := range map[string]struct {
		complete bool // whether the earlier Release completed
		wanted   wanted
		want     any
	}{
		"the newest complete one": {true, wanted{}, shipper.RollbackTo{Release: "web-0"}},
		"the same, at once":       {true, wanted{immediate: true}, shipper.RollbackTo{Release: "web-0", Strategy: "Immediate"}},
		"one by its name":         {false, wanted{release: "web-0"}, shipper.RollbackTo{Release: "web-0"}},
		"one by its generation":   {false, wanted{generation: 7}, shipper.RollbackTo{Generation: 7}},
		"one that is not there":   {true, wanted{release: "web-9"}, shipper.RollbackTo{Release: "web-9"}}, // the webhook judges
		"none that has completed": {false, wanted{}, "no release before web-1 has completed: name one with --to, " +
			"`shipperctl rollout history` lists them"},
	} {
		t.Run(sentence, func(t *testing.T) {
			app, rels := exampleObserved().app, exampleObserved().releases
			if !tc.complete {
				rels[0].Status.Conditions = nil
			}
			var got any
			got, err := tc.wanted.goal(app, rels)
			if err != nil {
				got = err.Error()
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// TestGoalOfWhatHasNoReleaseYet is after an abort, or while the reconciler is away: the newest Release is what is gone back to.
func TestGoalOfWhatHasNoReleaseYet(t *testing.T) {
	app, rels := exampleObserved().app, exampleObserved().releases
	rels[1].Status.Conditions = rels[0].Status.Conditions
	app.Spec.Template.Chart.Version = "0.0.3"
	if got, err := (wanted{}).goal(app, rels); err != nil || got.Release != "web-1" {
		t.Errorf("it goes back to %q, %v", got.Release, err)
	}
}

func TestWhatCameOfARollback(t *testing.T) {
	newest := exampleObserved().releases[1]
	of := func(version, back string, to *shipper.RollbackTo) *shipper.Application {
		app := &shipper.Application{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
		app.Spec.Template = *newest.Spec.Environment.DeepCopy()
		app.Spec.Template.Chart.Version, app.Spec.RollbackTo = version, to
		app.Annotations = map[string]string{shipper.AppRolledBackToAnnotation: back}
		return app
	}
	resources := of("", "web-0", nil)
	resources.Spec.Template.Chart, resources.Spec.Template.Resources = shipper.Chart{}, &shipper.Resources{}
	for sentence, tc := range map[string]struct {
		app  *shipper.Application
		want any
	}{
		"resources":           {resources, "application shop/web rolls out the environment of release web-0, its resources"},
		"another environment": {of("0.0.1", "web-0", nil), "application shop/web rolls out the environment of release web-0, nginx 0.0.1"},
		"what is there": {
			of("0.0.2", "", nil), "application shop/web has that environment already, in release web-1: nothing is rolled out",
		},
		"no webhook": {of("0.0.2", "", &shipper.RollbackTo{}), "application shop/web is asked to roll back, and does not: " +
			"the webhook did not see it; `shipperctl doctor` says why, then take spec.rollbackTo out and run this again"},
	} {
		t.Run(sentence, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, outcome(rolledBack(tc.app, []*shipper.Release{newest}))); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestHistory(t *testing.T) {
	rels := exampleObserved().releases
	const want = `GEN   RELEASE   CHART         STEP          STATE       REQUESTED BY   AGE
1     web-1     nginx 0.0.2   1/2 half      contender   ann            4m
0     web-0     nginx 0.0.2   0/2 staging   incumbent   ann            4m
`
	if diff := cmp.Diff(want, table(historyOf(rels), 0, now)); diff != "" {
		t.Errorf("history (-want +got):\n%s", diff)
	}
	placed := []*shipper.Release{rels[0].DeepCopy(), rels[1].DeepCopy()}
	for _, rel := range placed {
		rel.Spec.Environment.Chart, rel.Spec.Environment.Strategy, rel.Spec.TargetStep = shipper.Chart{}, nil, 0
		rel.Spec.Environment.Resources = &shipper.Resources{}
	}
	const wantOfResources = `GEN   RELEASE   CHART       STATE       REQUESTED BY   AGE
1     web-1     resources   contender   ann            4m
0     web-0     resources   incumbent   ann            4m
`
	if diff := cmp.Diff(wantOfResources, table(historyOf(placed), 0, now)); diff != "" {
		t.Errorf("history of resources (-want +got):\n%s", diff)
	}
	rels[0].Status.Conditions[0].LastTransitionTime = metav1.NewTime(now.Add(-3 * time.Minute))
	rels[0].Spec.Environment.Values = &shipper.ChartValues{"image": map[string]any{"tag": "a"}, "password": "hunter2"}
	rels[1].Spec.Environment.Values = &shipper.ChartValues{"image": map[string]any{"tag": "b"}, "password": "hunter3"}
	rels[1].Status.Conditions = rels[0].Status.Conditions
	maps.Copy(rels[1].Annotations, map[string]string{
		shipper.ReleaseChartDigestAnnotation: "2257f6a0c1d2e3", shipper.RolloutBlockOverrideAnnotation: "shop/freeze",
		shipper.RolloutBlockOverrideReasonAnnotation: "it is\nburning\x1b[2J",
	})
	delete(rels[1].Annotations, shipper.ReleaseRequestedByAnnotation)
	third := rels[0].DeepCopy()
	third.Name, third.Status = "web-2", shipper.ReleaseStatus{}
	third.Annotations[shipper.ReleaseGenerationAnnotation], third.Annotations[shipper.ReleaseRollbackOfAnnotation] = "2", "web-0"
	rels = append(rels, third)
	back, err := os.ReadFile(filepath.Join("testdata", "history.golden"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(back), table(historyOf(rels), 0, now)); diff != "" {
		t.Errorf("history of a rollback (-want +got):\n%s", diff)
	}
	if strings.Contains(fmt.Sprint(historyOf(rels)), "hunter") {
		t.Error("it prints values")
	}
}

func TestDifference(t *testing.T) {
	rels := exampleObserved().releases
	rels[1].Spec.Environment.Chart.Version = "0.0.3"
	const want = `--- web-0
+++ web-1
@@ -1,7 +1,7 @@
 chart:
   name: nginx
   repoUrl: ""
-  version: 0.0.2
+  version: 0.0.3
 clusterRequirements: {}
 strategy:
   steps:
`
	got, err := difference(rels[0], rels[1])
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	for sentence, tc := range map[string]struct {
		names []string
		want  any
	}{
		"none are named": {nil, "web-0 web-1"},
		"one is named":   {[]string{"web-0"}, "web-0 web-1"},
		"both are named": {[]string{"web-1", "web-0"}, "web-1 web-0"},
		"one that is not there": {
			[]string{"web-7"}, "the application has no release web-7: `shipperctl rollout history` lists those it has",
		},
	} {
		from, to, err := between(rels, tc.names)
		got := outcome("", err)
		if err == nil {
			got = from.Name + " " + to.Name
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", sentence, diff)
		}
	}
}
