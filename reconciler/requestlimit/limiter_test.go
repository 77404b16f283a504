// SPDX-License-Identifier: Apache-2.0

package requestlimit

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// slow answers each request after a second.
type slow struct{}

func (slow) RoundTrip(*http.Request) (*http.Response, error) {
	time.Sleep(time.Second)
	return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
}

func TestNamespacesTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		through := New(4).Wrap(slow{})
		ended := make(chan string, 100)
		ask := func(url string) {
			go func() {
				answer, err := through.RoundTrip(httptest.NewRequestWithContext(t.Context(), http.MethodGet, url, nil))
				if err != nil {
					t.Error(err)
					return
				}
				_ = answer.Body.Close()
				ended <- time.Since(began).String() + " " + strings.TrimPrefix(url, "https://mgmt")
			}()
			synctest.Wait()
		}
		for range 5 {
			ask("https://mgmt/apis/shipper.booking.com/v1alpha1/namespaces/many/releases/one")
		}
		ask("https://mgmt/api/v1/namespaces/other/events")
		ask("https://mgmt/apis/shipper.booking.com/v1alpha1/clusters")
		ask("https://mgmt/apis/shipper.booking.com/v1alpha1/namespaces/many/releases?watch=true")
		time.Sleep(time.Minute)
		var got []string
		for range 8 {
			got = append(got, <-ended)
		}
		slices.Sort(got)
		many := "/apis/shipper.booking.com/v1alpha1/namespaces/many/releases"
		want := []string{
			"1s " + many + "/one", "1s " + many + "/one", "1s " + many + "/one", // three of four
			"1s " + many + "?watch=true", "1s /api/v1/namespaces/other/events",
			"2s " + many + "/one", "2s " + many + "/one", "2s /apis/shipper.booking.com/v1alpha1/clusters",
		}
		slices.Sort(want)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("what ended when (-want +got)\n%s", diff)
		}
	})
}

func TestWhoGivesUpIsNotAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		through := New(1).Wrap(slow{})
		first := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "https://mgmt/api", nil)
		go func() {
			answer, err := through.RoundTrip(first)
			if err != nil {
				t.Error(err)
				return
			}
			_ = answer.Body.Close()
		}()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		body := &closed{Reader: strings.NewReader("{}")}
		answer, err := through.RoundTrip(httptest.NewRequestWithContext(ctx, http.MethodPost, "https://mgmt/api", body))
		if err == nil {
			_ = answer.Body.Close()
		}
		if !errors.Is(err, context.DeadlineExceeded) || !body.closed {
			t.Errorf("the answer is %v; the body was closed: %t", err, body.closed)
		}
		time.Sleep(time.Second)
	})
}

type closed struct {
	io.Reader

	closed bool
}

func (c *closed) Close() error {
	c.closed = true
	return nil
}

func TestNamespaceOf(t *testing.T) {
	for path, want := range map[string]string{
		"/api/v1/namespaces/team-a/events":                                       "team-a",
		"/apis/shipper.booking.com/v1alpha1/namespaces/team-a/releases/web-1":    "team-a",
		"/prefix/apis/apps/v1/namespaces/team-a/deployments":                     "team-a",
		"/api/v1/namespaces/vc/services/api/proxy/api/v1/namespaces/team-a/pods": "team-a",
		"/apis/shipper.booking.com/v1alpha1/releases":                            "",
		"/api/v1/namespaces":                                     "",
		"/api/v1/namespaces/team-a":                              "team-a",
		"/apis/authorization.k8s.io/v1/selfsubjectaccessreviews": "",
	} {
		if got := namespaceOf(path); got != want {
			t.Errorf("%s is of %q, want %q", path, got, want)
		}
	}
}
