// SPDX-License-Identifier: Apache-2.0

package repository_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	clocktesting "k8s.io/utils/clock/testing"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart"
	"shipper.dev/shipper/chart/repository"
	"shipper.dev/shipper/test/charts"
)

// noon is when tests begin.
var noon = time.Date(2030, time.January, 2, 12, 0, 0, 0, time.UTC)

// env is a catalog in front of a repository, with a clock that stands still.
type env struct {
	t     *testing.T
	clock *clocktesting.FakePassiveClock
	repo  *charts.Repository
	*repository.Catalog
}

func newEnv(t *testing.T, change ...func(*repository.Options)) *env {
	t.Helper()
	s := &env{t: t, clock: clocktesting.NewFakePassiveClock(noon), repo: charts.Serve(t)}
	s.restart(change...)
	return s
}

// restart puts a new catalog in the place of the old one.
func (s *env) restart(change ...func(*repository.Options)) {
	options := repository.Options{Repositories: charts.Policy(s.t), Clock: s.clock, Patience: time.Hour, FetchTimeout: time.Hour}
	for _, c := range change {
		c(&options)
	}
	s.Catalog = repository.NewCatalog(s.t.Context(), options)
}

func (s *env) pass(d time.Duration) { s.clock.SetTime(s.clock.Now().Add(d)) }

func (s *env) chart(name, version string) shipper.Chart {
	return shipper.Chart{Name: name, Version: version, RepoURL: s.repo.URL}
}

func (s *env) resolve(name, version string) (repository.Resolution, error) {
	s.t.Helper()
	return s.Resolve(s.t.Context(), "default", s.chart(name, version))
}

// version resolves and fails the test when that fails.
func (s *env) version(name, version string) string {
	s.t.Helper()
	r, err := s.resolve(name, version)
	if err != nil {
		s.t.Fatal(err)
	}
	return r.Version
}

// publish adds an archive that is empty but for its name.
func (s *env) publish(name string, versions ...string) {
	for _, v := range versions {
		s.repo.Publish(charts.NewArchive(name, v, []byte(name+v)))
	}
}

// failure is the part of an error that callers see.
type failure struct {
	Reason, Message string
	Retry           bool
	Is              error
}

func read(t *testing.T, err error) failure {
	t.Helper()
	e, ok := errors.AsType[*chart.Error](err)
	if !ok {
		t.Fatalf("%#v is no *chart.Error", err)
	}
	got := failure{Reason: e.Reason, Message: err.Error(), Retry: e.Retry}
	for _, sentinel := range []error{
		chart.ErrNoMatch, chart.ErrUnreachable, chart.ErrNotRepository, chart.ErrBadConstraint, chart.ErrDigest,
		chart.ErrNotAllowed, chart.ErrCredentials, chart.ErrKeys, chart.ErrProvenance,
	} {
		if errors.Is(err, sentinel) {
			got.Is = sentinel
		}
	}
	return got
}

// same compares errors by identity.
var same = cmp.Comparer(func(a, b error) bool { return errors.Is(a, b) || a == nil && b == nil })

func TestResolve(t *testing.T) {
	s := newEnv(t)
	s.publish("simple", "0.0.1")
	s.publish("nginx", "0.0.3", "0.1.0-rc.1")
	s.publish("odd", "1.2.3-4.5.6", "2.0.0", "v3.0.0", "3.1.0+b1", "3.1.0+b2", "not-a-version")
	tests := []struct{ name, version, want string }{
		{"simple", "0.0.1", "0.0.1"},
		{"simple", ">=0.0.1", "0.0.1"},
		{"simple", "~0.0.1", "0.0.1"},
		{"nginx", "=0.0.1", "0.0.1"},
		{"nginx", ">=0.0.1", "0.0.3"},
		{"nginx", ">0.0.1", "0.0.3"},
		{"nginx", "<=0.0.2", "0.0.2"},
		{"nginx", "<0.0.2", "0.0.1"},
		{"nginx", "~0.0", "0.0.3"},
		{"nginx", "", "0.0.3"},
		{"nginx", ">=0.0.1-0", "0.1.0-rc.1"},
		{"nginx", "0.0.1-0.0.2", "0.0.2"},
		{"odd", "1.2.3-4.5.6", "1.2.3-4.5.6"},
		{"odd", "1.2.3-2.9.9", "2.0.0"},
		{"odd", "3.0.0", "v3.0.0"},
		{"odd", "v2.0.0", "2.0.0"},
		{"odd", "3.1.0", "3.1.0+b2"},
		{"odd", "3.1.0+b1", "3.1.0+b1"},
		{"odd", "~3", "3.1.0+b2"},
	}
	for _, test := range tests {
		if got := s.version(test.name, test.version); got != test.want {
			t.Errorf("%s %q resolves to %s, want %s", test.name, test.version, got, test.want)
		}
	}
	if got := s.repo.Requests("index.yaml"); got != 1 {
		t.Errorf("the index was asked for %d times", got)
	}
}

