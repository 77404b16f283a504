// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/admission/ask"
)

// repository is a chart repository: an index of versions of the chart nginx. Admission requests no archives.
type repository struct {
	*httptest.Server

	mu       sync.Mutex
	versions []string
	down     bool
}

func startRepository(t *testing.T, versions ...string) *repository {
	t.Helper()
	r := &repository{versions: versions}
	r.Server = httptest.NewServer(r)
	t.Cleanup(r.Close)
	return r
}

// ServeHTTP is http.Handler.
func (r *repository) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.down:
		http.Error(w, "down", http.StatusServiceUnavailable)
	case !strings.HasSuffix(request.URL.Path, "/index.yaml"):
		http.NotFound(w, request)
	default:
		fmt.Fprint(w, "apiVersion: v1\nentries:\n  nginx:\n")
		for i, v := range r.versions {
			fmt.Fprintf(w, "  - {name: nginx, version: %s, digest: %064x, urls: [nginx-%s.tgz]}\n", v, i+1, v)
		}
	}
}

// publish adds a version.
func (r *repository) publish(version string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.versions = append(r.versions, version)
}

// setDown makes the repository fail all requests, or not.
func (r *repository) setDown(down bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.down = down
}

func TestChartsAreNotFetchedFromEverywhere(t *testing.T) {
	t.Parallel()
	ns, dev := namespace(t), as(t, "dev")
	asked := 0
	inside := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked++ }))
	listener, err := net.Listen("tcp", "[::1]:0") // the tests' webhook may connect to 127.0.0.1 and no other address of this machine
	if err != nil {
		t.Skip("there is no IPv6 here: ", err)
	}
	inside.Listener = listener
	inside.Start()
	t.Cleanup(inside.Close)
	away := httptest.NewServer(http.RedirectHandler(inside.URL+"/secret?token=x", http.StatusFound))
	t.Cleanup(away.Close)
	const path = "spec.template.chart.repoUrl: Invalid value: "
	for sentence, tc := range map[string]struct{ url, want string }{
		"over http":                  {"http://charts.example.com", path + `"http://charts.example.com"`},
		"of the machine itself":      {strings.Replace(inside.URL, "http", "https", 1), "::1 is a loopback address"},
		"of a metadata service":      {"https://169.254.169.254", "169.254.169.254 is a link-local address"},
		"by a name that leads there": {"https://localhost.:1", "localhost is a name of the machine itself"},
		"that redirects to an internal one": {
			away.URL, path + `"` + away.URL + `": chart index ` + away.URL + "/index.yaml: redirected to " + inside.URL + "/secret?…: ",
		},
		"of another address that is its own": {"http://127.0.0.2:1", "charts may be fetched only from https://*:*, http://127.0.0.1:*"},
	} {
		for _, version := range []string{"~0.0", "0.0.1"} {
			t.Run(sentence+", "+version, func(t *testing.T) {
				app := ask.Application(ask.Version(version), func(a *shipper.Application) {
					a.Namespace, a.UID, a.Spec.Template.Chart.RepoURL = ns, "", tc.url
				})
				checkRefused(t, dev.Create(t.Context(), app), refused{422, tc.want})
			})
		}
	}
	if asked > 0 {
		t.Errorf("the internal address got %d requests", asked)
	}
}

func TestChartsThatCannotBeHad(t *testing.T) {
	t.Parallel()
	ns, dev := namespace(t), as(t, "dev")
	repo := startRepository(t, "0.0.1")
	other := application(ns, repo, func(a *shipper.Application) { a.Spec.Template.Chart.Name = "nosuch" })
	checkRefused(t, dev.Create(t.Context(), other), refused{422, "spec.template.chart.name: Invalid value: \"nosuch\""})

	down := startRepository(t)
	down.setDown(true)
	err := dev.Create(t.Context(), application(ns, down, ask.Version("~0")))
	checkRefused(t, err, refused{503, "try again in a minute"})
	if seconds, advised := apierrors.SuggestsClientDelay(err); advised {
		t.Errorf("the response has Retry-After %d: clients would retry ten times silently", seconds)
	}
}
