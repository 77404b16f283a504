// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"shipper.dev/shipper/apis/rules/stamp"
	"shipper.dev/shipper/apis/rules/strategy"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/history"
	"shipper.dev/shipper/reconciler/selection"
)

// placingApp selects the ConfigMap of a name.
func placingApp(name string, edits ...func(*shipper.Application)) *shipper.Application {
	app := &shipper.Application{ObjectMeta: metav1.ObjectMeta{Namespace: "work", Name: "web", UID: "app", Annotations: map[string]string{
		shipper.AppSelectedByAnnotation: `{"username":"ann"}`,
	}}}
	app.Spec.Template.Resources = &shipper.Resources{Select: []shipper.ResourceSelector{{Kind: "ConfigMap", Name: name}}}
	app.Spec.Template.Strategy = &shipper.RolloutStrategy{}
	app.Status.Conditions = []shipper.Condition{{Type: shipper.ApplicationValidHistory, Status: corev1.ConditionTrue}}
	for _, edit := range edits {
		edit(app)
	}
	return app
}

// contents is a history: each Release has the digest of a letter, and those that are deleted follow in capitals.
func contents(app *shipper.Application, letters string) history.History {
	var h history.History
	for n, letter := range letters {
		with := app.DeepCopy()
		with.Spec.Template.ResourcesDigest = digestOf(strings.ToLower(string(letter)))
		rel, err := stamp.Release(with, h.All)
		if err != nil {
			panic(err)
		}
		rel.UID, rel.CreationTimestamp = "rel", metav1.Unix(int64(100+n), 0)
		h.All = append(h.All, rel)
		if strings.ToLower(string(letter)) != string(letter) {
			rel.DeletionTimestamp = new(metav1.Unix(150, 0))
			h.Leaving = append(h.Leaving, strategy.Release{Release: rel})
			continue
		}
		h.Live = append(h.Live, strategy.Release{Release: rel})
	}
	return h
}

func digestOf(letter string) string {
	if letter == "" {
		return ""
	}
	return strings.Repeat(letter, 64)
}

func taken(letter string) func(*shipper.Application) {
	return func(app *shipper.Application) {
		app.Status.Resources = &shipper.TakenResources{Digest: digestOf(letter), Objects: 1}
	}
}

func observed(generation int) func(*shipper.Application) {
	return noted(shipper.AppHighestObservedGenerationAnnotation, strconv.Itoa(generation))
}

func noted(key, value string) func(*shipper.Application) {
	return func(app *shipper.Application) { metav1.SetMetaDataAnnotation(&app.ObjectMeta, key, value) }
}

func onRefresh(app *shipper.Application) {
	app.Spec.Template.Resources.Follow = shipper.FollowOnRefresh
}

