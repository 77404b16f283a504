// SPDX-License-Identifier: Apache-2.0

package repository_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart"
	"shipper.dev/shipper/chart/repository"
	"shipper.dev/shipper/outward"
	"shipper.dev/shipper/test/charts"
)

func archive(t *testing.T, name, version string) charts.Archive {
	t.Helper()
	a, err := charts.Get(name, version)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// load loads a version and returns its digest.
func (s *env) load(name, version, digest string) (string, error) {
	s.t.Helper()
	loaded, err := s.Load(s.t.Context(), "default", s.chart(name, version), digest)
	if err != nil {
		return "", err
	}
	return loaded.Digest(), nil
}

func TestLoad(t *testing.T) {
	s := newEnv(t)
	want := archive(t, "nginx", "0.0.1")
	for _, digest := range []string{want.Digest, "", "sha256:" + strings.ToUpper(want.Digest), want.Digest} {
		loaded, err := s.Load(t.Context(), "default", s.chart("nginx", "0.0.1"), digest)
		if err != nil {
			t.Fatal(err)
		}
		got := []string{loaded.Name(), loaded.Version(), loaded.Digest()}
		if diff := cmp.Diff([]string{"nginx", "0.0.1", want.Digest}, got); diff != "" {
			t.Error(diff)
		}
	}
	if got := s.repo.Requests(".tgz"); got != 2 {
		t.Errorf("the archive was fetched %d times, want once with a digest and once without", got)
	}
}

func TestLoadFindsAnAdmittedVersion(t *testing.T) {
	s := newEnv(t)
	for _, version := range []string{"v0.0.1", "0.0.1"} {
		if _, err := s.load("nginx", version, ""); err != nil {
			t.Error(err)
		}
	}
}

func TestLoadRefuses(t *testing.T) {
	nginx, other := archive(t, "nginx", "0.0.1"), archive(t, "nginx", "0.0.2")
	const none = "0000000000000000000000000000000000000000000000000000000000000000"
	tests := map[string]struct {
		spoil                 func(*charts.Repository)
		name, version, digest string
		want                  failure
	}{
		"the version does not exist": {
			name: "nginx", version: "0.0.9",
			want: failure{"BrokenChartSpec", `chart "nginx" of repository URL has no version that satisfies "0.0.9"; ` +
				`the nearest are 0.0.2, 0.0.1`, true, chart.ErrNoMatch},
		},
		"a constraint is no version": {
			name: "nginx", version: "~0.0",
			want: failure{"BrokenChartSpec", `chart "nginx" of repository URL has no version that satisfies "~0.0"; ` +
				`the nearest are 0.0.2, 0.0.1`, true, chart.ErrNoMatch},
		},
		"the repository is gone": {
			spoil: func(r *charts.Repository) { r.Break(charts.Gone) }, name: "nginx", version: "0.0.1",
			want: failure{"ChartFetchFailure", "there is no chart repository at URL/index.yaml: the answer is 410 Gone", true,
				chart.ErrNotRepository},
		},
		"the archive is gone": {
			spoil: func(r *charts.Repository) { r.Break(charts.NoArchives) }, name: "nginx", version: "0.0.1",
			want: failure{"ChartFetchFailure", `chart "nginx" 0.0.1 of repository URL: download URL/nginx-0.0.1.tgz: the answer is 404 Not Found`,
				true, nil},
		},
		"the archive is not the one that was pinned": {
			name: "nginx", version: "0.0.1", digest: none,
			want: failure{"BrokenChartSpec", `chart "nginx" 0.0.1 of repository URL: URL/nginx-0.0.1.tgz has the sha256 ` + nginx.Digest +
				`, but ` + none + ` is expected`, true, chart.ErrDigest},
		},
		"the digest pinned is none": {
			name: "nginx", version: "0.0.1", digest: "../../etc/passwd",
			want: failure{"BrokenChartSpec", `"../../etc/passwd" is not the sha256 of a chart's archive`, false, chart.ErrDigest},
		},
		"the archive is not gzip": {
			name: "not-gzip", version: "0.0.1",
			want: failure{"BrokenChartSpec", `chart "not-gzip" 0.0.1 of repository URL: the chart's archive cannot be used: it is not a gzip file`,
				false, nil},
		},
		"the archive holds another chart": {
			spoil: func(r *charts.Repository) { r.Publish(charts.NewArchive("php", "0.0.1", nginx.Bytes)) }, name: "php", version: "0.0.1",
			want: failure{"BrokenChartSpec", `the archive of chart "php" 0.0.1 holds chart "nginx"`, false, nil},
		},
		"the archive holds another version": {
			spoil: func(r *charts.Repository) { r.Publish(charts.NewArchive("nginx", "7.0.0", other.Bytes)) }, name: "nginx", version: "7.0.0",
			want: failure{"BrokenChartSpec", `the archive of chart "nginx" 7.0.0 holds version 0.0.2`, false, nil},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := newEnv(t)
			if test.spoil != nil {
				test.spoil(s.repo)
			}
			_, err := s.load(test.name, test.version, test.digest)
			got := read(t, err)
			got.Message = strings.ReplaceAll(got.Message, s.repo.URL, "URL")
			if diff := cmp.Diff(test.want, got, same); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestCorruptArchiveIsNotUsedNorAskedForAgainAtOnce(t *testing.T) {
	s := newEnv(t)
	s.repo.Break(charts.CorruptArchives)
	for range 3 {
		_, err := s.load("nginx", "0.0.1", "")
		if got := read(t, err); !errors.Is(got.Is, chart.ErrDigest) || !got.Retry {
			t.Fatalf("got %+v", got)
		}
	}
	if got := s.repo.Requests(".tgz"); got != 1 {
		t.Errorf("the archive was fetched %d times", got)
	}
	s.repo.Heal()
	s.pass(2 * time.Second)
	if _, err := s.load("nginx", "0.0.1", ""); err != nil {
		t.Error(err)
	}
}

// TestFailureOfOneCallerIsNotThatOfAnother: two callers share a digest, and one of them names a version that is none.
func TestFailureOfOneCallerIsNotThatOfAnother(t *testing.T) {
	s := newEnv(t)
	digest := archive(t, "nginx", "0.0.1").Digest
	if _, err := s.load("nginx", "0.0.9", digest); !errors.Is(err, chart.ErrNoMatch) {
		t.Fatal(err)
	}
	if _, err := s.load("nginx", "0.0.1", digest); err != nil {
		t.Error(err)
	}
	if _, err := s.load("php", "0.0.1", digest); err == nil {
		t.Error("a chart in memory is given for another name")
	}
}

func TestLoadOfManyCallersMakesOneRequest(t *testing.T) {
	s := newEnv(t)
	s.repo.Break(charts.Stalled)
	var callers sync.WaitGroup
	for range 16 {
		callers.Go(func() {
			if _, err := s.load("nginx", "0.0.1", ""); err != nil {
				t.Error(err)
			}
		})
	}
	s.repo.Heal()
	callers.Wait()
	if diff := cmp.Diff([]int{1, 1}, []int{s.repo.Requests("index.yaml"), s.repo.Requests(".tgz")}); diff != "" {
		t.Error(diff)
	}
}

func TestLoadEndsWithTheCaller(t *testing.T) {
	s := newEnv(t)
	s.repo.Break(charts.Stalled)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := s.Load(ctx, "default", s.chart("nginx", "0.0.1"), "")
	if got := read(t, err); !got.Retry || got.Reason != "ChartFetchFailure" {
		t.Errorf("got %+v", got)
	}
}

func TestArchivesOutliveTheRepositoryAndTheProcess(t *testing.T) {
	dir := t.TempDir()
	disk := func(o *repository.Options) { o.CacheDir = dir }
	s := newEnv(t, disk)
	digest := archive(t, "nginx", "0.0.1").Digest
	if _, err := s.load("nginx", "0.0.1", digest); err != nil {
		t.Fatal(err)
	}
	if _, err := s.load("nginx", "0.0.2", ""); err != nil {
		t.Fatal(err)
	}
	s.repo.Break(charts.Gone)
	for _, what := range []string{"repository gone", "process restarted"} {
		if got, err := s.load("nginx", "0.0.1", digest); err != nil || got != digest {
			t.Errorf("%s: by digest: %s, %v", what, got, err)
		}
		if _, err := s.load("nginx", "0.0.2", ""); err != nil {
			t.Errorf("%s: without digest: %v", what, err)
		}
		s.restart(disk)
	}
	if _, err := s.load("nginx", "0.0.1", ""); !errors.Is(err, chart.ErrNotRepository) {
		t.Errorf("what was never asked for is found: %v", err)
	}
}

func TestRottenFilesAreFetchedAgain(t *testing.T) {
	dir := t.TempDir()
	disk := func(o *repository.Options) { o.CacheDir = dir }
	s := newEnv(t, disk)
	digest := archive(t, "nginx", "0.0.1").Digest
	for _, d := range []string{digest, ""} {
		if _, err := s.load("nginx", "0.0.1", d); err != nil {
			t.Fatal(err)
		}
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.tgz"))
	if err != nil || len(files) != 2 {
		t.Fatalf("on disk are %v, %v", files, err)
	}
	for _, file := range files {
		if err := os.WriteFile(file, []byte("rotten"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s.restart(disk)
	for _, d := range []string{digest, ""} {
		if got, err := s.load("nginx", "0.0.1", d); err != nil || got != digest {
			t.Errorf("with digest %q: %s, %v", d, got, err)
		}
	}
	if got := s.repo.Requests(".tgz"); got != 4 {
		t.Errorf("archives were fetched %d times", got)
	}
}

func TestExchangedFilesAreFetchedAgain(t *testing.T) {
	dir := t.TempDir()
	disk := func(o *repository.Options) { o.CacheDir = dir }
	s := newEnv(t, disk)
	digest := archive(t, "nginx", "0.0.1").Digest
	other, err := charts.PackFiles("nginx", "0.0.1", map[string]string{"Chart.yaml": "name: nginx\nversion: 0.0.1\n"})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "sha256-"+digest+".tgz"), other.Bytes, 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := s.load("nginx", "0.0.1", digest); err != nil || got != digest {
		t.Errorf("loaded %s, %v", got, err)
	}
}

func TestDiskIsBounded(t *testing.T) {
	dir := t.TempDir()
	first, second := archive(t, "nginx", "0.0.1"), archive(t, "nginx", "0.0.2")
	disk := func(o *repository.Options) { o.CacheDir, o.MaxDiskBytes = dir, int64(len(second.Bytes)+100) }
	s := newEnv(t, disk)
	names := func() (names []string) {
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			names = append(names, e.Name())
		}
		return names
	}
	if _, err := s.load("nginx", "0.0.1", first.Digest); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"sha256-" + first.Digest + ".tgz"}, names()); diff != "" {
		t.Error(diff)
	}
	if _, err := s.load("nginx", "0.0.2", second.Digest); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"sha256-" + second.Digest + ".tgz"}, names()); diff != "" {
		t.Error(diff)
	}
	// A file left by a process that ended while it wrote, and one of another just now.
	for name, age := range map[string]time.Duration{".partial-old": 2 * time.Hour, ".partial-new": time.Minute} {
		file := filepath.Join(dir, name)
		when := s.clock.Now().Add(-age)
		if err := errors.Join(os.WriteFile(file, nil, 0o600), os.Chtimes(file, when, when)); err != nil {
			t.Fatal(err)
		}
	}
	s.restart(func(o *repository.Options) { o.CacheDir, o.MaxDiskBytes = dir, 10 })
	if diff := cmp.Diff([]string{".partial-new"}, names()); diff != "" {
		t.Error(diff)
	}
}

func TestDiskThatCannotBeUsed(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s := newEnv(t, func(o *repository.Options) { o.CacheDir = filepath.Join(file, "cache") })
	if _, err := s.load("nginx", "0.0.1", ""); err != nil {
		t.Errorf("without a folder: %v", err)
	}
	dir := filepath.Join(t.TempDir(), "cache")
	s.restart(func(o *repository.Options) { o.CacheDir = dir })
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if _, err := s.load("nginx", "0.0.1", ""); err != nil {
		t.Errorf("with the folder gone: %v", err)
	}
}

func TestMemoryIsBounded(t *testing.T) {
	s := newEnv(t, func(o *repository.Options) { o.MaxChartMemory = 1 })
	for range 2 {
		if _, err := s.load("nginx", "0.0.1", ""); err != nil {
			t.Fatal(err)
		}
	}
	if got := s.repo.Requests(".tgz"); got != 2 {
		t.Errorf("the archive was fetched %d times", got)
	}
}

// TestURLs serves an index whose archives are in many places.
func TestURLs(t *testing.T) {
	nginx := archive(t, "nginx", "0.0.1")
	var elsewhere string
	seen := map[string]string{}
	serve := func(w http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		seen[r.URL.Path] = user + ":" + password + "?" + r.URL.RawQuery
		switch {
		case strings.HasSuffix(r.URL.Path, "/index.yaml"):
			urls := map[string][]string{
				"/relative/index.yaml": {"nginx.tgz"}, "/rooted/index.yaml": {"/files/nginx.tgz"}, "/none/index.yaml": {},
				"/second/index.yaml": {"oci://x/y", "::", "broken.tgz", elsewhere + "/other/nginx.tgz?x=y"},
				"/wrong/index.yaml":  {"missing.tgz", "broken.tgz"},
				"/loop/index.yaml":   {"loop.tgz"}, "/large/index.yaml": {"large.tgz"},
				"/esc%61ped/index.yaml": {"nginx.tgz"},
			}
			body := "apiVersion: v1\nentries: {nginx: [{version: 0.0.1, digest: " + nginx.Digest + ", urls: ["
			for _, u := range urls[r.URL.EscapedPath()] {
				body += "'" + u + "',"
			}
			_, _ = w.Write([]byte(body + "]}]}"))
		case strings.HasSuffix(r.URL.Path, "/nginx.tgz"):
			_, _ = w.Write(nginx.Bytes)
		case strings.HasSuffix(r.URL.Path, "/broken.tgz"):
			_, _ = w.Write([]byte("broken"))
		case strings.HasSuffix(r.URL.Path, "/large.tgz"):
			_, _ = w.Write(make([]byte, 33<<20))
		case strings.HasSuffix(r.URL.Path, "/loop.tgz"):
			http.Redirect(w, r, r.URL.Path, http.StatusFound)
		default:
			http.NotFound(w, r)
		}
	}
	server, other := httptest.NewServer(http.HandlerFunc(serve)), httptest.NewServer(http.HandlerFunc(serve))
	t.Cleanup(server.Close)
	t.Cleanup(other.Close)
	elsewhere = other.URL
	withUser := strings.Replace(server.URL, "http://", "http://me:secret@", 1)
	const sum = "f526795c95399cea27c055c842c3d6ab018ed0fa4f66f701c28ab22dec28237b"
	tests := map[string]struct {
		repo, failure string
		reason        string
		seen          map[string]string
	}{
		"a relative URL goes with the credentials and the query": {
			repo: withUser + "/relative/?token=x",
			seen: map[string]string{"/relative/index.yaml": "me:secret?token=x", "/relative/nginx.tgz": "me:secret?token=x"},
		},
		"a rooted URL goes with the credentials": {
			repo: withUser + "/rooted",
			seen: map[string]string{"/rooted/index.yaml": "me:secret?", "/files/nginx.tgz": "me:secret?"},
		},
		"an escaped path stays escaped": {
			repo: server.URL + "/esc%61ped",
			seen: map[string]string{"/escaped/index.yaml": ":?", "/escaped/nginx.tgz": ":?"},
		},
		"the second URL is taken when the first fails, without credentials to another server": {
			repo: withUser + "/second",
			seen: map[string]string{"/second/index.yaml": "me:secret?", "/second/broken.tgz": "me:secret?", "/other/nginx.tgz": ":?x=y"},
		},
		"all URLs fail": {
			repo: server.URL + "/wrong", reason: "ChartFetchFailure",
			failure: `chart "nginx" 0.0.1 of repository REPO: download REPO/missing.tgz: the answer is 404 Not Found; ` +
				`REPO/broken.tgz has the sha256 SUM, but ` + nginx.Digest + ` is expected`,
		},
		"no URL": {
			repo: server.URL + "/none", reason: "BrokenChartSpec",
			failure: `chart "nginx" 0.0.1 of repository REPO: the index gives no URL for it`,
		},
		"a redirect without end": {
			repo: server.URL + "/loop", reason: "ChartFetchFailure",
			failure: `chart "nginx" 0.0.1 of repository REPO: download REPO/loop.tgz: redirected more than 5 times`,
		},
		"a large archive": {
			repo: server.URL + "/large", reason: "BrokenChartSpec",
			failure: `chart "nginx" 0.0.1 of repository REPO: REPO/large.tgz is larger than the 32 MiB that are accepted`,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			clear(seen)
			catalog := repository.NewCatalog(t.Context(), repository.Options{Repositories: charts.Policy(t), FetchTimeout: time.Hour})
			_, err := catalog.Load(t.Context(), "default", shipper.Chart{Name: "nginx", Version: "0.0.1", RepoURL: test.repo}, "")
			if test.failure == "" {
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(test.seen, seen); diff != "" {
					t.Error(diff)
				}
				return
			}
			got := read(t, err)
			got.Message = strings.ReplaceAll(strings.ReplaceAll(got.Message, test.repo, "REPO"), sum, "SUM")
			if got.Message != test.failure || got.Reason != test.reason {
				t.Errorf("got %s: %s\nwant %s: %s", got.Reason, got.Message, test.reason, test.failure)
			}
		})
	}
}

func TestLoadKept(t *testing.T) {
	want := archive(t, "nginx", "0.0.1")
	down := errors.New("down")
	broken := charts.NewArchive("nginx", "0.0.1", []byte("no archive"))
	for name, tc := range map[string]struct {
		digest        string
		kept          []byte
		fails, err    error
		asked, looked int
	}{
		"a kept archive is used without a request to the repository": {digest: want.Digest, kept: want.Bytes, looked: 1},
		"an archive that is not kept is fetched":                     {digest: want.Digest, fails: chart.ErrNotKept, asked: 1, looked: 1},
		"an archive that is kept with wrong bytes is fetched":        {digest: want.Digest, kept: []byte("wrong"), asked: 1, looked: 1},
		"a failed read is an error":                                  {digest: want.Digest, fails: down, err: down, looked: 1},
		"a kept archive that is not a chart is reported":             {digest: broken.Digest, kept: broken.Bytes, err: errAny, looked: 1},
		"without a digest nothing is looked for":                     {asked: 1},
	} {
		t.Run(name, func(t *testing.T) {
			s, calls := newEnv(t), 0
			loaded, err := s.LoadKept(t.Context(), "default", s.chart("nginx", "0.0.1"), tc.digest, func(context.Context) ([]byte, error) {
				calls++
				return tc.kept, tc.fails
			})
			switch {
			case tc.err == nil && (err != nil || loaded.Digest() != want.Digest):
				t.Errorf("not loaded: %v", err)
			case tc.err != nil && (err == nil || !errors.Is(tc.err, errAny) && !errors.Is(err, tc.err)):
				t.Errorf("the error is %v, want %v", err, tc.err)
			}
			if got := s.repo.Requests(".tgz"); got != tc.asked || calls != tc.looked {
				t.Errorf("the repository was asked %d times and what is kept %d times, want %d and %d", got, calls, tc.asked, tc.looked)
			}
			if tc.err == nil { // it is in memory now
				if _, err := s.LoadKept(t.Context(), "default", s.chart("nginx", "0.0.1"), tc.digest, nil); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// TestKeptArchivesOfARepositoryThatIsNoLongerAllowed is rendered on, and nothing else of it.
func TestKeptArchivesOfARepositoryThatIsNoLongerAllowed(t *testing.T) {
	s, want := newEnv(t, func(o *repository.Options) { o.Repositories = outward.Policy{} }), archive(t, "nginx", "0.0.1")
	for sentence, tc := range map[string]struct {
		kept func(context.Context) ([]byte, error)
		err  error
	}{
		"kept":     {kept: func(context.Context) ([]byte, error) { return want.Bytes, nil }},
		"not kept": {kept: func(context.Context) ([]byte, error) { return nil, chart.ErrNotKept }, err: chart.ErrNotAllowed},
	} {
		t.Run(sentence, func(t *testing.T) {
			digest := want.Digest
			if tc.err != nil {
				digest = archive(t, "nginx", "0.0.2").Digest
			}
			if _, err := s.LoadKept(t.Context(), "default", s.chart("nginx", "0.0.1"), digest, tc.kept); !errors.Is(err, tc.err) {
				t.Errorf("the error is %v, want %v", err, tc.err)
			}
		})
	}
	if n := s.repo.Requests(""); n > 0 {
		t.Errorf("it was asked %d times", n)
	}
}

// errAny stands for any error.
var errAny = errors.New("any")
