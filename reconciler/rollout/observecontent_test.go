// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"shipper.dev/shipper/apis/rules/rights"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart"
	"shipper.dev/shipper/chart/objects"
	"shipper.dev/shipper/reconciler/selection"
)

// calls is a source of content that has what it was called for.
type calls struct {
	Contents
	Snapshots
	made []string
	// denied is what Permit returns.
	denied error
	// needs is what Needs returns, and failed the error of Content.
	needs  []rights.Action
	failed error
}

func (c *calls) Observe(_ context.Context, _ *shipper.Application, urgent bool) (*selection.Content, time.Duration, error) {
	c.made = append(c.made, fmt.Sprintf("observe, urgent: %t", urgent))
	return nil, 0, nil
}

func (c *calls) Parts(context.Context, *shipper.Application, *selection.Content) ([]objects.Part, error) {
	c.made = append(c.made, "parts")
	return nil, context.Canceled
}

func (c *calls) Permit(
	_ context.Context, _ *shipper.Application, selected []*shipper.Resources, content []unstructured.Unstructured,
) ([]rights.Action, error) {
	c.made = append(c.made, fmt.Sprintf("permit %d selections and %d objects", len(selected), len(content)))
	return []rights.Action{rights.PlaceNamespace("vault")}, c.denied
}

func (c *calls) Content(_ context.Context, _, digest string) ([]unstructured.Unstructured, error) {
	c.made = append(c.made, "content "+digest[:1])
	return make([]unstructured.Unstructured, 2), c.failed
}

func (c *calls) Rest(context.Context, client.ObjectKey)   { c.made = append(c.made, "rest") }
func (c *calls) Forget(context.Context, client.ObjectKey) { c.made = append(c.made, "forget") }

func TestWhenContentIsRead(t *testing.T) {
	restored := func(app *shipper.Application) { app.Status = shipper.ApplicationStatus{} }
	ofChart := func(app *shipper.Application) { app.Spec.Template.Resources = nil }
	for sentence, tc := range map[string]struct {
		app     *shipper.Application
		history string
		want    string
	}{
		"of a new Application":                           {placingApp("a"), "", "observe, urgent: true"},
		"of one that follows":                            {placingApp("a", taken("a"), observed(0)), "a", "observe, urgent: false"},
		"not if a refresh alone takes it":                {placingApp("a", onRefresh, taken("a"), observed(0)), "a", "rest"},
		"not while a backup is restored":                 {placingApp("a", restored, observed(0)), "", ""},
		"not of a chart, whose Application is forgotten": {placingApp("a", ofChart), "", "forget"},
	} {
		c := &calls{}
		r := &pass{Reconciler: &Reconciler{content: c}, now: at}
		r.observeContent(t.Context(), &scope{app: tc.app, history: contents(tc.app, tc.history)})
		if diff := cmp.Diff(tc.want, strings.Join(c.made, "; ")); diff != "" {
			t.Errorf("%s (-want +got)\n%s", sentence, diff)
		}
	}
}

// TestContentIsStoredForTheReleaseThatIsCreated is about content that an earlier pass has read.
func TestContentIsStoredForTheReleaseThatIsCreated(t *testing.T) {
	app := placingApp("a")
	for sentence, tc := range map[string]struct {
		plan templatePlan
		live string
		want string
	}{
		"a Release is created":     {templatePlan{create: &shipper.Release{}}, "a", "parts"},
		"none is":                  {templatePlan{}, "a", ""},
		"a block is in effect":     {templatePlan{create: &shipper.Release{}, pending: "blocked"}, "a", ""},
		"other content is placed":  {templatePlan{create: &shipper.Release{}}, "b", "content a; permit 1 selections and 2 objects"},
		"the content was not read": {templatePlan{create: &shipper.Release{}}, "", "content a; permit 1 selections and 2 objects"},
	} {
		c := &calls{}
		s := &scope{app: app, history: contents(app, ""), content: content{digest: digestOf("a")}}
		if tc.live != "" {
			s.content.live = &selection.Content{Digest: digestOf(tc.live)}
		}
		_ = (&pass{Reconciler: &Reconciler{content: c, snapshots: c}, now: at}).keepContent(t.Context(), s, tc.plan)
		if diff := cmp.Diff(tc.want, strings.Join(c.made, "; ")); diff != "" {
			t.Errorf("%s (-want +got)\n%s", sentence, diff)
		}
	}
}

// TestTheRightsOfContentAreRecorded is about the Release that is created, and the Application while Releases with other rights place.
func TestTheRightsOfContentAreRecorded(t *testing.T) {
	app, c, rel := placingApp("a"), &calls{}, &shipper.Release{}
	s := &scope{app: app, history: contents(app, "ab"), content: content{digest: digestOf("a")}}
	r := &pass{Reconciler: &Reconciler{content: c, snapshots: c}, now: at}
	if err := r.keepContent(t.Context(), s, templatePlan{create: rel}); err != nil {
		t.Fatal(err)
	}
	if got := rel.Annotations[shipper.ContentRightsAnnotation]; got != "namespaces/vault" {
		t.Errorf("the Release has the rights %q", got)
	}
	metav1.SetMetaDataAnnotation(&s.history.All[0].ObjectMeta, shipper.ContentRightsAnnotation, "namespaces/payments")
	if got := contentRights(s, rel); got != "namespaces/payments,namespaces/vault" {
		t.Errorf("with a new Release it is %q", got)
	}
	head := s.history.Newest()
	if got := marks(s, head)[shipper.ContentRightsAnnotation]; got != "namespaces/payments" {
		t.Errorf("the Application is written with the rights %q", got)
	}
	app.Annotations[shipper.ContentRightsAnnotation] = "namespaces/payments"
	s.history.All[0].Annotations = nil
	if mark := marks(s, head); mark == nil || mark[shipper.ContentRightsAnnotation] != "" {
		t.Errorf("when no Release needs them any more it is written with %v", mark)
	}
}

