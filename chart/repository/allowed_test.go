// SPDX-License-Identifier: Apache-2.0

package repository_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart"
	"shipper.dev/shipper/chart/repository"
	"shipper.dev/shipper/outward"
)

func TestRepositoriesThatAreNotAllowedAreNotAsked(t *testing.T) {
	s := newEnv(t, func(o *repository.Options) { o.Repositories = outward.Policy{} })
	const why = ": charts may be fetched only from https://*:*; use such a URL, " +
		"or ask an administrator of Shipper to add this one (--chart-repositories)"
	want := failure{"BrokenChartSpec", "repository URL" + why, false, chart.ErrNotAllowed}
	_, resolving := s.resolve("nginx", "~0.0")
	_, loading := s.load("nginx", "0.0.1", "")
	for what, err := range map[string]error{
		"resolving": resolving, "loading": loading, "asking": s.Allows(s.repo.URL),
		"refreshing": s.Refresh(t.Context(), "default", shipper.Chart{RepoURL: s.repo.URL}),
	} {
		got := read(t, err)
		got.Message = strings.ReplaceAll(got.Message, s.repo.URL, "URL")
		if diff := cmp.Diff(want, got, same); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
	if n := s.repo.Requests(""); n > 0 {
		t.Errorf("it was asked %d times", n)
	}
	if err := s.Allows("https://charts.example.com"); err != nil {
		t.Errorf("another: %v", err)
	}
	if err := s.Allows("nothing"); !errors.Is(err, chart.ErrNotRepository) {
		t.Errorf("what is no URL: %v", err)
	}
}

// Wherever an index or a redirect leads, the policy holds.
func TestThePolicyIsNotLedAround(t *testing.T) {
	var asked []string
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { asked = append(asked, r.URL.Path) }))
	t.Cleanup(elsewhere.Close)
	repo := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/away/index.yaml":
			http.Redirect(w, r, elsewhere.URL+"/secret?token=x", http.StatusFound)
		case "/near/index.yaml":
			_, _ = w.Write([]byte("entries: {nginx: [{version: 0.0.1, urls: ['" + elsewhere.URL + "/nginx.tgz']}]}"))
		case "/back/index.yaml":
			_, _ = w.Write([]byte("entries: {nginx: [{version: 0.0.1, urls: ['away.tgz']}]}"))
		default:
			http.Redirect(w, r, elsewhere.URL+"/away.tgz", http.StatusFound)
		}
	}))
	t.Cleanup(repo.Close)
	policy, err := outward.ParsePolicy(repo.URL)
	if err != nil {
		t.Fatal(err)
	}
	catalog := repository.NewCatalog(t.Context(), repository.Options{Repositories: policy})
	const only = "charts may be fetched only from REPO; " +
		"use such a URL, or ask an administrator of Shipper to add this one (--chart-repositories)"
	for path, want := range map[string]string{
		"/away": "chart index REPO/away/index.yaml: redirected to OTHER/secret?…: " + only,
		"/near": `chart "nginx" 0.0.1 of repository REPO/near: archive OTHER/nginx.tgz: ` + only,
		"/back": `chart "nginx" 0.0.1 of repository REPO/back: archive REPO/back/away.tgz: redirected to OTHER/away.tgz: ` + only,
	} {
		_, err := catalog.Load(t.Context(), "default", shipper.Chart{Name: "nginx", Version: "0.0.1", RepoURL: repo.URL + path}, "")
		got := read(t, err)
		got.Message = strings.NewReplacer(repo.URL, "REPO", elsewhere.URL, "OTHER").Replace(got.Message)
		if diff := cmp.Diff(failure{"ChartFetchFailure", want, true, chart.ErrNotAllowed}, got, same); diff != "" {
			t.Errorf("%s (-want +got):\n%s", path, diff)
		}
	}
	if len(asked) > 0 {
		t.Errorf("the other server was asked for %v", asked)
	}
}