func TestResolveGivesTheDigest(t *testing.T) {
	s := newEnv(t)
	archive, err := charts.Get("nginx", "0.0.2")
	if err != nil {
		t.Fatal(err)
	}
	got, err := s.resolve("nginx", "~0.0")
	if diff := cmp.Diff(repository.Resolution{Version: "0.0.2", Digest: archive.Digest}, got); diff != "" || err != nil {
		t.Error(diff, err)
	}
	s.repo.ForgetDigests()
	s.restart()
	got, err = s.resolve("nginx", "~0.0")
	if diff := cmp.Diff(repository.Resolution{Version: "0.0.2"}, got); diff != "" || err != nil {
		t.Error(diff, err)
	}
}

func TestResolveRefuses(t *testing.T) {
	s := newEnv(t)
	s.publish("many", "1.0.0", "1.1.0", "1.2.0", "2.0.0", "2.1.0", "3.0.0", "3.1.0")
	s.publish("early", "1.0.0-rc.1", "1.0.0-rc.2")
	tests := map[string]struct {
		chart shipper.Chart
		want  failure
	}{
		"nothing matches; the nearest are around the version named": {
			s.chart("many", "~1.3"),
			failure{"BrokenChartSpec", `chart "many" of repository URL has no version that satisfies "~1.3"; ` +
				`the nearest are 2.1.0, 2.0.0, 1.2.0, 1.1.0, 1.0.0`, false, chart.ErrNoMatch},
		},
		"an exact version is missing": {
			s.chart("many", "9.0.0"),
			failure{"BrokenChartSpec", `chart "many" of repository URL has no version that satisfies "9.0.0"; ` +
				`the nearest are 3.1.0, 3.0.0, 2.1.0, 2.0.0, 1.2.0`, false, chart.ErrNoMatch},
		},
		"there are few versions": {
			s.chart("nginx", ">1"),
			failure{"BrokenChartSpec", `chart "nginx" of repository URL has no version that satisfies ">1"; the nearest are 0.0.2, 0.0.1`,
				false, chart.ErrNoMatch},
		},
		"only prereleases would match": {
			s.chart("early", ">0"),
			failure{"BrokenChartSpec", `chart "early" of repository URL has no version that satisfies ">0"; the nearest are 1.0.0-rc.2, ` +
				`1.0.0-rc.1; prereleases are taken only when the constraint names one, as in ">=1.0.0-0"`, false, chart.ErrNoMatch},
		},
		"there is no stable version": {
			s.chart("early", ""),
			failure{"BrokenChartSpec", `chart "early" of repository URL has no stable version; the nearest are 1.0.0-rc.2, 1.0.0-rc.1`,
				false, chart.ErrNoMatch},
		},
		"the build asked for does not exist": {
			s.chart("nginx", "0.0.1+b7"),
			failure{"BrokenChartSpec", `chart "nginx" of repository URL has no version that satisfies "0.0.1+b7"; ` +
				`the nearest are 0.0.2, 0.0.1`, false, chart.ErrNoMatch},
		},
		"the chart is unknown": {
			s.chart("php", "1"),
			failure{"BrokenChartSpec", `repository URL has no chart "php"`, false, chart.ErrNoMatch},
		},
		"letters of the chart's name are swapped": {
			s.chart("ngnix", "1"),
			failure{"BrokenChartSpec", `repository URL has no chart "ngnix"; did you mean "nginx"?`, false, chart.ErrNoMatch},
		},
		"the constraint is nonsense": {
			s.chart("nginx", "newest please"),
			failure{"BrokenChartSpec", `"newest please" is neither a version nor a constraint such as "1.2.3", "~1.2" or ">=1.2.3, <2"; ` +
				`leave it empty for the newest stable version: improper constraint: "newest please"`, false, chart.ErrBadConstraint},
		},
		"the URL is none": {
			shipper.Chart{Name: "nginx", RepoURL: "http://bad host/%zz"},
			failure{"BrokenChartSpec", "repoUrl is not a URL", false, chart.ErrNotRepository},
		},
		"the URL is of another scheme": {
			shipper.Chart{Name: "nginx", RepoURL: "file://user:secret@example.com/charts"},
			failure{"BrokenChartSpec", "repoUrl file://example.com/charts is not an http, https or oci URL of a chart repository", false,
				chart.ErrNotRepository},
		},
		"the URL has no host": {
			shipper.Chart{Name: "nginx", RepoURL: "file:///etc"},
			failure{"BrokenChartSpec", "repoUrl file:///etc is not an http, https or oci URL of a chart repository", false, chart.ErrNotRepository},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := s.Resolve(t.Context(), "default", test.chart)
			got := read(t, err)
			got.Message = strings.ReplaceAll(got.Message, s.repo.URL, "URL")
			if diff := cmp.Diff(test.want, got, same); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestFaults meets every way in which a repository can be broken, unknown before and known before.
func TestFaults(t *testing.T) {
	tests := map[charts.Fault]failure{
		charts.Missing: {"ChartFetchFailure", "there is no chart repository at URL/index.yaml: the answer is 404 Not Found", true,
			chart.ErrNotRepository},
		charts.Gone: {"ChartFetchFailure", "there is no chart repository at URL/index.yaml: the answer is 410 Gone", true,
			chart.ErrNotRepository},
		charts.Unavailable: {"ChartFetchFailure", "chart index URL/index.yaml cannot be fetched: the answer is 503 Service Unavailable",
			true, chart.ErrUnreachable},
		charts.EmptyFile: {"ChartFetchFailure", "URL/index.yaml is an empty file, not a chart index", true, chart.ErrNotRepository},
		charts.NotYAML: {"ChartFetchFailure", "URL/index.yaml is not a chart index: yaml: mapping values are not allowed in this context",
			true, chart.ErrNotRepository},
		charts.HTML:       {"ChartFetchFailure", "URL/index.yaml is a page of HTML or XML, not a chart index", true, chart.ErrNotRepository},
		charts.HugeIndex:  {"ChartFetchFailure", "URL/index.yaml is larger than the 64 MiB that are accepted", true, chart.ErrNotRepository},
		charts.EmptyIndex: {"BrokenChartSpec", `repository URL has no chart "nginx"`, false, chart.ErrNoMatch},
	}
	for fault, want := range tests {
		t.Run(string(fault), func(t *testing.T) {
			s := newEnv(t)
			s.repo.Break(fault)
			_, err := s.resolve("nginx", "~0.0")
			got := read(t, err)
			got.Message = strings.ReplaceAll(got.Message, s.repo.URL, "URL")
			if diff := cmp.Diff(want, got, same); diff != "" {
				t.Error(diff)
			}
			s.repo.Heal()
			s.pass(time.Hour / 2)
			if got := s.version("nginx", "~0.0"); got != "0.0.2" {
				t.Errorf("healed, it resolves to %s", got)
			}
			checked := s.clock.Now()
			s.repo.Break(fault)
			s.pass(2 * time.Minute)
			resolved, err := s.resolve("nginx", "~0.0")
			if err != nil {
				t.Fatal(err)
			}
			if resolved.Version != "0.0.2" || !resolved.Stale || !resolved.StaleSince.Equal(checked) {
				t.Errorf("known before, it resolves to %+v", resolved)
			}
			requests := s.repo.Requests("")
			if again, err := s.resolve("nginx", "~0.0"); err != nil || again != resolved || s.repo.Requests("") != requests {
				t.Errorf("before the next attempt it resolves to %+v, %v", again, err)
			}
		})
	}
}

func TestRepositoryThatIsNotThere(t *testing.T) {
	s := newEnv(t)
	s.repo.Close()
	_, err := s.resolve("nginx", "~0.0")
	got := read(t, err)
	if !strings.HasSuffix(got.Message, "connection refused") || !errors.Is(got.Is, chart.ErrUnreachable) || !got.Retry {
		t.Errorf("got %+v", got)
	}
	if err := s.Refresh(t.Context(), "default", shipper.Chart{RepoURL: s.repo.URL}); !errors.Is(err, chart.ErrUnreachable) {
		t.Errorf("refreshing it gives %v", err)
	}
}

func TestIndexIsRefreshedBehindTheCaller(t *testing.T) {
	s := newEnv(t)
	s.version("nginx", "~0.0")
	s.publish("nginx", "0.0.3")
	s.pass(9 * time.Second)
	if got := s.version("nginx", "~0.0"); got != "0.0.2" || s.repo.Requests("") != 1 {
		t.Errorf("a fresh index is asked for again, or gives %s", got)
	}
	s.pass(2 * time.Second)
	s.repo.Break(charts.Stalled)
	if got := s.version("nginx", "~0.0"); got != "0.0.2" {
		t.Errorf("an index that is not fresh gives %s", got)
	}
	s.repo.Heal()
	if err := s.Refresh(t.Context(), "default", shipper.Chart{RepoURL: s.repo.URL}); err != nil {
		t.Fatal(err)
	}
	if got := s.version("nginx", "~0.0"); got != "0.0.3" || s.repo.Requests("") > 3 {
		t.Errorf("after the refresh it gives %s, with %d requests", got, s.repo.Requests(""))
	}
}

func TestUnchangedIndexIsNotSentAgain(t *testing.T) {
	s := newEnv(t)
	for range 3 {
		if err := s.Refresh(t.Context(), "default", shipper.Chart{RepoURL: s.repo.URL}); err != nil {
			t.Fatal(err)
		}
		s.pass(time.Minute)
	}
	if diff := cmp.Diff([]int{1, 2}, []int{s.repo.Answers(http.StatusOK), s.repo.Answers(http.StatusNotModified)}); diff != "" {
		t.Error(diff)
	}
	if resolved, err := s.resolve("nginx", ""); err != nil || resolved.Stale {
		t.Errorf("it resolves to %+v, %v", resolved, err)
	}
}

func TestOldIndexIsWaitedForALittle(t *testing.T) {
	s := newEnv(t)
	s.version("nginx", "~0.0")
	s.publish("nginx", "0.0.3")
	s.pass(2 * time.Minute)
	if got := s.version("nginx", "~0.0"); got != "0.0.3" {
		t.Errorf("an old index gives %s", got)
	}
	s.restart(func(o *repository.Options) { o.Patience = time.Nanosecond })
	s.version("nginx", "~0.0")
	s.publish("nginx", "0.0.4")
	s.repo.Break(charts.Stalled)
	s.pass(2 * time.Minute)
	if got := s.version("nginx", "~0.0"); got != "0.0.3" {
		t.Errorf("an old index of a slow repository gives %s", got)
	}
}

func TestMissMakesTheIndexBeAskedForAgain(t *testing.T) {
	s := newEnv(t)
	s.version("nginx", "~0.0")
	s.publish("nginx", "0.7.0")
	if got := s.version("nginx", "0.7.0"); got != "0.7.0" {
		t.Errorf("it resolves to %s", got)
	}
	s.repo.Break(charts.Unavailable)
	s.pass(time.Second)
	_, err := s.resolve("nginx", "0.8.0")
	want := `chart "nginx" of repository URL has no version that satisfies "0.8.0"; the nearest are 0.7.0, 0.0.2, 0.0.1; ` +
		`the repository may have more by now, but chart index URL/index.yaml cannot be fetched: the answer is 503 Service Unavailable`
	if diff := cmp.Diff(want, strings.ReplaceAll(read(t, err).Message, s.repo.URL, "URL")); diff != "" {
		t.Error(diff)
	}
}

// slow is a repository that reads its index at once and takes long to send it.
type slow struct {
	index string
	takes time.Duration
	asked []time.Duration
	begun time.Time
}

func (r *slow) RoundTrip(*http.Request) (*http.Response, error) {
	r.asked = append(r.asked, time.Since(r.begun))
	body := io.NopCloser(strings.NewReader(r.index))
	time.Sleep(r.takes)
	return &http.Response{StatusCode: http.StatusOK, Body: body, ContentLength: -1}, nil
}

// TestAMissInAnAnswerUnderWayIsNotFinal publishes a version while an index without it is on its way to another caller.
func TestAMissInAnAnswerUnderWayIsNotFinal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const listing = "apiVersion: v1\nentries:\n  nginx:\n  - {version: 0.0.1, urls: [nginx-0.0.1.tgz]}\n"
		repo := &slow{index: listing, takes: 3 * time.Second, begun: time.Now()}
		catalog := repository.NewCatalog(t.Context(), repository.Options{Transport: repo, Patience: time.Hour})
		want := shipper.Chart{Name: "nginx", Version: "0.0.1", RepoURL: "https://charts.example.com"}
		resolve := func(version string) {
			want := want
			want.Version = version
			if got, err := catalog.Resolve(t.Context(), "default", want); err != nil || got.Version != version {
				t.Errorf("%s resolves to %+v, %v", version, got, err)
			}
		}
		resolve("0.0.1")
		var others sync.WaitGroup
		others.Go(func() {
			if err := catalog.Refresh(t.Context(), "default", want); err != nil {
				t.Error(err)
			}
		})
		time.Sleep(2 * time.Second)
		synctest.Wait()
		repo.index += "  - {version: 0.0.2, urls: [nginx-0.0.2.tgz]}\n"
		for range 9 {
			others.Go(func() { resolve("0.0.2") })
		}
		others.Wait()
		// Between two answers the repository is left alone for a second.
		if diff := cmp.Diff([]time.Duration{0, 4 * time.Second, 8 * time.Second}, repo.asked); diff != "" {
			t.Errorf("when it was asked: -want +got:\n%s", diff)
		}
	})
}

