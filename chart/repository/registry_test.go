// SPDX-License-Identifier: Apache-2.0

package repository_test

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart"
	"shipper.dev/shipper/chart/repository"
	"shipper.dev/shipper/outward"
	"shipper.dev/shipper/test/charts"
)

// What a real registry answers is in test/registry. Here are those that answer as none should.

const (
	helmConfig = "application/vnd.cncf.helm.config.v1+json"
	helmLayer  = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
)

// registryOf is a catalog's chart in a registry that answers by path, after /v2/x/nginx/; it has version 0.0.1.
func registryOf(t *testing.T, answers map[string]http.HandlerFunc) (*env, shipper.Chart) {
	t.Helper()
	s := newEnv(t)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path := strings.TrimPrefix(r.URL.Path, "/v2/x/nginx/")
		answer, ok := answers[path]
		switch {
		case ok:
			answer(w, r)
		case path == "tags/list":
			fmt.Fprint(w, `{"name":"x/nginx","tags":["latest","0.0.1","20300102","1.2"]}`)
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	t.Cleanup(server.Close)
	return s, shipper.Chart{Name: "nginx", Version: "0.0.1", RepoURL: "oci://" + server.Listener.Addr().String() + "/x"}
}

// manifest answers with the manifest of an archive.
func manifest(config, layer, digest string, size int64) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/vnd.oci.image.manifest.v1+json")
		fmt.Fprintf(w, `{"schemaVersion":2,"config":{"mediaType":%q,"digest":"sha256:%s","size":2},
			"layers":[{"mediaType":%q,"digest":"sha256:%s","size":%d}]}`, config, digest, layer, digest, size)
	}
}

func TestRegistriesThatAnswerAsNoneShould(t *testing.T) {
	digest := strings.Repeat("ab", 32)
	for name, tc := range map[string]struct {
		answers map[string]http.HandlerFunc
		want    failure
	}{
		"an image that is no chart": {
			map[string]http.HandlerFunc{"manifests/0.0.1": manifest("application/vnd.oci.image.config.v1+json", helmLayer, digest, 9)},
			failure{"BrokenChartSpec", "oci://HOST/x/nginx:0.0.1 is not a Helm chart", false, nil},
		},
		"a chart without an archive": {
			map[string]http.HandlerFunc{"manifests/0.0.1": manifest(helmConfig, "text/plain", digest, 9)},
			failure{"BrokenChartSpec", "oci://HOST/x/nginx:0.0.1 is a Helm chart without an archive", false, nil},
		},
		"an archive that is said to have a billion GiB": {
			map[string]http.HandlerFunc{"manifests/0.0.1": manifest(helmConfig, helmLayer, digest, 1<<60)},
			failure{"BrokenChartSpec", "oci://HOST/x/nginx:0.0.1 is larger than the 32 MiB that are accepted", false, nil},
		},
		"a manifest without end": {
			map[string]http.HandlerFunc{"manifests/0.0.1": func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/vnd.oci.image.manifest.v1+json")
				w.Header().Set("Docker-Content-Digest", "sha256:"+digest)
				w.Header().Set("Content-Length", fmt.Sprint(1<<40))
			}},
			failure{"BrokenChartSpec", "oci://HOST/x/nginx:0.0.1 is larger than the 1 MiB that are accepted", false, nil},
		},
		"a page of HTML": {
			map[string]http.HandlerFunc{"tags/list": func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") }},
			failure{"ChartFetchFailure", "oci://HOST/x/nginx does not answer as an OCI registry does", true, chart.ErrNotRepository},
		},
		"one that refuses all requests": {
			map[string]http.HandlerFunc{"tags/list": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }},
			failure{
				"ChartFetchFailure", "there is no chart repository at oci://HOST/x/nginx: the answer is 401 Unauthorized; " +
					"chart.credentials can name a Secret that opens it", true,
				chart.ErrNotRepository,
			},
		},
		"tags that are to be had of a metadata service": {
			map[string]http.HandlerFunc{"tags/list": func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Location", "http://169.254.169.254/latest")
				w.WriteHeader(http.StatusTemporaryRedirect)
			}},
			failure{"ChartFetchFailure", "list of tags of oci://HOST/x/nginx: leads to http://169.254.169.254/latest: charts may be fetched only " +
				"from http://127.0.0.1:*; use such a URL, or ask an administrator of Shipper to add this one (--chart-repositories)", true,
				chart.ErrNotAllowed},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, of := registryOf(t, tc.answers)
			_, err := s.Load(t.Context(), "default", of, "")
			got := read(t, err)
			got.Message = strings.ReplaceAll(got.Message, strings.Split(of.RepoURL, "/")[2], "HOST")
			if diff := cmp.Diff(tc.want, got, same); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestAnArchiveThatARegistryKeepsElsewhere(t *testing.T) {
	archive, err := charts.Get("nginx", "0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	var met http.Header
	elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		met = r.Header.Clone()
		_, _ = w.Write(archive.Bytes)
	}))
	t.Cleanup(elsewhere.Close)
	var challenged, given bool
	s, of := registryOf(t, map[string]http.HandlerFunc{
		"manifests/0.0.1": manifest(helmConfig, helmLayer, archive.Digest, int64(len(archive.Bytes))),
		"/token": func(w http.ResponseWriter, _ *http.Request) {
			given = true
			fmt.Fprint(w, `{"token":"for-one-client"}`)
		},
		"blobs/sha256:" + archive.Digest: func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Authorization") != "Bearer for-one-client" {
				challenged = true
				w.Header().Set("WWW-Authenticate", `Bearer realm="http://`+r.Host+`/token",service="x"`)
				w.WriteHeader(http.StatusUnauthorized)
				return
			}
			http.Redirect(w, r, elsewhere.URL, http.StatusTemporaryRedirect)
		},
	})
	loaded, err := s.Load(t.Context(), "default", of, archive.Digest)
	if err != nil {
		t.Fatal(err)
	}
	if sum := sha256.Sum256(loaded.Archive()); hex.EncodeToString(sum[:]) != archive.Digest {
		t.Error("another archive was loaded")
	}
	if !challenged || !given || met.Get("Authorization") != "" {
		t.Errorf("challenged: %t, token given: %t, sent on: %q", challenged, given, met.Get("Authorization"))
	}
}

