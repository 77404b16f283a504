// SPDX-License-Identifier: Apache-2.0

package application_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart"
	"shipper.dev/shipper/chart/lots"
	"shipper.dev/shipper/chart/render"
	"shipper.dev/shipper/chart/repository"
	"shipper.dev/shipper/chart/values"
	"shipper.dev/shipper/test/admission/ask"
	"shipper.dev/shipper/webhook/response"
)

// catalog resolves every constraint to one answer, and counts how often it is asked.
type catalog struct {
	found           repository.Resolution
	err, refreshErr error
	asked           []shipper.Chart
	refreshed       int
	countErr        error
	notAllowed      error
	notVerifiable   error
	doubts          []string
	judgeErr        error
	judgeErrIn      map[values.Place]error
	judged          []render.Cluster
	naming          shipper.ChartNaming
	namingErr       error
	// namedIn are the clusters for which a naming was decided, and namings are those of judged Releases.
	namedIn []render.Cluster
	namings []shipper.ChartNaming
	// objects are what the chart renders to, by its version.
	objects map[string][]unstructured.Unstructured
}

func (c *catalog) Naming(_ context.Context, _ *shipper.Release, in []render.Cluster) (shipper.ChartNaming, error) {
	c.namedIn = in
	return c.naming, c.namingErr
}

// Lots are those of the objects under the chart's version.
func (c *catalog) Lots(_ context.Context, rel *shipper.Release, _ render.Cluster) (lots.Table, error) {
	of := lots.Release{App: rel.Labels[shipper.AppLabel], Name: rel.Name}
	return lots.Of(c.objects[rel.Spec.Environment.Chart.Version], of), c.countErr
}

func (c *catalog) Judge(ctx context.Context, rel *shipper.Release, in render.Cluster) ([]string, error) {
	if _, bounded := ctx.Deadline(); !bounded {
		return nil, errors.New("a write waits for its chart without end")
	}
	c.judged, c.namings = append(c.judged, in), append(c.namings, rel.Spec.Environment.Chart.Naming)
	if err := c.judgeErrIn[in.Place]; err != nil {
		return nil, err
	}
	return c.doubts, c.judgeErr
}

// Replicas is what the values say.
func (c *catalog) Replicas(_ context.Context, rel *shipper.Release, in render.Cluster) (int32, error) {
	if c.countErr != nil {
		return 0, c.countErr
	}
	values, err := values.LayersOf(&rel.Spec.Environment).At(in.Place)
	if err != nil {
		return 0, err
	}
	n, _ := (*values)["replicaCount"].(int64)
	return int32(n), nil
}

func (c *catalog) Allows(string) error { return c.notAllowed }

func (c *catalog) Verifiable(context.Context, string, shipper.Chart, string) error {
	return c.notVerifiable
}

func (c *catalog) Resolve(_ context.Context, _ string, want shipper.Chart) (repository.Resolution, error) {
	c.asked = append(c.asked, want)
	return c.found, c.err
}

func (c *catalog) Refresh(context.Context, string, shipper.Chart) error {
	c.refreshed++
	return c.refreshErr
}

const repo = "https://charts.example.com"

// pins are the annotations that say where a version comes from.
func pins(app *shipper.Application) map[string]string {
	out := map[string]string{"version": app.Spec.Template.Chart.Version}
	for short, key := range map[string]string{
		"raw": shipper.AppChartVersionRawAnnotation, "resolved": shipper.AppChartVersionResolvedAnnotation,
		"name": shipper.AppChartNameAnnotation, "repo": shipper.AppChartRepoAnnotation, "digest": shipper.AppChartDigestAnnotation,
	} {
		if v, there := app.Annotations[key]; there {
			out[short] = v
		}
	}
	return out
}

func pinsOf(raw, version, digest string) map[string]string {
	out := map[string]string{"version": version, "raw": raw, "resolved": version, "name": "nginx", "repo": repo}
	if digest != "" {
		out["digest"] = digest
	}
	return out
}