// TestMissIsTakenFromAnAnswerThatCameMeanwhile has a caller that finds an index of a given age without its version and waits no longer
// than patience. The answer to any request that started after it came is good enough.
func TestMissIsTakenFromAnAnswerThatCameMeanwhile(t *testing.T) {
	const listing = "apiVersion: v1\nentries:\n  nginx:\n  - {version: 0.0.1, urls: [nginx-0.0.1.tgz]}\n"
	const miss = `chart "nginx" of repository https://charts.example.com has no version that satisfies "0.0.2"; the nearest are 0.0.1`
	const late = "; the repository may have more by now, but repository https://charts.example.com has not answered in time"
	ms := func(n ...int) []time.Duration {
		out := make([]time.Duration, len(n))
		for i := range n {
			out[i] = time.Duration(n[i]) * time.Millisecond
		}
		return out
	}
	for name, tc := range map[string]struct {
		takes, age time.Duration
		// others: another came first, and insists. cold: nothing is known, and nothing is published.
		others, cold bool
		asked        []time.Duration
		took         time.Duration
		failure      string
	}{
		"his own asking, of an index that is not fresh": {
			takes: 600 * time.Millisecond, age: 20 * time.Second, asked: ms(0, 20600), took: 600 * time.Millisecond,
		},
		"his own asking, of one that was not known": {
			takes: 600 * time.Millisecond, cold: true, asked: ms(0), took: 600 * time.Millisecond, failure: miss,
		},
		"another's asking, which is put off": {
			takes: 400 * time.Millisecond, others: true, asked: ms(0, 800), took: 800 * time.Millisecond,
		},
		"none in time, which is reported": {
			takes: 2 * time.Second, age: 20 * time.Second, asked: ms(0, 22000), took: time.Second, failure: miss + late,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				repo := &slow{index: listing, takes: tc.takes, begun: time.Now()}
				catalog := repository.NewCatalog(t.Context(), repository.Options{Transport: repo})
				resolve := func(version string) error {
					_, err := catalog.Resolve(t.Context(), "default",
						shipper.Chart{Name: "nginx", Version: version, RepoURL: "https://charts.example.com"})
					return err
				}
				if !tc.cold {
					if err := resolve("0.0.1"); err != nil {
						t.Fatal(err)
					}
				}
				time.Sleep(tc.age)
				var others sync.WaitGroup
				if tc.others {
					others.Go(func() { _ = resolve("0.0.3") })
					synctest.Wait()
				}
				if !tc.cold {
					repo.index += "  - {version: 0.0.2, urls: [nginx-0.0.2.tgz]}\n"
				}
				came, failure := time.Now(), ""
				if err := resolve("0.0.2"); err != nil {
					failure = err.Error()
				}
				if took := time.Since(came); took != tc.took || failure != tc.failure {
					t.Errorf("after %s, want %s, it got %q, want %q", took, tc.took, failure, tc.failure)
				}
				others.Wait()
				time.Sleep(tc.takes)
				synctest.Wait()
				if diff := cmp.Diff(tc.asked, repo.asked); diff != "" {
					t.Errorf("when it was asked: -want +got:\n%s", diff)
				}
			})
		})
	}
}

