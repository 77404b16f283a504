// SPDX-License-Identifier: Apache-2.0

package stamp_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"shipper.dev/shipper/apis/rules/stamp"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// release is one of app's, with the environment of app's template and the given counters; -1 leaves one out.
func release(app *shipper.Application, name string, generation, iteration int) *shipper.Release {
	rel := &shipper.Release{}
	rel.Name, rel.Namespace = name, app.Namespace
	rel.Labels = map[string]string{shipper.AppLabel: app.Name}
	rel.Annotations = map[string]string{}
	if generation >= 0 {
		rel.Annotations[shipper.ReleaseGenerationAnnotation] = strconv.Itoa(generation)
	}
	if iteration >= 0 {
		rel.Annotations[shipper.ReleaseTemplateIterationAnnotation] = strconv.Itoa(iteration)
	}
	if parts := strings.Split(name, "-"); len(parts) > 2 {
		rel.Labels[shipper.ReleaseHashLabel] = parts[len(parts)-2]
	}
	rel.OwnerReferences = []metav1.OwnerReference{stamp.OwnerReference(app)}
	rel.Spec.Environment = *app.Spec.Template.DeepCopy()
	return rel
}

func owner(uid types.UID) []metav1.OwnerReference {
	return []metav1.OwnerReference{{
		APIVersion: "shipper.booking.com/v1alpha1", Kind: "Application", Name: "super-server", UID: uid,
	}}
}

