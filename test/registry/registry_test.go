// SPDX-License-Identifier: Apache-2.0

// Package registry proves that charts come out of a real OCI registry as Helm puts them in.
package registry

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/distribution/distribution/v3/configuration"
	"github.com/distribution/distribution/v3/registry/handlers"
	_ "github.com/distribution/distribution/v3/registry/storage/driver/inmemory"
	"github.com/google/go-cmp/cmp"
	helmregistry "helm.sh/helm/v3/pkg/registry"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart"
	"shipper.dev/shipper/chart/repository"
	"shipper.dev/shipper/chart/verify"
	"shipper.dev/shipper/test/charts"
)

// noon is when tests begin.
var noon = time.Date(2030, time.January, 2, 12, 0, 0, 0, time.UTC)

// registry is a real one, on a port of its own.
type registry struct {
	host string
	*repository.Catalog

	clock    *clocktesting.FakePassiveClock
	mu       sync.Mutex
	requests []string
	// closed lets only ann in, by her password.
	closed bool
	// keys are those of the Secret keys.
	keys []byte
}

func serve(t *testing.T) *registry {
	t.Helper()
	config := &configuration.Configuration{}
	config.Storage = configuration.Storage{"inmemory": {}}
	config.Log.Level, config.Log.AccessLog.Disabled = "error", true
	app := handlers.NewApp(context.WithoutCancel(t.Context()), config)
	r := &registry{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		r.mu.Lock()
		r.requests = append(r.requests, req.Method+" "+req.URL.Path)
		closed := r.closed
		r.mu.Unlock()
		if name, password, _ := req.BasicAuth(); closed && (name != "ann" || password != "s3cret") {
			w.Header().Set("WWW-Authenticate", `Basic realm="charts"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		app.ServeHTTP(w, req)
	}))
	t.Cleanup(server.Close)
	r.host, r.clock = server.Listener.Addr().String(), clocktesting.NewFakePassiveClock(noon)
	r.restart(t)
	return r
}

// asked counts requests by what is in them.
func (r *registry) asked(what string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 0
	for _, one := range r.requests {
		if strings.Contains(one, what) {
			n++
		}
	}
	return n
}

// restart puts a new catalog in the place of the old one.
func (r *registry) restart(t *testing.T) {
	r.Catalog = repository.NewCatalog(t.Context(), repository.Options{
		Repositories: charts.Policy(t), Clock: r.clock, Patience: time.Minute, FetchTimeout: time.Minute,
		Secrets: func(_ context.Context, namespace, name string) (*corev1.Secret, error) {
			if name == "keys" {
				return &corev1.Secret{Data: map[string][]byte{"pubring.gpg": r.keys}}, nil
			}
			return &corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{
					Labels:      map[string]string{shipper.RepositoryCredentialsLabel: "true"},
					Annotations: map[string]string{shipper.RepositoryURLAnnotation: "oci://" + r.host},
				},
				Data: map[string][]byte{"username": []byte("ann"), "password": []byte(namespace + name)},
			}, nil
		},
	})
}

// push has Helm push a chart of a version, and returns its archive's digest.
func (r *registry) push(t *testing.T, version, payload string) string {
	t.Helper()
	archive := web(t, version, payload)
	r.pushWith(t, archive)
	return archive.Digest
}

func web(t *testing.T, version, payload string) charts.Archive {
	t.Helper()
	archive, err := charts.PackFiles("web", version, map[string]string{
		"Chart.yaml":          "apiVersion: v2\nname: web\nversion: " + version + "\n",
		"templates/NOTES.txt": payload,
	})
	if err != nil {
		t.Fatal(err)
	}
	return archive
}

// pushWith has Helm push an archive, with a .prov file if there is one.
func (r *registry) pushWith(t *testing.T, archive charts.Archive, options ...helmregistry.PushOption) {
	t.Helper()
	client, err := helmregistry.NewClient(helmregistry.ClientOptPlainHTTP(), helmregistry.ClientOptCredentialsFile(t.TempDir()+"/none"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Push(archive.Bytes, r.host+"/team/charts/web:"+archive.Version, options...); err != nil {
		t.Fatal(err)
	}
}

// web is the chart that is pushed.
func (r *registry) web(version string) shipper.Chart {
	return shipper.Chart{Name: "web", Version: version, RepoURL: "oci://" + r.host + "/team/charts"}
}

func (r *registry) later(d time.Duration) { r.clock.SetTime(r.clock.Now().Add(d)) }

func TestTagsAreVersionsAndArchivesAreWhatWasPushed(t *testing.T) {
	r := serve(t)
	digests := map[string]string{}
	for _, version := range []string{"1.0.0", "1.1.0", "1.1.0+linux.2", "2.0.0-rc.1"} {
		digests[version] = r.push(t, version, version)
	}
	for constraint, want := range map[string]string{
		"": "1.1.0+linux.2", "~1.0": "1.0.0", "1.1.0": "1.1.0", "1.1.0+linux.2": "1.1.0+linux.2", ">=2.0.0-0": "2.0.0-rc.1",
	} {
		got, err := r.Resolve(t.Context(), "default", r.web(constraint))
		if diff := cmp.Diff(repository.Resolution{Version: want, Digest: digests[want]}, got); diff != "" || err != nil {
			t.Errorf("%q: %v (-want +got)\n%s", constraint, err, diff)
		}
		loaded, err := r.Load(t.Context(), "default", r.web(got.Version), got.Digest)
		if err != nil {
			t.Errorf("%q: %v", constraint, err)
		} else if loaded.Version() != want || loaded.Digest() != digests[want] {
			t.Errorf("%q was loaded as %s with %s", constraint, loaded.Version(), loaded.Digest())
		}
	}
}

func TestWhatIsKnownOfTagsIsAnsweredFromMemory(t *testing.T) {
	r := serve(t)
	first := r.push(t, "1.0.0", "")
	resolve := func() repository.Resolution {
		t.Helper()
		got, err := r.Resolve(t.Context(), "default", r.web("^1"))
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	resolve()
	before := r.asked("")
	resolve()
	if n := r.asked("") - before; n != 0 {
		t.Errorf("the registry was asked %d times for what is known", n)
	}
	second := r.push(t, "1.0.1", "")
	if diff := cmp.Diff(repository.Resolution{Version: "1.0.0", Digest: first}, resolve()); diff != "" {
		t.Errorf("within ten seconds (-want +got)\n%s", diff)
	}
	r.later(2 * time.Minute)
	if diff := cmp.Diff(repository.Resolution{Version: "1.0.1", Digest: second}, resolve()); diff != "" {
		t.Errorf("two minutes later (-want +got)\n%s", diff)
	}
}

func TestAVersionPushedAnewIsRefusedByItsDigest(t *testing.T) {
	r := serve(t)
	was := r.push(t, "1.0.0", "as it was")
	is := r.push(t, "1.0.0", "as it is")
	_, err := r.Load(t.Context(), "default", r.web("1.0.0"), was)
	want := "oci://" + r.host + "/team/charts/web:1.0.0 has the sha256 " + is + ", but " + was + " is expected"
	if !errors.Is(err, chart.ErrDigest) || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	loaded, err := r.Load(t.Context(), "default", r.web("1.0.0"), "")
	if err != nil || loaded.Digest() != is {
		t.Errorf("without a digest: %v", err)
	}
}

func TestWhatIsNotThereIsSaidLikeOfOtherRepositories(t *testing.T) {
	r := serve(t)
	r.push(t, "1.0.0", "")
	where := "oci://" + r.host
	for name, tc := range map[string]struct {
		want  shipper.Chart
		cause error
		text  string
	}{
		"no such version": {r.web("^2"), chart.ErrNoMatch,
			`chart "web" of repository ` + where + `/team/charts/web has no version that satisfies "^2"; the nearest are 1.0.0`},
		"no such chart": {shipper.Chart{Name: "other", RepoURL: where + "/team/charts"}, chart.ErrNoChart,
			`repository ` + where + `/team/charts/other has no chart "other"`},
		"a name that no registry has": {shipper.Chart{Name: "Web", RepoURL: where + "/team/charts"}, chart.ErrNoChart,
			`chart "Web" cannot be in an OCI registry: names there are of small letters, digits, and . _ - between them`},
		"a tag in the URL": {shipper.Chart{Name: "web", RepoURL: where + "/team/charts:1.0.0"}, chart.ErrNotRepository,
			`repoUrl ` + where + `/team/charts:1.0.0 must be oci://host/path, as ` + "`helm push`" +
				` takes it: with neither credentials, query, tag nor capital letters`},
	} {
		_, err := r.Resolve(t.Context(), "default", tc.want)
		if !errors.Is(err, tc.cause) || err.Error() != tc.text {
			t.Errorf("%s: got\n%v, want\n%s", name, err, tc.text)
		}
	}
}

func TestARegistryThatLetsInOnlyWhoHasCredentials(t *testing.T) {
	r := serve(t)
	digest := r.push(t, "1.0.0", "")
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	of := r.web("^1")
	_, err := r.Resolve(t.Context(), "s3", of)
	want := "there is no chart repository at oci://" + r.host + "/team/charts/web: the answer is 401 Unauthorized; " +
		"chart.credentials can name a Secret that opens it"
	if err == nil || err.Error() != want {
		t.Errorf("without: got %v, want %s", err, want)
	}
	of.Credentials.SecretName = "cret" // the password is made of the names here
	got, err := r.Resolve(t.Context(), "s3", of)
	if diff := cmp.Diff(repository.Resolution{Version: "1.0.0", Digest: digest}, got); diff != "" || err != nil {
		t.Errorf("with: %v (-want +got)\n%s", err, diff)
	}
	of.Version = "1.0.0"
	if loaded, err := r.Load(t.Context(), "s3", of, digest); err != nil || loaded.Digest() != digest {
		t.Errorf("loading: %v", err)
	}
	if _, err := r.Load(t.Context(), "other", of, digest); err == nil {
		t.Error("it was loaded for another namespace")
	}
}

func TestTheProvenanceIsALayerBesideTheArchive(t *testing.T) {
	r := serve(t)
	ann, bob := charts.NewSigner(t, "ann", nil), charts.NewSigner(t, "bob", nil)
	r.keys = ann.Public()
	archive := web(t, "1.0.0", "")
	of := r.web("1.0.0")
	of.Verify.SecretName = "keys"
	where := "oci://" + r.host + "/team/charts/web:1.0.0"
	for _, step := range []struct {
		sentence string
		prov     []byte
		want     string
	}{
		{"missing", nil, where + " has no layer of the type " + helmregistry.ProvLayerMediaType +
			"; a chart that is signed (`helm package --sign`) has its .prov file published with it"},
		{"bad", bob.Sign(archive), `chart "web" 1.0.0 has no valid signature: ` + where + " is signed by the key " +
			bob.Fingerprint()[24:] + ", which is not among the keys (the keys are those of Secret default/keys)"},
		{"huge", make([]byte, verify.MaxProvenanceBytes+1), "the provenance of " + where + " is larger than the 65536 bytes that are accepted" +
			"; a chart that is signed (`helm package --sign`) has its .prov file published with it"},
		{"good", ann.Sign(archive), ""},
	} {
		var options []helmregistry.PushOption
		if step.prov != nil {
			options = append(options, helmregistry.PushOptProvData(step.prov))
		}
		r.pushWith(t, archive, options...)
		r.later(2 * time.Minute)
		got, err := r.Verify(t.Context(), "default", of, archive.Digest)
		switch {
		case step.want == "" && (err != nil || got.Fingerprint != ann.Fingerprint()):
			t.Errorf("%s: got %v, %v", step.sentence, got, err)
		case step.want != "" && (!errors.Is(err, chart.ErrProvenance) || err.Error() != step.want):
			t.Errorf("%s: got\n%v, want\n%s", step.sentence, err, step.want)
		}
	}
}