// While a registry is down, its known tags are used, and versions go without a digest until they are fetched.
func TestARegistryThatIsDown(t *testing.T) {
	down := false
	unavailable := func(w http.ResponseWriter) { w.WriteHeader(http.StatusServiceUnavailable) }
	s, of := registryOf(t, map[string]http.HandlerFunc{
		"tags/list": func(w http.ResponseWriter, _ *http.Request) {
			if down {
				unavailable(w)
				return
			}
			fmt.Fprint(w, `{"tags":["0.0.1"]}`)
		},
		"manifests/0.0.1": func(w http.ResponseWriter, _ *http.Request) { unavailable(w) },
	})
	of.Version = "~0.0"
	if got, err := s.Resolve(t.Context(), "default", of); err != nil || got != (repository.Resolution{Version: "0.0.1"}) {
		t.Errorf("without a manifest: %+v, %v", got, err)
	}
	down = true
	s.pass(2 * time.Minute)
	stale := repository.Resolution{Version: "0.0.1", Stale: true, StaleSince: noon}
	if got, err := s.Resolve(t.Context(), "default", of); err != nil || got != stale {
		t.Errorf("without tags: %+v, %v", got, err)
	}
}

func TestPolicyHoldsForRegistries(t *testing.T) {
	policy, err := outward.ParsePolicy("https://registry.example.com/team, http://plain.example.com")
	if err != nil {
		t.Fatal(err)
	}
	s := newEnv(t, func(o *repository.Options) { o.Repositories = policy })
	for repoURL, allowed := range map[string]bool{
		"oci://registry.example.com/team":          true,
		"oci://registry.example.com/team/charts":   true,
		"oci://registry.example.com/others":        false,
		"oci://registry.example.com:5000/team":     false,
		"oci://plain.example.com":                  true,
		"oci://169.254.169.254/team":               false,
		"oci://registry.example.com/team/../other": false,
	} {
		if err := s.Allows(repoURL); (err == nil) != allowed {
			t.Errorf("%s: %v", repoURL, err)
		} else if err != nil && !errors.Is(err, chart.ErrNotAllowed) && !errors.Is(err, chart.ErrNotRepository) {
			t.Errorf("%s: %v", repoURL, err)
		}
	}
}
