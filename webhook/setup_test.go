// SPDX-License-Identifier: Apache-2.0

package webhook_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/certs/reviewpath"
	"shipper.dev/shipper/chart/lots"
	"shipper.dev/shipper/chart/render"
	"shipper.dev/shipper/chart/repository"
	"shipper.dev/shipper/manifests"
	"shipper.dev/shipper/test/admission/ask"
	"shipper.dev/shipper/webhook"
	"shipper.dev/shipper/webhook/application"
)

// served collects the registered handlers.
type served map[string]http.Handler

func (s served) Register(path string, hook http.Handler) { s[path] = hook }

// slow resolves nothing, and only ends when its time is up.
type slow struct{}

func (slow) Resolve(ctx context.Context, _ string, _ shipper.Chart) (repository.Resolution, error) {
	<-ctx.Done()
	return repository.Resolution{}, ctx.Err()
}

func (slow) Allows(string) error { return nil }

func (slow) Refresh(ctx context.Context, _ string, _ shipper.Chart) error { return ctx.Err() }

func (slow) Verifiable(context.Context, string, shipper.Chart, string) error { return nil }

func (slow) Lots(context.Context, *shipper.Release, render.Cluster) (lots.Table, error) {
	return lots.Table{}, nil
}

func (slow) Naming(context.Context, *shipper.Release, []render.Cluster) (shipper.ChartNaming, error) {
	return shipper.NamingByRelease, nil
}