func (c *calls) Needs(string, *shipper.Resources, []unstructured.Unstructured) ([]rights.Action, error) {
	return c.needs, nil
}

// TestAnEarlierVersionsReleasesGetTheirRecord is about Releases that place Envelopes and were created without a record.
func TestAnEarlierVersionsReleasesGetTheirRecord(t *testing.T) {
	envelope := func(app *shipper.Application) {
		app.Spec.Template.Resources.Select = []shipper.ResourceSelector{{Group: shipper.GroupName, Kind: "Envelope", Name: "guard"}}
	}
	for sentence, tc := range map[string]struct {
		edit   func(*shipper.Application)
		needs  []rights.Action
		lost   bool
		failed error
		want   string
	}{
		"an Envelope of others":  {edit: envelope, needs: []rights.Action{rights.PlaceNamespace("vault")}, want: "namespaces/vault"},
		"an Envelope of the own": {edit: envelope, want: "none"},
		"content that was lost":  {edit: envelope, lost: true, want: "*.*/"},
		"content cannot be read": {edit: envelope, failed: context.Canceled},
		"no Envelope":            {edit: func(*shipper.Application) {}},
	} {
		t.Run(sentence, func(t *testing.T) {
			app := placingApp("a", tc.edit)
			s := &scope{app: app, history: contents(app, "a")}
			rel := s.history.All[0]
			c := &calls{needs: tc.needs, failed: tc.failed}
			if tc.lost {
				c.failed = chart.ErrNotKept
			}
			scheme := runtime.NewScheme()
			if err := shipper.AddToScheme(scheme); err != nil {
				t.Fatal(err)
			}
			stored := fake.NewClientBuilder().WithScheme(scheme).WithObjects(rel.DeepCopy()).Build()
			if err := stored.Get(t.Context(), client.ObjectKeyFromObject(rel), rel); err != nil {
				t.Fatal(err)
			}
			if got := contentRights(s, nil); tc.want != "" && got != "*.*/" {
				t.Errorf("before, the Application has the rights %q", got)
			}
			r := &pass{Reconciler: &Reconciler{content: c, snapshots: c, client: stored}, now: at}
			wrote, err := r.recordContent(t.Context(), s)
			if !errors.Is(err, tc.failed) || wrote != (tc.want != "") {
				t.Errorf("wrote %t, error %v", wrote, err)
			}
			if err := stored.Get(t.Context(), client.ObjectKeyFromObject(rel), rel); err != nil {
				t.Fatal(err)
			}
			if got := rel.Annotations[shipper.ContentRightsAnnotation]; got != tc.want {
				t.Errorf("the Release has the rights %q", got)
			}
			if got := contentRights(s, nil); tc.failed == nil && got != tc.want {
				t.Errorf("the Application has the rights %q", got)
			}
		})
	}
}

// TestAReleaseIsCreatedOfWhatMayStillBePlaced is about the content of a rollback, which is not read again, and about an abort.
func TestAReleaseIsCreatedOfWhatMayStillBePlaced(t *testing.T) {
	app := placingApp("a")
	c := &calls{denied: &selection.Problem{Reason: shipper.SelectionNotAllowed, Message: "user ann may not"}}
	r := &pass{Reconciler: &Reconciler{content: c, snapshots: c}, now: at}
	scopeOf := func() *scope {
		return &scope{app: app, history: contents(app, "ab"), content: content{digest: digestOf("a")}}
	}
	for sentence, tc := range map[string]struct {
		do   func(s *scope) error
		want string
	}{
		"a rollback": {func(s *scope) error {
			return r.keepContent(t.Context(), s, templatePlan{create: &shipper.Release{}})
		}, "content a; permit 3 selections and 2 objects"},
		"an abort": {func(s *scope) error {
			return r.permitReturn(t.Context(), s, s.history.All[0])
		}, "content a; permit 1 selections and 2 objects"},
	} {
		c.made = nil
		s := scopeOf()
		if err := tc.do(s); err == nil || err.Error() != "user ann may not" {
			t.Errorf("%s: %v", sentence, err)
		}
		if diff := cmp.Diff(tc.want, strings.Join(c.made, "; ")); diff != "" {
			t.Errorf("%s (-want +got)\n%s", sentence, diff)
		}
		is := shipper.FindCondition(heldStatus(s, at).Conditions, shipper.ApplicationResourcesSelected)
		if is == nil || is.Reason != shipper.SelectionNotAllowed || is.Message != "the abort is held: user ann may not" {
			t.Errorf("%s: condition %v", sentence, is)
		}
	}
}