func TestReleaseIsStampedWhole(t *testing.T) {
	app := quickStart()
	app.Labels = map[string]string{
		"team": "web", shipper.AppLabel: "other", shipper.ReleaseLabel: "x", shipper.ReleaseHashLabel: "y",
		"app.kubernetes.io/instance": "argo", "kustomize.toolkit.fluxcd.io/name": "flux", "objectset.rio.cattle.io/hash": "rancher",
		"applyset.kubernetes.io/part-of": "kubectl",
	}
	app.Annotations = map[string]string{
		"free":                                    "text",
		shipper.RolloutBlockOverrideAnnotation:    "default/a",
		shipper.AppRequestedByAnnotation:          "alice",
		shipper.AppChartNameAnnotation:            "nginx",
		shipper.AppChartRepoAnnotation:            app.Spec.Template.Chart.RepoURL,
		shipper.AppChartVersionResolvedAnnotation: "0.0.1",
		shipper.AppChartDigestAnnotation:          "abc",
	}
	got, err := stamp.Release(app, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := &shipper.Release{
		ObjectMeta: metav1.ObjectMeta{
			Name: "super-server-6f19aa85-0", Namespace: "default",
			Labels: map[string]string{
				"team": "web", shipper.AppLabel: "super-server",
				shipper.ReleaseLabel: "super-server-6f19aa85-0", shipper.ReleaseHashLabel: "6f19aa85",
			},
			Annotations: map[string]string{
				shipper.ReleaseGenerationAnnotation:        "0",
				shipper.ReleaseTemplateIterationAnnotation: "0",
				shipper.RolloutBlockOverrideAnnotation:     "default/a",
				shipper.ReleaseRequestedByAnnotation:       "alice",
				shipper.ReleaseChartDigestAnnotation:       "abc",
				shipper.ReleaseLabelPrecedenceAnnotation:   shipper.LabelsOfChart,
			},
			OwnerReferences: owner("app-uid"),
			Finalizers:      []string{shipper.RolloutFinalizer},
		},
		Spec: shipper.ReleaseSpec{Environment: app.Spec.Template},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	(*got.Spec.Environment.Values)["replicaCount"] = int64(4)
	if (*app.Spec.Template.Values)["replicaCount"] != int64(3) || app.Labels[shipper.AppLabel] != "other" || len(app.Labels) != 8 {
		t.Error("the application shares something with its release")
	}
}

func TestReleaseOfARollbackGoesAsItWasAsked(t *testing.T) {
	steps := []shipper.RolloutStrategyStep{{Name: "staging"}, {Name: "half"}, {Name: "full on"}}
	for how, want := range map[string]int32{
		"": 0, "Steps": 0, "Immediate": 2, "Immediate, and it was never complete": 0, "Immediate, and the template is another": 0,
	} {
		how, but, _ := strings.Cut(how, ", ")
		app := quickStart()
		app.Spec.Template.Strategy = &shipper.RolloutStrategy{Steps: steps}
		app.Annotations = map[string]string{
			shipper.AppRolledBackToAnnotation: "super-server-1-0", shipper.AppRollbackStrategyAnnotation: how,
		}
		goal := &shipper.Release{ObjectMeta: metav1.ObjectMeta{
			Namespace: app.Namespace, Name: "super-server-1-0", Labels: map[string]string{shipper.AppLabel: app.Name},
		}, Spec: shipper.ReleaseSpec{Environment: *app.Spec.Template.DeepCopy()}}
		if !strings.Contains(but, "never complete") {
			goal.Status.Conditions = []shipper.Condition{{Type: shipper.ReleaseComplete, Status: corev1.ConditionTrue}}
		}
		if strings.Contains(but, "another") {
			app.Spec.Template.Chart.Version = "9.9.9"
		}
		rel, err := stamp.Release(app, []*shipper.Release{goal})
		if err != nil {
			t.Fatal(err)
		}
		if got := rel.Annotations[shipper.ReleaseRollbackOfAnnotation]; got != "super-server-1-0" || rel.Spec.TargetStep != want {
			t.Errorf("%q: step %d of a rollback to %q, want step %d", how, rel.Spec.TargetStep, got, want)
		}
	}
}

func TestReleaseTakesNoDigestOfAnotherChart(t *testing.T) {
	app := quickStart()
	app.Annotations = map[string]string{
		shipper.AppChartNameAnnotation:            "nginx",
		shipper.AppChartRepoAnnotation:            "https://elsewhere.example",
		shipper.AppChartVersionResolvedAnnotation: "0.0.1",
		shipper.AppChartDigestAnnotation:          "abc",
	}
	rel, err := stamp.Release(app, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := rel.Annotations[shipper.ReleaseChartDigestAnnotation]; got != "" {
		t.Errorf("got digest %q, want none", got)
	}
}

func TestReleaseRefusesNamesThatCannotBeLabels(t *testing.T) {
	app := quickStart()
	app.Name = strings.Repeat("a", 55)
	if rel, err := stamp.Release(app, nil); err == nil {
		t.Errorf("got %q, want an error", rel.Name)
	}
}

// TestALongNameIsGivenAgain to the tenth Release of one environment: another digit has no room in a label.
func TestALongNameIsGivenAgain(t *testing.T) {
	app := quickStart()
	app.Name = strings.Repeat("a", 52)
	first, err := stamp.Release(app, nil)
	if err != nil {
		t.Fatal(err)
	}
	name := strings.TrimSuffix(first.Name, "0")
	for gone, want := range map[string]string{
		"nothing is gone": "", "the first is gone": name + "0", "the fourth is gone": name + "3",
	} {
		var existing []*shipper.Release
		var stuck []string
		for i := range 10 {
			switch one := name + strconv.Itoa(i); {
			case one == want:
			case i == 7:
				stuck = append(stuck, one)
			default:
				existing = append(existing, release(app, one, i, i))
			}
		}
		rel, err := stamp.Release(app, existing, stuck...)
		if want == "" {
			if err == nil {
				t.Errorf("%s: got %s, want an error", gone, rel.Name)
			}
			continue
		}
		if err != nil || rel.Name != want || rel.Annotations[shipper.ReleaseGenerationAnnotation] != "10" {
			t.Errorf("%s: got %v, %v, want %s", gone, rel, err, want)
		}
	}
}

func TestReleaseRefusesWhatIsNotJSON(t *testing.T) {
	app := quickStart()
	app.Spec.Template.Values = &shipper.ChartValues{"f": func() {}}
	if _, _, err := stamp.Next(app, nil); err == nil {
		t.Error("want an error")
	}
}

func TestReleaseIsNumberedAfterAllThatExist(t *testing.T) {
	app := quickStart()
	foreign := release(app, "super-server-6f19aa85-4", 9, 4)
	foreign.OwnerReferences = owner("uid-of-a-deleted-one")
	orphan := release(app, "super-server-1-0", 2, 0)
	orphan.OwnerReferences = nil
	going := release(app, "super-server-6f19aa85-0", 5, 0)
	going.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	elsewhere := release(app, "super-server-6f19aa85-8", 8, -1)
	elsewhere.Labels[shipper.AppLabel] = "else"
	collision := release(app, "renamed", 0, 6)
	collision.Labels[shipper.ReleaseHashLabel] = "6f19aa85"
	collision.Spec.Environment.Chart.Version = "0.0.2"
	one, two := release(app, "super-server-1-0", 0, 0), release(app, "super-server-2-0", 1, 0)
	same := release(app, "super-server-6f19aa85-0", 0, 0)
	three, bare := release(app, "super-server-6f19aa85-3", 7, 3), release(app, "super-server-6f19aa85-2", -1, -1)
	alike := release(app, "super-server-6f19aa85-x", 0, -1)
	type rels = []*shipper.Release
	cases := map[string]struct {
		existing         rels
		name, generation string
	}{
		"nothing":                         {nil, "super-server-6f19aa85-0", "0"},
		"other environments":              {rels{one, two}, "super-server-6f19aa85-0", "2"},
		"the same environment long ago":   {rels{two, same}, "super-server-6f19aa85-1", "2"},
		"gaps in both":                    {rels{three}, "super-server-6f19aa85-4", "8"},
		"a hash that others share":        {rels{collision}, "super-server-6f19aa85-7", "1"},
		"one that is being deleted":       {rels{going}, "super-server-6f19aa85-1", "6"},
		"one of a deleted application":    {rels{foreign}, "super-server-6f19aa85-5", "0"},
		"one of another application":      {rels{elsewhere}, "super-server-6f19aa85-9", "0"},
		"one without an owner":            {rels{orphan}, "super-server-6f19aa85-0", "3"},
		"one that lost its annotations":   {rels{bare}, "super-server-6f19aa85-3", "0"},
		"a name that is like one of ours": {rels{alike}, "super-server-6f19aa85-0", "1"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			rel, err := stamp.Release(app, tc.existing)
			if err != nil {
				t.Fatal(err)
			}
			if g := rel.Annotations[shipper.ReleaseGenerationAnnotation]; rel.Name != tc.name || g != tc.generation {
				t.Errorf("got %s generation %s, want %s generation %s", rel.Name, g, tc.name, tc.generation)
			}
		})
	}
}

func TestNamesThatAreTakenAreNotGivenAgain(t *testing.T) {
	app := quickStart()
	for want, inUse := range map[string][]string{
		"super-server-6f19aa85-0": {"super-server-1-4", "super-server-6f19aa85-x", "server-6f19aa85-0"},
		"super-server-6f19aa85-3": {"super-server-6f19aa85-2", "super-server-6f19aa85-0"},
	} {
		rel, isNew, err := stamp.Next(app, nil, inUse...)
		if err != nil || !isNew || rel.Name != want ||
			rel.Annotations[shipper.ReleaseTemplateIterationAnnotation] != want[len(want)-1:] {
			t.Errorf("%v are in use: got %v, %t, %v, want %s", inUse, rel, isNew, err, want)
		}
	}
}

func TestNextIsNewOnlyWhenTheEnvironmentIs(t *testing.T) {
	app := quickStart()
	newest := release(app, "super-server-6f19aa85-0", 1, 0)
	older := release(app, "super-server-1-0", 0, 0)
	older.Spec.Environment.Chart.Version = "0.0.0"
	going := release(app, "super-server-6f19aa85-1", 2, 1)
	going.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}

	if rel, isNew, err := stamp.Next(app, []*shipper.Release{newest, older, going}); err != nil || isNew || rel != newest {
		t.Errorf("the newest has it: got %v, %t, %v", rel, isNew, err)
	}
	if rel, isNew, err := stamp.Next(app, nil); err != nil || !isNew || rel.Name != "super-server-6f19aa85-0" {
		t.Errorf("there is none: got %v, %t, %v", rel, isNew, err)
	}
	app.Spec.Template = *older.Spec.Environment.DeepCopy()
	rel, isNew, err := stamp.Next(app, []*shipper.Release{newest, older})
	if err != nil || !isNew || rel.Annotations[shipper.ReleaseGenerationAnnotation] != "2" {
		t.Errorf("only an older one has it: got %v, %t, %v", rel, isNew, err)
	}
}

func TestSortByGenerationStopsAtNothing(t *testing.T) {
	app := quickStart()
	at := func(rel *shipper.Release, second int64) *shipper.Release {
		rel.CreationTimestamp = metav1.Unix(second, 0)
		return rel
	}
	annotated := func(name, generation string) *shipper.Release {
		rel := release(app, name, 0, 0)
		rel.Annotations[shipper.ReleaseGenerationAnnotation] = generation
		return rel
	}
	rels := []*shipper.Release{
		release(app, "ten", 10, 0), release(app, "nine", 9, 0),
		annotated("z-words", "nine"), annotated("y-negative", "-1"),
		release(app, "x-absent", -1, 0), annotated("w-huge", "99999999999"),
		at(release(app, "c", 3, 0), 2), at(release(app, "b", 3, 0), 1), at(release(app, "a", 3, 0), 2),
	}
	ordered, broken := stamp.SortByGeneration(rels)
	if diff := cmp.Diff([]string{"b", "a", "c", "nine", "ten"}, names(ordered)); diff != "" {
		t.Errorf("ordered: -want +got:\n%s", diff)
	}
	if diff := cmp.Diff([]string{"w-huge", "x-absent", "y-negative", "z-words"}, names(broken)); diff != "" {
		t.Errorf("broken: -want +got:\n%s", diff)
	}
}

func names(rels []*shipper.Release) []string {
	var out []string
	for _, rel := range rels {
		out = append(out, rel.Name)
	}
	return out
}

func TestHighestObserved(t *testing.T) {
	cases := map[string]struct {
		value      *string
		generation int
		known, bad bool
	}{
		"none":      {},
		"a number":  {value: text("7"), generation: 7, known: true},
		"no number": {value: text(""), bad: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			app := quickStart()
			if tc.value != nil {
				app.Annotations = map[string]string{shipper.AppHighestObservedGenerationAnnotation: *tc.value}
			}
			generation, known, err := stamp.HighestObserved(app)
			if generation != tc.generation || known != tc.known || (err != nil) != tc.bad {
				t.Errorf("got %d, %t, %v", generation, known, err)
			}
		})
	}
}

func text(s string) *string { return &s }

func TestClustersAreReadAsTheyWereMeant(t *testing.T) {
	rel := &shipper.Release{}
	if got := stamp.Clusters(rel); got != nil {
		t.Errorf("got %v, want none", got)
	}
	rel.Annotations = map[string]string{shipper.ReleaseClustersAnnotation: "b, a,,b"}
	if diff := cmp.Diff([]string{"a", "b"}, stamp.Clusters(rel)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