func (slow) Judge(ctx context.Context, _ *shipper.Release, _ render.Cluster) ([]string, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func (slow) Replicas(ctx context.Context, _ *shipper.Release, _ render.Cluster) (int32, error) {
	return 0, ctx.Err()
}

// judged has judged every chart before.
type judged struct{ slow }

func (judged) Judge(context.Context, *shipper.Release, render.Cluster) ([]string, error) {
	return nil, nil
}

func setUp(t testing.TB, known ...client.Object) served {
	t.Helper()
	return setUpWith(t, slow{}, known...)
}

func setUpWith(t testing.TB, charts application.Resolver, known ...client.Object) served {
	t.Helper()
	w := ask.Know(t, ask.Grant(), known...)
	s := served{}
	err := webhook.Setup(s, webhook.Options{
		State: w.State, Ready: func(context.Context) error { return nil }, Authz: w.Authz, Charts: charts, Reconciler: ask.Reconciler,
		Registry: prometheus.NewRegistry(), Clock: ask.Clock(), Log: logr.Discard(),
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestWhatIsAskedForIsServed(t *testing.T) {
	asked := map[string]bool{}
	for _, kind := range []string{"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"} {
		configuration, err := manifests.Object(manifests.Webhook, kind, "shipper.booking.com")
		if err != nil {
			t.Fatal(err)
		}
		hooks, _, err := unstructured.NestedSlice(configuration.Object, "webhooks")
		if err != nil {
			t.Fatal(err)
		}
		for _, hook := range hooks {
			path, _, _ := unstructured.NestedString(hook.(map[string]any), "clientConfig", "service", "path")
			if path != "" {
				t.Errorf("%s has the path %s, to which each apply of the manifests would reset it", hook.(map[string]any)["name"], path)
			}
			asked[reviewpath.HookOf(hook.(map[string]any)["name"].(string))] = true
		}
	}
	got := map[string]bool{}
	for path := range setUp(t) {
		got[path] = true
	}
	if diff := cmp.Diff(asked, got); diff != "" {
		t.Errorf("paths (-manifests/webhook +served):\n%s", diff)
	}
}

// post sends a review of req to path and returns the response.
func post(t testing.TB, s served, path string, body []byte) (int, *admissionv1.AdmissionResponse) {
	t.Helper()
	request := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, bytes.NewReader(body))
	request.Header.Set("Content-Type", "application/json")
	recorder := httptest.NewRecorder()
	s[strings.SplitN(path, "?", 2)[0]].ServeHTTP(recorder, request)
	if recorder.Code != http.StatusOK { // it was no review
		return recorder.Code, &admissionv1.AdmissionResponse{}
	}
	var review admissionv1.AdmissionReview
	if err := json.Unmarshal(recorder.Body.Bytes(), &review); err != nil {
		t.Fatalf("answer %s: %v", recorder.Body, err)
	}
	return recorder.Code, review.Response
}

func review(t testing.TB, req admissionv1.AdmissionRequest) []byte {
	t.Helper()
	body, err := json.Marshal(admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"}, Request: &req,
	})
	if err != nil {
		t.Fatal(err)
	}
	return body
}

func TestReviewsAreAnswered(t *testing.T) {
	s := setUp(t, ask.Block("global/dns"))
	_, response := post(t, s, "/validate-application", review(t, ask.Create("dev", ask.Application()).AdmissionRequest))
	if response.UID != "request" || response.Allowed || response.Result.Code != http.StatusForbidden {
		t.Errorf("got %+v", response)
	}
}

func TestAnswersComeInTime(t *testing.T) {
	synctest.Test(t, testAnswersComeInTime)
}

func testAnswersComeInTime(t *testing.T) {
	s := setUp(t)
	began := time.Now() // virtual time
	body := review(t, ask.Create("dev", ask.Application(ask.Version("~1"))).AdmissionRequest)
	_, response := post(t, s, "/mutate-application?timeout=600ms", body)
	if took := time.Since(began); took > 590*time.Millisecond {
		t.Errorf("answered after %s, and the API server waits for 600 ms", took)
	}
	if response.Allowed || response.Result.Code != http.StatusServiceUnavailable || response.Result.Details != nil {
		t.Errorf("got %+v", response.Result)
	}
}

func TestUglyRequests(t *testing.T) {
	s := setUp(t)
	for sentence, body := range map[string][]byte{
		"nothing":     nil,
		"not JSON":    []byte("<html>"),
		"no request":  []byte(`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"}`),
		"no object":   review(t, admissionv1.AdmissionRequest{UID: "x", Operation: admissionv1.Create}),
		"too much":    bytes.Repeat([]byte("x"), 9<<20),
		"wrong kinds": []byte(`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"object":[],"operation":7}}`),
	} {
		for path := range s {
			_, response := post(t, s, path, body)
			if response.Allowed && strings.HasPrefix(path, "/validate") && sentence != "no request" && sentence != "no object" {
				t.Errorf("%s: %s was allowed", path, sentence)
			}
		}
	}
}

// BenchmarkReview is one review of an edit, from the bytes of the request to those of the answer, where 1,000 blocks and
// 10,000 Releases are known. A hundred of the blocks bear on the namespace and look at every edit in it.
func BenchmarkReview(b *testing.B) {
	var known []client.Object
	for i := range 900 {
		known = append(known, ask.Block(fmt.Sprintf("ns-%d/block-%d", i%100, i)))
	}
	for i := range 100 {
		bearing := ask.Block(fmt.Sprintf("global/block-%d", i))
		bearing.Spec.Scope = &shipper.RolloutBlockScope{Charts: []string{"httpd"}}
		known = append(known, bearing)
	}
	for i := range 10000 {
		app := ask.Application(func(a *shipper.Application) { a.Name = fmt.Sprintf("app-%d", i%500) })
		known = append(known, ask.Release(app, nil, func(r *shipper.Release) { r.Name = fmt.Sprintf("%s-%d", r.Name, i) }))
	}
	s := setUpWith(b, judged{}, known...)
	old := ask.Application(ask.Pinned("~0.0"), func(a *shipper.Application) { a.Name = "app-7" })
	now := old.DeepCopy()
	(*now.Spec.Template.Values)["replicaCount"] = int64(9)
	body := review(b, ask.Update("dev", now, old).AdmissionRequest)
	for _, path := range []string{"/mutate-application", "/validate-application"} {
		b.Run(path[1:], func(b *testing.B) { benchmarkReview(b, s, path, body) })
	}
}

func benchmarkReview(b *testing.B, s served, path string, body []byte) {
	if _, response := post(b, s, path, body); !response.Allowed {
		b.Fatal(response.Result)
	}
	var took []time.Duration
	b.ReportAllocs()
	for b.Loop() {
		request := httptest.NewRequestWithContext(b.Context(), http.MethodPost, path, bytes.NewReader(body))
		request.Header.Set("Content-Type", "application/json")
		recorder := httptest.NewRecorder()
		began := time.Now()
		s[path].ServeHTTP(recorder, request)
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
}

// Without reliable caches no rollout is admitted, but a user can still create a block.
func TestABlockCanBeMadeWhileNothingIsKnown(t *testing.T) {
	w, s := ask.Know(t, ask.Grant()), served{}
	err := webhook.Setup(s, webhook.Options{
		State: w.State, Ready: func(context.Context) error { return errors.New("nothing is known") }, Authz: w.Authz,
		Charts: slow{}, Reconciler: ask.Reconciler, Registry: prometheus.NewRegistry(), Clock: ask.Clock(), Log: logr.Discard(),
	})
	if err != nil {
		t.Fatal(err)
	}
	b, app := ask.Create("sre", ask.Block("default/demo")), ask.Create("dev", ask.Application())
	for path, want := range map[string]bool{
		"/mutate-rolloutblock": true, "/validate-rolloutblock": true,
		"/mutate-application": false, "/validate-application": false,
	} {
		request := app
		if want {
			request = b
		}
		if _, got := post(t, s, path, review(t, request.AdmissionRequest)); got.Allowed != want {
			t.Errorf("%s: %+v", path, got)
		}
	}
}