// TestBackoff watches how often a repository is asked that does not answer.
func TestBackoff(t *testing.T) {
	s := newEnv(t)
	s.repo.Break(charts.Unavailable)
	asked := func() int {
		_, err := s.resolve("nginx", "~0.0")
		if !errors.Is(err, chart.ErrUnreachable) {
			t.Fatal(err)
		}
		return s.repo.Requests("index.yaml")
	}
	if got := asked(); got != 1 {
		t.Fatalf("asked %d times", got)
	}
	for i, delay := range []int{1, 2, 4, 8, 16, 32, 60, 60} {
		d := time.Duration(delay) * time.Second
		s.pass(d - time.Millisecond)
		if got := asked(); got != i+1 {
			t.Errorf("asked %d times within %s of failure %d", got, d, i+1)
		}
		s.pass(d/2 + time.Millisecond)
		if got := asked(); got != i+2 {
			t.Errorf("asked %d times after %s of failure %d", got, d*3/2, i+1)
		}
	}
	_, held := s.resolve("nginx", "~0.0")
	s.pass(2 * time.Minute)
	_, asking := s.resolve("nginx", "~0.0")
	if diff := cmp.Diff(read(t, asking), read(t, held), same); diff != "" {
		t.Errorf("an attempt and the wait for the next have different messages: %s", diff)
	}
	s.repo.Heal()
	s.pass(2 * time.Minute)
	if got := s.version("nginx", "~0.0"); got != "0.0.2" {
		t.Errorf("healed, it resolves to %s", got)
	}
	s.repo.Break(charts.Unavailable)
	s.pass(2 * time.Minute)
	s.version("nginx", "~0.0")
	before := s.repo.Requests("index.yaml")
	s.pass(1500 * time.Millisecond)
	s.version("nginx", "~0.0")
	if got := s.repo.Requests("index.yaml"); got != before+1 {
		t.Errorf("the delays do not start again: asked %d times more", got-before)
	}
}

