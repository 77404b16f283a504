// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/admission/ask"
)

// repository is a chart repository: an index of versions of the chart nginx. Archives are not asked for at admission.
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

// setDown makes the repository fail, or not.
func (r *repository) setDown(down bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.down = down
}

func TestChartsThatCannotBeHad(t *testing.T) {
	ns, dev := namespace(t), as(t, "dev")
	repo := startRepository(t, "0.0.1")
	other := application(ns, repo, func(a *shipper.Application) { a.Spec.Template.Chart.Name = "nosuch" })
	checkRefused(t, dev.Create(t.Context(), other), refused{422, "spec.template.chart.name: Invalid value: \"nosuch\""})

	down := startRepository(t)
	down.setDown(true)
	err := dev.Create(t.Context(), application(ns, down, ask.Version("~0")))
	checkRefused(t, err, refused{503, "try again in a minute"})
	if seconds, advised := apierrors.SuggestsClientDelay(err); advised {
		t.Errorf("clients are told to try again in %d s, which they do ten times and without a word", seconds)
	}
}
