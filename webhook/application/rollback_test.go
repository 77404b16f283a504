// SPDX-License-Identifier: Apache-2.0

package application_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"shipper.dev/shipper/apis/rules/stamp"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart"
	"shipper.dev/shipper/test/admission/ask"
	"shipper.dev/shipper/webhook/response"
)

// released are three Releases, of 0.0.1, 0.0.2 and 0.0.3, all complete but the last, and the Application that has the last's
// environment.
func released() (app *shipper.Application, rels []*shipper.Release) {
	for i, version := range []string{"0.0.1", "0.0.2", "0.0.3"} {
		app = ask.Application(ask.Version(version), ask.Pinned(version))
		rel := ask.Release(app, rels, ask.ReleaseAnnotated(shipper.ReleaseChartDigestAnnotation, "digest of "+version))
		if i < 2 {
			rel.Status.Conditions = []shipper.Condition{{Type: shipper.ReleaseComplete, Status: corev1.ConditionTrue}}
		}
		rels = append(rels, rel)
	}
	return app, rels
}

func TestRollbacks(t *testing.T) {
	_, rels := released()
	names := func(n int) string { return rels[n].Name }
	const noSuch = `Application.shipper.booking.com "super-server" is invalid: spec.rollbackTo`
	has := "; it has " + names(2) + " (generation 2), " + names(1) + " (generation 1), " + names(0) + " (generation 0)"
	for sentence, tc := range map[string]struct {
		to       shipper.RollbackTo
		version  string
		noted    string
		strategy string
		refused  string
		warned   string
	}{
		"of which nothing is said go to the newest complete one": {
			version: "0.0.2", noted: names(1), warned: "this rolls back from Release " + names(2) + " to the environment of " + names(1),
		},
		"name a Release": {
			to: shipper.RollbackTo{Release: names(0)}, version: "0.0.1", noted: names(0),
			warned: "this rolls back from Release " + names(2) + " to the environment of " + names(0),
		},
		"name a generation, and go at once": {
			to: shipper.RollbackTo{Generation: 1, Strategy: shipper.RollbackImmediate}, version: "0.0.2", noted: names(1),
			strategy: "Immediate", warned: "this rolls back from Release " + names(2) + " to the environment of " + names(1),
		},
		"that go at once to a Release that was never complete are refused": {
			to: shipper.RollbackTo{Release: names(2), Strategy: shipper.RollbackImmediate},
			refused: noSuch + `.strategy: Invalid value: "Immediate": Release ` + names(2) +
				` was never complete: leave strategy out, and go through its steps`,
		},
		"to the present Release change nothing": {
			to: shipper.RollbackTo{Release: names(2)}, version: "0.0.3",
			warned: "Release " + names(2) + ", the newest, has this environment already: there is nothing to roll back",
		},
		"to a Release that is not there are refused": {
			to:      shipper.RollbackTo{Release: "web-0"},
			refused: noSuch + `.release: Not found: "web-0": the application has no such release` + has,
		},
		"to a generation that is not there are refused": {
			to:      shipper.RollbackTo{Generation: 7},
			refused: noSuch + `.generation: Not found: 7: the application has no such release` + has,
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			old, rels := released()
			known := make([]client.Object, 0, len(rels))
			for _, rel := range rels {
				known = append(known, rel)
			}
			now := old.DeepCopy()
			now.Spec.RollbackTo = &tc.to
			charts := &catalog{err: &chart.Error{Message: "nobody asks", Cause: chart.ErrUnreachable}}
			a, req := &response.Response{}, ask.Update(ask.Developer, now, old)
			err := webhookOf(t, ask.Grant(), charts, known...).Default(t.Context(), req, a)
			if tc.refused != "" {
				ask.CheckRefusal(t, err, response.Invalid, tc.refused)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			got := ask.Patched[shipper.Application](t, req, a)
			if got.Spec.RollbackTo != nil {
				t.Error("it is asked for still")
			}
			want := pinsOf(tc.version, tc.version, "digest of "+tc.version)
			want["back"], want["how"] = tc.noted, tc.strategy
			said := pins(got)
			said["back"], said["how"] = got.Annotations[shipper.AppRolledBackToAnnotation], got.Annotations[shipper.AppRollbackStrategyAnnotation]
			if diff := cmp.Diff(want, said); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if a.Warnings()[0] != tc.warned {
				t.Errorf("it warns %q, want %q", a.Warnings(), tc.warned)
			}
		})
	}
}

func TestWithoutReleasesThereIsNothingToRollBackTo(t *testing.T) {
	app := ask.Application(func(app *shipper.Application) { app.Spec.RollbackTo = &shipper.RollbackTo{} })
	err := webhookOf(t, ask.Grant(), exact()).Default(t.Context(), ask.Create(ask.Developer, app), &response.Response{})
	ask.CheckRefusal(t, err, response.Invalid, `Application.shipper.booking.com "super-server" is invalid: spec.rollbackTo: `+
		`Invalid value: "{}": the application has no releases yet: there is nothing to go back to`)
}