func TestManyCallersMakeOneRequest(t *testing.T) {
	s := newEnv(t)
	s.repo.Break(charts.Stalled)
	var callers sync.WaitGroup
	for range 16 {
		callers.Go(func() {
			if r, err := s.resolve("nginx", "~0.0"); err != nil || r.Version != "0.0.2" {
				t.Errorf("resolved %+v, %v", r, err)
			}
		})
	}
	s.repo.Heal()
	callers.Wait()
	if got := s.repo.Requests(""); got != 1 {
		t.Errorf("%d requests", got)
	}
}

func TestACallerThatLeavesDoesNotFailOthers(t *testing.T) {
	s := newEnv(t)
	s.repo.Break(charts.Stalled)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := s.Resolve(ctx, "default", s.chart("nginx", ""))
	if got := read(t, err); !errors.Is(got.Is, chart.ErrUnreachable) || !got.Retry || !errors.Is(err, context.Canceled) {
		t.Errorf("the caller that leaves gets %+v", got)
	}
	stays := make(chan error)
	go func() {
		_, err := s.resolve("nginx", "")
		stays <- err
	}()
	s.repo.Heal()
	if err := <-stays; err != nil {
		t.Errorf("the caller that stays gets %v", err)
	}
	if got := s.repo.Requests(""); got != 1 {
		t.Errorf("%d requests", got)
	}
}