func TestAChartIsPinned(t *testing.T) {
	live := func(edits ...func(*shipper.Application)) *shipper.Application {
		return ask.Application(append([]func(*shipper.Application){ask.Version("0.0.2"), ask.Pinned("~0.0")}, edits...)...)
	}
	refreshed := ask.Annotated(shipper.AppChartVersionRefreshAnnotation, "now")
	newer := repository.Resolution{Version: "0.0.9", Digest: "cafe"}
	for name, tc := range map[string]struct {
		now, old  *shipper.Application
		found     repository.Resolution
		want      map[string]string
		asked     []string
		refreshed int
		warned    []string
	}{
		"a constraint is resolved in place": {
			now: ask.Application(ask.Version("~0.0")), found: newer,
			want: pinsOf("~0.0", "0.0.9", "cafe"), asked: []string{"~0.0"},
			warned: []string{`chart nginx, version "~0.0", was resolved to 0.0.9`},
		},
		"no version is the newest stable one": {
			now: ask.Application(ask.Version("")), found: newer,
			want: pinsOf("", "0.0.9", "cafe"), asked: []string{""},
			warned: []string{"chart nginx, newest stable version, was resolved to 0.0.9"},
		},
		"an exact version is looked up for its digest, without a word": {
			now: ask.Application(), found: repository.Resolution{Version: "0.0.1"},
			want: pinsOf("0.0.1", "0.0.1", ""), asked: []string{"0.0.1"},
		},
		"an index that could not be refreshed is warned of": {
			now:   ask.Application(ask.Version("~0.0")),
			found: repository.Resolution{Version: "0.0.9", Stale: true, StaleSince: ask.Now.Add(-time.Hour)},
			want:  pinsOf("~0.0", "0.0.9", ""),
			asked: []string{"~0.0"},
			warned: []string{`repository https://charts.example.com could not be asked since 2026-11-21T11:00:00Z; ` +
				`chart nginx, version "~0.0", was resolved to 0.0.9 by what was known then`},
		},
		"the same constraint again keeps the version": {
			now: ask.Application(ask.Version("~0.0"), changed), old: live(), found: newer, want: pinsOf("~0.0", "0.0.2", ""),
		},
		"an edit beside the chart keeps the version": {
			now: live(changed), old: live(), found: newer, want: pinsOf("~0.0", "0.0.2", ""),
		},
		"another constraint is resolved again": {
			now: ask.Application(ask.Version("^0.0.2")), old: live(), found: newer,
			want: pinsOf("^0.0.2", "0.0.9", "cafe"), asked: []string{"^0.0.2"},
			warned: []string{`chart nginx, version "^0.0.2", was resolved to 0.0.9`},
		},
		"another exact version is resolved again": {
			now: live(ask.Version("0.0.1")), old: live(), found: repository.Resolution{Version: "0.0.1", Digest: "beef"},
			want: pinsOf("0.0.1", "0.0.1", "beef"), asked: []string{"0.0.1"},
		},
		"another repository is resolved again": {
			now: live(func(a *shipper.Application) { a.Spec.Template.Chart.RepoURL = "http://other" }), old: live(),
			found: repository.Resolution{Version: "0.0.2"},
			want:  map[string]string{"version": "0.0.2", "raw": "0.0.2", "resolved": "0.0.2", "name": "nginx", "repo": "http://other"},
			asked: []string{"0.0.2"},
		},
		"another repository is resolved again even if the previous one was not recorded": {
			now: withoutRepo(live(func(a *shipper.Application) { a.Spec.Template.Chart.RepoURL = "http://other" })),
			old: withoutRepo(live()), found: repository.Resolution{Version: "0.0.2"},
			want:  map[string]string{"version": "0.0.2", "raw": "0.0.2", "resolved": "0.0.2", "name": "nginx", "repo": "http://other"},
			asked: []string{"0.0.2"},
		},
		"a pin of the original, which noted no repository, is kept": {
			now: withoutRepo(live(changed)), old: withoutRepo(live()), found: newer,
			want: map[string]string{"version": "0.0.2", "raw": "~0.0", "resolved": "0.0.2", "name": "nginx"},
		},
		"another chart is resolved again": {
			now: live(func(a *shipper.Application) { a.Spec.Template.Chart.Name = "apache" }), old: live(),
			found: repository.Resolution{Version: "0.0.2"},
			want:  map[string]string{"version": "0.0.2", "raw": "0.0.2", "resolved": "0.0.2", "name": "apache", "repo": repo},
			asked: []string{"0.0.2"},
		},
		"a new value of refresh resolves the original constraint again": {
			now: live(refreshed), old: live(), found: newer,
			want: pinsOf("~0.0", "0.0.9", "cafe"), asked: []string{"~0.0"}, refreshed: 1,
			warned: []string{`chart nginx, version "~0.0", was resolved to 0.0.9`},
		},
		"an old value of refresh does nothing": {
			now: live(refreshed, changed), old: live(refreshed), found: newer, want: pinsOf("~0.0", "0.0.2", ""),
		},
		"an edit that keeps spec sends no request": {
			now: live(ask.Annotated("a", "b")), old: live(), found: newer, want: pinsOf("~0.0", "0.0.2", ""),
		},
		"an Application that was stored unresolved is resolved with any write": {
			now: ask.Application(ask.Version("~0.0"), ask.Annotated("a", "b")), old: ask.Application(ask.Version("~0.0")),
			found: newer, want: pinsOf("~0.0", "0.0.9", "cafe"), asked: []string{"~0.0"},
			warned: []string{`chart nginx, version "~0.0", was resolved to 0.0.9`},
		},
		"an Application that was stored unresolved and is going is left alone": {
			now: ask.Application(ask.Version("~0.0"), going), old: ask.Application(ask.Version("~0.0")),
			found: newer, want: map[string]string{"version": "~0.0"},
		},
		"an Application that was stored unresolved and is invalid otherwise is left alone": {
			now: ask.Application(ask.Version("~0.0"), stepless), old: ask.Application(ask.Version("~0.0"), stepless),
			found: newer, want: map[string]string{"version": "~0.0"},
		},
		"an Application that was stored unresolved is resolved with its next edit": {
			now: ask.Application(ask.Version("~0.0"), changed), old: ask.Application(ask.Version("~0.0")), found: newer,
			want: pinsOf("~0.0", "0.0.9", "cafe"), asked: []string{"~0.0"},
			warned: []string{`chart nginx, version "~0.0", was resolved to 0.0.9`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			charts := &catalog{found: tc.found}
			w := webhookOf(t, ask.Grant(), charts)
			req := ask.Create(ask.Developer, tc.now)
			if tc.old != nil {
				req = ask.Update(ask.Developer, tc.now, tc.old)
			}
			a := &response.Response{}
			if err := w.Default(t.Context(), req, a); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, pins(ask.Patched[shipper.Application](t, req, a))); diff != "" {
				t.Errorf("pin (-want +got):\n%s", diff)
			}
			var asked []string
			for _, c := range charts.asked {
				asked = append(asked, c.Version)
			}
			if diff := cmp.Diff(tc.asked, asked); diff != "" {
				t.Errorf("asked for (-want +got):\n%s", diff)
			}
			if charts.refreshed != tc.refreshed {
				t.Errorf("refreshed %d times, want %d", charts.refreshed, tc.refreshed)
			}
			if diff := cmp.Diff(tc.warned, a.Warnings()); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAChartThatCannotBeResolved(t *testing.T) {
	unreachable := &chart.Error{Message: "no answer", Retry: true, Cause: chart.ErrUnreachable}
	for name, tc := range map[string]struct {
		version  string
		err      error
		decision response.Decision
		message  string
		warned   []string
	}{
		"a constraint that nothing matches": {
			version: "~9", err: &chart.Error{Message: "nearest: 0.0.2", Cause: chart.ErrNoMatch}, decision: response.Invalid,
			message: `Application.shipper.booking.com "super-server" is invalid: spec.template.chart.version: Invalid value: "~9": nearest: 0.0.2`,
		},
		"a chart that the repository does not have": {
			version: "~9", err: &chart.Error{Message: "no nginx", Cause: chart.ErrNoChart}, decision: response.Invalid,
			message: `Application.shipper.booking.com "super-server" is invalid: spec.template.chart.name: Invalid value: "nginx": no nginx`,
		},
		"a constraint that is none": {
			version: "ha", err: &chart.Error{Message: "not a constraint", Cause: chart.ErrBadConstraint},
			decision: response.Invalid,
			message: `Application.shipper.booking.com "super-server" is invalid: ` +
				`spec.template.chart.version: Invalid value: "ha": not a constraint`,
		},
		"a URL that is no repository": {
			version: "1.0.0", err: &chart.Error{Message: "HTML", Cause: chart.ErrNotRepository}, decision: response.Invalid,
			message: `Application.shipper.booking.com "super-server" is invalid: spec.template.chart.repoUrl: Invalid value: "` + repo + `": HTML`,
		},
		"a URL that charts may not be fetched from": {
			version: "1.0.0", err: &chart.Error{Message: "not that", Retry: true, Cause: chart.ErrNotAllowed}, decision: response.Invalid,
			message: `Application.shipper.booking.com "super-server" is invalid: ` +
				`spec.template.chart.repoUrl: Invalid value: "` + repo + `": not that`,
		},
		"a chart that is broken otherwise": {
			version: "1.0.0", err: &chart.Error{Message: "broken"}, decision: response.Invalid,
			message: `Application.shipper.booking.com "super-server" is invalid: spec.template.chart.name: Invalid value: "nginx": broken`,
		},
		"a constraint while the repository is down": {
			version: "~1", err: unreachable, decision: response.Unavailable,
			message: `chart nginx, version "~1", cannot be resolved to a version now: no answer; ` +
				`try again in a minute, or name an exact version`,
		},
		"an exact version while the repository is down": {
			version: "1.0.0", err: unreachable,
			warned: []string{`chart nginx, version "1.0.0", was admitted unseen: no answer`},
		},
		"an exact version when time is up": {
			version: "1.0.0", err: context.DeadlineExceeded,
			warned: []string{`chart nginx, version "1.0.0", was admitted unseen: context deadline exceeded`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := webhookOf(t, ask.Grant(), &catalog{err: tc.err})
			a := &response.Response{}
			err := w.Default(t.Context(), ask.Create(ask.Developer, ask.Application(ask.Version(tc.version))), a)
			ask.CheckRefusal(t, err, tc.decision, tc.message)
			if diff := cmp.Diff(tc.warned, a.Warnings()); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
		})
	}
}

// It is refused when a user names it. Applications that were admitted before can be edited, and rollbacks work.
func TestARepositoryThatIsNotAllowed(t *testing.T) {
	charts := &catalog{notAllowed: &chart.Error{Message: "not that", Cause: chart.ErrNotAllowed}}
	elsewhere := func(app *shipper.Application) { app.Spec.Template.Chart.RepoURL = "https://elsewhere" }
	const message = `Application.shipper.booking.com "super-server" is invalid: spec.template.chart.repoUrl: Invalid value: "`
	before := func(app *shipper.Application) { app.Spec.Template.Chart.RepoURL = "https://before" }
	released := ask.Release(ask.Application(before), nil, ask.ReleaseAnnotated(shipper.ReleaseChartDigestAnnotation, "digest"))
	unseen := ask.Release(ask.Application(elsewhere), nil)
	for sentence, tc := range map[string]struct {
		req     *admission.Request
		message string
	}{
		"is not created with": {ask.Create("dev", ask.Application()), message + repo + `": not that`},
		"is not changed to":   {ask.Update("dev", ask.Application(elsewhere), ask.Application()), message + `https://elsewhere": not that`},
		"stays":               {ask.Update("dev", ask.Application(changed), ask.Application()), ""},
		"is put back on abort": {
			ask.Update(ask.Reconciler, ask.Application(elsewhere, abortedTo(unseen)), ask.Application()), "",
		},
		"is not changed to by a user name": {
			ask.Update(ask.Reconciler, ask.Application(elsewhere, changed), ask.Application()), message + `https://elsewhere": not that`,
		},
		"was released from": {ask.Update("dev", ask.Application(before), ask.Application()), ""},
		"is deleted with":   {ask.Delete("dev", ask.Application()), ""},
	} {
		t.Run(sentence, func(t *testing.T) {
			var decision response.Decision
			if tc.message != "" {
				decision = response.Invalid
			}
			err := webhookOf(t, ask.Grant(), charts, released, unseen).Validate(t.Context(), tc.req, &response.Response{})
			ask.CheckRefusal(t, err, decision, tc.message)
		})
	}
}

func TestARefreshThatFails(t *testing.T) {
	charts := &catalog{found: repository.Resolution{Version: "0.0.2"}, refreshErr: errors.New("down")}
	old := ask.Application(ask.Version("0.0.2"), ask.Pinned("~0.0"))
	now := ask.Application(ask.Version("0.0.2"), ask.Pinned("~0.0"), ask.Annotated(shipper.AppChartVersionRefreshAnnotation, "x"))
	a := &response.Response{}
	if err := webhookOf(t, ask.Grant(), charts).Default(t.Context(), ask.Update(ask.Developer, now, old), a); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"repository " + repo + " could not be asked for newer versions: down",
		`chart nginx, version "~0.0", was resolved to 0.0.2`,
	}
	if diff := cmp.Diff(want, a.Warnings()); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
}

// Conditions are evaluated on the object to be stored: on the version, not on the constraint that it was resolved from.
func TestConditionsAreAskedOfTheVersionThatAConstraintIsResolvedTo(t *testing.T) {
	majors := ask.Block("global/major-versions")
	majors.Spec.MatchConditions = []shipper.RolloutBlockMatchCondition{{Name: "another-major-version", Expression: `oldObject != null && ` +
		`object.spec.template.chart.version.split(".")[0] != oldObject.spec.template.chart.version.split(".")[0]`}}
	old := ask.Application(ask.Pinned("~0"))
	for constraint, tc := range map[string]struct {
		found    string
		decision response.Decision
	}{
		"~0":   {"0.0.1", ""},
		"~0.0": {"0.0.2", ""},
		"~1":   {"1.0.0", response.Blocked},
	} {
		t.Run(constraint, func(t *testing.T) {
			edited := ask.Application(ask.Pinned("~0"), ask.Version(constraint), func(app *shipper.Application) {
				app.Spec.Template.Values = &shipper.ChartValues{"replicaCount": int64(7)}
			})
			charts := &catalog{found: repository.Resolution{Version: tc.found}}
			err := webhookOf(t, ask.Grant(), charts, majors).Default(t.Context(), ask.Update("dev", edited, old), &response.Response{})
			var refusal *response.Refusal
			if errors.As(err, &refusal); (refusal == nil) != (tc.decision == "") || refusal != nil && refusal.Decision != tc.decision {
				t.Errorf("got %v, want %q", err, tc.decision)
			}
		})
	}
}

func TestABlockedEditIsNotResolved(t *testing.T) {
	charts := &catalog{err: errors.New("must not be asked")}
	w := webhookOf(t, ask.Grant(), charts, ask.Block("global/dns-outage"))
	err := w.Default(t.Context(), ask.Create(ask.Developer, ask.Application(ask.Version("~0.0"))), &response.Response{})
	var refusal *response.Refusal
	if !errors.As(err, &refusal) || refusal.Decision != response.Blocked || len(charts.asked) > 0 {
		t.Errorf("got %v, asked %v; want a refusal by the block and nothing asked", err, charts.asked)
	}
}

// TestAnUnresolvableChartAllowsMetadataEdits has an Application that was never resolved, and writes that leave it so.
func TestAnUnresolvableChartAllowsMetadataEdits(t *testing.T) {
	old := ask.Application(ask.Version("~0.0"))
	now := ask.Application(ask.Version("~0.0"), ask.Annotated("a", "b"))
	down := &chart.Error{Message: "no answer", Retry: true, Cause: chart.ErrUnreachable}
	for sentence, tc := range map[string]struct {
		user   string
		known  []client.Object
		asked  int
		warned []string
	}{
		"because of a block":          {user: "dev", known: []client.Object{ask.Block("global/dns")}},
		"because Shipper writes them": {user: ask.Reconciler},
		"because there is no answer": {user: "dev", asked: 1, warned: []string{
			`chart nginx, version "~0.0", cannot be resolved to a version now: no answer; try again in a minute, or name an exact version`,
		}},
	} {
		t.Run(sentence, func(t *testing.T) {
			charts, a := &catalog{err: down}, &response.Response{}
			hook := webhookOf(t, ask.Grant(), charts, tc.known...)
			if err := hook.Default(t.Context(), ask.Update(tc.user, now, old), a); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.warned, a.Warnings()); diff != "" || len(charts.asked) != tc.asked || len(patchOf(t, a)) > 0 {
				t.Errorf("asked %v, patched %v; warnings (-want +got):\n%s", charts.asked, patchOf(t, a), diff)
			}
		})
	}
}

func going(app *shipper.Application) { app.DeletionTimestamp = &metav1.Time{Time: ask.Now} }

func stepless(app *shipper.Application) { app.Spec.Template.Strategy.Steps = nil }

func withoutRepo(app *shipper.Application) *shipper.Application {
	delete(app.Annotations, shipper.AppChartRepoAnnotation)
	return app
}

// changed edits something beside the chart.
func changed(app *shipper.Application) {
	(*app.Spec.Template.Values)["replicaCount"] = int64(4)
}

// The chart of a Release stays the same, whatever the repository has now, and even if the repository is gone.
func TestAVersionThatWasReleasedIsNotLookedUpAgain(t *testing.T) {
	was := ask.Application(ask.Version("0.0.2"))
	first := ask.Release(was, nil, ask.ReleaseAnnotated(shipper.ReleaseChartDigestAnnotation, "old"),
		ask.ReleaseAnnotated(shipper.ReleaseGenerationAnnotation, "9"))
	second := ask.Release(was, nil, ask.ReleaseAnnotated(shipper.ReleaseChartDigestAnnotation, "new"),
		ask.ReleaseAnnotated(shipper.ReleaseGenerationAnnotation, "10"))
	second.Name += "-again"
	refresh := ask.Annotated(shipper.AppChartVersionRefreshAnnotation, "now")
	for sentence, tc := range map[string]struct {
		now    *shipper.Application
		digest string
		asked  int
	}{
		"as the newest Release of it has it":              {ask.Application(ask.Version("0.0.2")), "new", 0},
		"but another version is":                          {ask.Application(ask.Version("0.0.3")), "index", 1},
		"nor is a constraint replaced by its last result": {ask.Application(ask.Version("~0.0")), "index", 1},
		"unless a refresh is requested":                   {ask.Application(ask.Version("0.0.2"), refresh), "index", 1},
	} {
		t.Run(sentence, func(t *testing.T) {
			charts := &catalog{found: repository.Resolution{Version: tc.now.Spec.Template.Chart.Version, Digest: "index"}}
			w := webhookOf(t, ask.Grant(), charts, first, second)
			a, req := &response.Response{}, ask.Update(ask.Developer, tc.now, ask.Application(ask.Version("0.0.1")))
			if err := w.Default(t.Context(), req, a); err != nil {
				t.Fatal(err)
			}
			got := ask.Patched[shipper.Application](t, req, a).Annotations[shipper.AppChartDigestAnnotation]
			if got != tc.digest || len(charts.asked) != tc.asked {
				t.Errorf("digest %q after %d questions, want %q after %d", got, len(charts.asked), tc.digest, tc.asked)
			}
		})
	}
}