func TestAnEditEndsARollback(t *testing.T) {
	noted := func(app *shipper.Application) {
		app.Annotations[shipper.AppRolledBackToAnnotation] = "super-server-0"
		app.Annotations[shipper.AppRollbackStrategyAnnotation] = "Immediate"
	}
	old := ask.Application(ask.Version("0.0.2"), ask.Pinned("~0.0"), noted)
	now := ask.Application(ask.Version("0.0.2"), ask.Pinned("~0.0"), noted, changed)
	a, req := &response.Response{}, ask.Update(ask.Developer, now, old)
	if err := webhookOf(t, ask.Grant(), exact()).Default(t.Context(), req, a); err != nil {
		t.Fatal(err)
	}
	got := ask.Patched[shipper.Application](t, req, a).Annotations
	if got[shipper.AppRolledBackToAnnotation]+got[shipper.AppRollbackStrategyAnnotation] != "" {
		t.Errorf("the next Release would be one of a rollback: %v", got)
	}
}

// A manifest that is applied again and again has rollbackTo in it each time, and its own template.
func TestARollbackThatIsDoneIsNotDoneAgain(t *testing.T) {
	for sentence, tc := range map[string]struct {
		to      shipper.RollbackTo
		edit    func(*shipper.Application)
		trimmed bool
		version string
		back    int // the Release that it says it was rolled back to, or -1
		warned  string
	}{
		"nor that which names no Release": {version: "0.0.2", back: 1, warned: "this was rolled back to Release NAME1 already: nothing is done"},
		"nor with another template beside it": {
			edit: changed, version: "0.0.2", back: 1, warned: "spec.template was edited, too: that is not taken while spec.rollbackTo is there",
		},
		"nor to one that was trimmed since": {
			to: shipper.RollbackTo{Release: "NAME1"}, trimmed: true, version: "0.0.2", back: 1,
			warned: "this was rolled back to Release NAME1 already: nothing is done",
		},
		"but another is": {
			to: shipper.RollbackTo{Release: "NAME0"}, version: "0.0.1", back: 0,
			warned: "this rolls back from Release NAME3 to the environment of NAME0",
		},
		"nor to what came of it": {
			to: shipper.RollbackTo{Generation: 3}, version: "0.0.2", back: 1,
			warned: "Release NAME3, the newest, has this environment already: there is nothing to roll back",
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			_, rels := released()
			old := ask.Application(ask.Version("0.0.2"), ask.Pinned("0.0.2"))
			old.Annotations[shipper.AppRolledBackToAnnotation] = rels[1].Name
			rels = append(rels, ask.Release(old, rels, ask.ReleaseAnnotated(shipper.ReleaseRollbackOfAnnotation, rels[1].Name)))
			named := func(text string) string {
				for i, rel := range rels {
					text = strings.ReplaceAll(text, fmt.Sprint("NAME", i), rel.Name)
				}
				return text
			}
			var known []client.Object
			for i, rel := range rels {
				if i != 1 || !tc.trimmed {
					known = append(known, rel)
				}
			}
			now := old.DeepCopy()
			tc.to.Release = named(tc.to.Release)
			now.Spec.RollbackTo = &tc.to
			if tc.edit != nil {
				tc.edit(now)
			}
			a, req := &response.Response{}, ask.Update(ask.Developer, now, old)
			if err := webhookOf(t, ask.Grant(), exact(), known...).Default(t.Context(), req, a); err != nil {
				t.Fatal(err)
			}
			got := ask.Patched[shipper.Application](t, req, a)
			want := old.DeepCopy()
			want.Spec.Template.Chart.Version = tc.version
			if !stamp.SameEnvironment(&want.Spec.Template, &got.Spec.Template) || got.Spec.RollbackTo != nil {
				t.Errorf("want %v, got %v", want.Spec, got.Spec)
			}
			if back := got.Annotations[shipper.AppRolledBackToAnnotation]; back != rels[tc.back].Name {
				t.Errorf("it says that it was rolled back to %q", back)
			}
			if !strings.HasPrefix(a.Warnings()[0], named(tc.warned)) {
				t.Errorf("it warns %q, want %q", a.Warnings(), named(tc.warned))
			}
		})
	}
}

// The reconciler may be away, or a Release on its way be deleted: then the newest Release is not what the template asks for.
func TestARollbackOfWhatHasNoReleaseYetGoesToTheNewestCompleteOne(t *testing.T) {
	old, rels := released()
	rels[2].Status.Conditions = rels[1].Status.Conditions
	old.Spec.Template.Chart.Version = "0.0.4"
	now := old.DeepCopy()
	now.Spec.RollbackTo = &shipper.RollbackTo{}
	a, req := &response.Response{}, ask.Update(ask.Developer, now, old)
	if err := webhookOf(t, ask.Grant(), exact(), rels[0], rels[1], rels[2]).Default(t.Context(), req, a); err != nil {
		t.Fatal(err)
	}
	if got := ask.Patched[shipper.Application](t, req, a); !stamp.SameEnvironment(&got.Spec.Template, &rels[2].Spec.Environment) {
		t.Errorf("it goes back to %s, and 0.0.3 runs", got.Spec.Template.Chart.Version)
	}
	want := "of the template there was no Release yet: none is made, and that of Release " + rels[2].Name + ", the newest, is back"
	if a.Warnings()[0] != want {
		t.Errorf("it warns %q, want %q", a.Warnings(), want)
	}
}