func TestStalledRepositoryIsGivenUp(t *testing.T) {
	s := newEnv(t, func(o *repository.Options) { o.FetchTimeout = time.Millisecond })
	s.repo.Break(charts.Stalled)
	_, err := s.resolve("nginx", "")
	want := failure{"ChartFetchFailure", "chart index URL/index.yaml cannot be fetched: no whole answer in time: context deadline exceeded",
		true, chart.ErrUnreachable}
	got := read(t, err)
	got.Message = strings.ReplaceAll(got.Message, s.repo.URL, "URL")
	if diff := cmp.Diff(want, got, same); diff != "" {
		t.Error(diff)
	}
}

func TestIdleRepositoriesAreForgotten(t *testing.T) {
	s := newEnv(t)
	s.version("nginx", "")
	other := charts.Serve(t)
	s.pass(time.Hour)
	if _, err := s.Resolve(t.Context(), "default", shipper.Chart{Name: "nginx", RepoURL: other.URL}); err != nil {
		t.Fatal(err)
	}
	s.repo.Break(charts.Unavailable)
	if _, err := s.resolve("nginx", ""); !errors.Is(err, chart.ErrUnreachable) {
		t.Errorf("the idle repository is still known: %v", err)
	}
}

func TestLeastUsedRepositoriesAreForgottenWhenThereAreTooMany(t *testing.T) {
	tests := map[string]func(*repository.Options){
		"in number": func(o *repository.Options) { o.MaxIndexes = 1 },
		"in memory": func(o *repository.Options) { o.MaxIndexMemory = 1 },
	}
	for name, limit := range tests {
		t.Run(name, func(t *testing.T) {
			s := newEnv(t, limit)
			s.version("nginx", "")
			s.pass(time.Second)
			other := charts.Serve(t)
			if _, err := s.Resolve(t.Context(), "default", shipper.Chart{Name: "nginx", RepoURL: other.URL}); err != nil {
				t.Fatal(err)
			}
			s.repo.Break(charts.Unavailable)
			if _, err := s.resolve("nginx", ""); !errors.Is(err, chart.ErrUnreachable) {
				t.Errorf("the first repository is still known: %v", err)
			}
		})
	}
}

func TestCredentialsAreSentAndNeverShown(t *testing.T) {
	s := newEnv(t)
	s.repo.Close()
	secret := strings.Replace(s.repo.URL, "http://", "http://me:secret@", 1) + "/?token=secret#secret"
	_, err := s.Resolve(t.Context(), "default", shipper.Chart{Name: "nginx", RepoURL: secret})
	got := read(t, err)
	if strings.Contains(got.Message, "secret") || strings.Contains(got.Message, "me:") || !strings.Contains(got.Message, "/index.yaml?…") {
		t.Error(got.Message)
	}
}

func TestCatalogEndsWithItsContext(t *testing.T) {
	s := newEnv(t)
	ctx, cancel := context.WithCancel(t.Context())
	catalog := repository.NewCatalog(ctx, repository.Options{Repositories: charts.Policy(t)})
	cancel()
	if _, err := catalog.Resolve(t.Context(), "default", s.chart("nginx", "")); !errors.Is(err, chart.ErrUnreachable) {
		t.Errorf("got %v", err)
	}
}