func TestWhichContentIsPlaced(t *testing.T) {
	edited := func(app *shipper.Application) { app.Spec.Template.Strategy.OnFailure = shipper.OnFailureAbort }
	refreshed := noted(shipper.AppResourcesRefreshAnnotation, "x")
	type result struct {
		// Asks is true if content is taken in any case, Next what the template places, Taken what the status says then.
		Asks        bool
		Next, Taken string
	}
	with := func(edits ...func(*shipper.Application)) *shipper.Application { return placingApp("a", edits...) }
	for sentence, tc := range map[string]struct {
		app     *shipper.Application
		history string
		// of is the Application that the Releases are of; nil: app.
		of *shipper.Application
		// live is what is selected; empty if it was not read.
		live string
		want result
	}{
		"the first content":                 {app: with(), live: "a", want: result{true, "a", "a"}},
		"no content yet":                    {app: with(), want: result{true, "", ""}},
		"the same content":                  {app: with(taken("a"), observed(0)), history: "a", live: "a", want: result{false, "a", "a"}},
		"other content":                     {app: with(taken("a"), observed(0)), history: "a", live: "b", want: result{false, "b", "b"}},
		"what cannot be read leaves it":     {app: with(taken("a"), observed(0)), history: "a", want: result{false, "a", "a"}},
		"an aborted content is not retaken": {app: with(taken("b"), observed(0)), history: "a", live: "b", want: result{false, "a", "b"}},
		"after an abort, other content is":  {app: with(taken("b"), observed(0)), history: "a", live: "c", want: result{false, "c", "c"}},
		"while its Release is deleted it is not": {
			app: with(taken("b"), observed(1)), history: "aB", live: "c", want: result{false, "a", "b"},
		},
		"a refresh takes it again": {
			app: with(taken("b"), observed(0), refreshed), history: "a", live: "b", want: result{true, "b", "b"},
		},
		"a Release that was created before a kill has taken it": {
			app: with(taken("a"), observed(0)), history: "ab", live: "b", want: result{false, "b", "b"},
		},
		"also one that is deleted before the next pass": {
			app: with(taken("a"), observed(0)), history: "aB", live: "b", want: result{false, "a", "b"},
		},
		"a status that was lost": {app: with(observed(0)), history: "a", live: "b", want: result{true, "b", "b"}},
		"other selectors have no content before it is read": {
			app: placingApp("z", taken("a"), observed(0)), of: with(), history: "a", want: result{true, "", "a"},
		},
		"other selectors": {
			app: placingApp("z", taken("a"), observed(0)), of: with(), history: "a", live: "a", want: result{true, "a", "a"},
		},
		"an edit keeps content that has not changed": {
			app: with(taken("b"), observed(0), edited), of: with(), history: "a", live: "b", want: result{false, "a", "b"},
		},
		"an edit places content that has changed": {
			app: with(taken("a"), observed(0), edited), of: with(), history: "a", live: "b", want: result{false, "b", "b"},
		},
		"an edit does not wait for content that cannot be read": {
			app: with(taken("a"), observed(0), edited), of: with(), history: "a", want: result{false, "a", "a"},
		},
		"OnRefresh, other content": {
			app: with(onRefresh, taken("a"), observed(0)), history: "a", want: result{false, "a", "a"},
		},
		"OnRefresh, a refresh": {
			app: with(onRefresh, taken("a"), observed(0), refreshed), history: "a", live: "b", want: result{true, "b", "b"},
		},
		"OnRefresh, an edit": {
			app: with(onRefresh, taken("a"), observed(0), edited), of: with(onRefresh), history: "a", live: "b", want: result{true, "b", "b"},
		},
		"OnRefresh, an edit waits for content that cannot be read": {
			app: with(onRefresh, taken("a"), observed(0), edited), of: with(onRefresh), history: "a", want: result{true, "", "a"},
		},
		"OnRefresh, an edit after an abort": {
			app: with(onRefresh, taken("b"), observed(0), edited), of: with(onRefresh), history: "a", want: result{false, "a", "b"},
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			of := tc.of
			if of == nil {
				of = tc.app
			}
			s := &scope{app: tc.app, history: contents(of, tc.history)}
			plan, live := contentOf(s), (*selection.Content)(nil)
			if tc.live != "" {
				live = &selection.Content{Digest: digestOf(tc.live), Objects: 1}
			}
			next, was := plan.plan(tc.app, live, metav1.Unix(200, 0))
			got := result{Asks: plan.asks, Next: next}
			if was != nil {
				got.Taken = was.Digest
			}
			want := result{tc.want.Asks, digestOf(tc.want.Next), digestOf(tc.want.Taken)}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// rolledBackContent is a history of a and b in which the rollback to a was requested, and made if it is done.
func rolledBackContent(done bool) *scope {
	app := placingApp("a", taken("b"), observed(1))
	h := contents(app, "ab")
	metav1.SetMetaDataAnnotation(&app.ObjectMeta, shipper.AppRolledBackToAnnotation, h.All[0].Name)
	if done {
		rel, err := stamp.Release(stamp.WithContent(app, h.All, digestOf("a")), h.All)
		if err != nil {
			panic(err)
		}
		h.All, h.Live = append(h.All, rel), append(h.Live, strategy.Release{Release: rel})
		observed(2)(app)
	}
	return &scope{app: app, history: h}
}

// planWith is what a pass does about content that is selected.
func planWith(s *scope, letter string) templatePlan {
	s.content.live = &selection.Content{Digest: digestOf(letter), Objects: 1}
	s.content.digest, s.content.taken = contentOf(s).plan(s.app, s.content.live, metav1.Unix(200, 0))
	return planTemplate(s, metav1.Unix(200, 0))
}

func TestARollbackPlacesTheContentOfItsGoal(t *testing.T) {
	s := rolledBackContent(false)
	p := planWith(s, "c") // which waits for the Release of the rollback
	if p.create == nil || p.create.Spec.Environment.ResourcesDigest != digestOf("a") || p.endsRollback ||
		p.create.Annotations[shipper.ReleaseRollbackOfAnnotation] != s.history.All[0].Name {
		t.Errorf("it creates %+v", p.create)
	}
	s = rolledBackContent(true)
	if p := planWith(s, "b"); p.create != nil || p.endsRollback {
		t.Errorf("content that has not changed since ends the rollback: %+v", p)
	}
	p = planWith(s, "c")
	if p.create == nil || p.create.Spec.Environment.ResourcesDigest != digestOf("c") || !p.endsRollback ||
		p.create.Annotations[shipper.ReleaseRollbackOfAnnotation] != "" {
		t.Errorf("other content creates %+v, and ends the rollback: %t", p.create, p.endsRollback)
	}
}

// An abort of a rollback restores the content before it, and the records of the rollback go: it would be done again.
func TestAnAbortOfARollbackOfContentIsNoRollback(t *testing.T) {
	for sentence, gone := range map[string]bool{"while its Release is deleted": false, "when it is gone": true} {
		s := rolledBackContent(true)
		last := s.history.Live[2]
		s.history.Live = s.history.Live[:2]
		if gone {
			s.history.All = s.history.All[:2]
		} else {
			last.Release.DeletionTimestamp = new(metav1.Unix(150, 0))
		}
		p := planWith(s, "b")
		value, removed := p.mark[shipper.AppRolledBackToAnnotation]
		if p.create != nil || s.content.digest != digestOf("b") || !removed || value != "" ||
			p.mark[shipper.AppHighestObservedGenerationAnnotation] != "1" {
			t.Errorf("%s: it creates %v, and writes %v", sentence, p.create, p.mark)
		}
	}
}

func TestARollbackThatTheStatusLacksHasTakenNothing(t *testing.T) {
	app := placingApp("a", taken("a"), observed(0))
	for sentence, tc := range map[string]struct {
		rollback bool
		want     string
	}{
		"a Release that has taken content":        {false, "b"},
		"a rollback, which places older contents": {true, "a"},
	} {
		h := contents(app, "ab")
		if tc.rollback {
			metav1.SetMetaDataAnnotation(&h.All[1].ObjectMeta, shipper.ReleaseRollbackOfAnnotation, "web-0")
		}
		if got := lastTaken(&scope{app: app, history: h}).Digest; got != digestOf(tc.want) {
			t.Errorf("%s: %.1s was taken last, want %s", sentence, got, tc.want)
		}
	}
}
