// SPDX-License-Identifier: Apache-2.0

package prometheus_test

import (
	"context"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"shipper.dev/shipper/outward"
	"shipper.dev/shipper/outward/prometheus"
)

var noon = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

// serve starts a server, and returns its URL and a client that may request it.
func serve(t *testing.T, c outward.Credentials, answer http.HandlerFunc) (string, *http.Client) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = r.ParseForm() // a server notices that the client is gone when it has read the body
		answer(w, r)
	}))
	t.Cleanup(server.Close)
	policy, err := outward.ParsePolicy("http://127.0.0.1:*")
	if err != nil {
		t.Fatal(err)
	}
	client, err := outward.NewClient(policy, c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.CloseIdleConnections)
	return server.URL, client
}

// result is what Query gave.
type result struct {
	Value float64
	Found bool
	Err   string
}

func query(ctx context.Context, client *http.Client, address string) result {
	value, found, err := prometheus.Query(ctx, client, address, `sum(up{a="b"})`, noon)
	out := result{Value: value, Found: found}
	if err != nil {
		out.Err = err.Error()
	}
	return out
}

// success is an answer of Prometheus.
func success(kind, content string) string {
	return fmt.Sprintf(`{"status": "success", "data": {"resultType": %q, "result": %s}, `+
		`"infos": ["hush"], "warnings": ["PromQL info: hush"]}`, kind, content)
}

// samples are n series.
func samples(n int) string {
	return "[" + strings.TrimSuffix(strings.Repeat(`{"metric":{},"value":[1,"1"]},`, n), ",") + "]"
}

func TestQuerySendsTheQueryAndTheTime(t *testing.T) {
	var got []string
	address, client := serve(t, outward.Credentials{Token: "hush"}, func(w http.ResponseWriter, r *http.Request) {
		got = append(got, r.Method+" "+r.URL.Path, r.FormValue("query"), r.FormValue("time"), r.Header.Get("Authorization"))
		if r.Method == http.MethodPost {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		_, _ = io.WriteString(w, success("scalar", `[1, "2.5"]`))
	})
	if diff := cmp.Diff(result{Value: 2.5, Found: true}, query(t.Context(), client, address+"/select/0/prometheus/")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	same := []string{`sum(up{a="b"})`, "1777636800", "Bearer hush"}
	const path = "/select/0/prometheus/api/v1/query"
	want := append(append([]string{"POST " + path}, same...), append([]string{"GET " + path}, same...)...)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}

func TestAnswers(t *testing.T) {
	const none = "the answer is not one of Prometheus"
	for sentence, tc := range map[string]struct {
		status int
		body   string
		want   result
	}{
		"a scalar":    {200, success("scalar", `[1, "3"]`), result{Value: 3, Found: true}},
		"one series":  {200, success("vector", samples(1)), result{Value: 1, Found: true}},
		"an infinity": {200, success("scalar", `[1, "+Inf"]`), result{Value: math.Inf(1), Found: true}},
		"partial data": {
			200, `{"status": "success", "data": {"resultType": "scalar", "result": [1, "3"]}, ` +
				`"warnings": ["PromQL info: hush", "remote_read: fetch \"hush\" failed"]}`,
			result{Err: "the server warns of its answer: remote_read: fetch …"},
		},
		"no series":       {200, success("vector", `[]`), result{}},
		"NaN":             {200, success("vector", `[{"metric": {}, "value": [1, "NaN"]}]`), result{}},
		"a scalar of NaN": {200, success("scalar", `[1, "NaN"]`), result{}},
		"three series":    {200, success("vector", samples(3)), result{Err: "3 series: aggregate them, e.g. sum(…)"}},
		"a range vector":  {200, success("matrix", `[]`), result{Err: "gives neither a scalar nor an instant vector"}},
		"a text":          {200, success("string", `[1, "hush"]`), result{Err: none}},
		"a histogram": {
			200, success("vector", `[{"metric": {}, "histogram": [1, {"count": "1", "sum": "1", "buckets": []}]}]`),
			result{Err: "the series is a histogram: use a function such as histogram_quantile(…)"},
		},
		"no JSON":      {200, "hush", result{Err: none}},
		"another JSON": {200, `{"hush": "hush"}`, result{Err: none}},
		"no value":     {200, success("scalar", `"hush"`), result{Err: none}},
		"an error": {
			400, `{"status": "error", "errorType": "bad_data", "error": "1:5: parse error"}`,
			result{Err: "bad_data: 1:5: parse error"},
		},
		"a timeout": {
			503, `{"status": "error", "errorType": "timeout", "error": "query timed out"}`,
			result{Err: "server_error: server error: 503"},
		},
		"a failure": {
			422, `{"status": "error", "errorType": "execution", "error": "many-to-many matching"}`,
			result{Err: "execution: many-to-many matching"},
		},
		"a failure that quotes labels": {
			422, `{"status": "error", "errorType": "execution", "error": "found duplicate series for the match group {card=\"hush\"} on"}`,
			result{Err: "execution: found duplicate series for the match group …"},
		},
		"a broken server":     {500, "hush", result{Err: "server_error: server error: 500"}},
		"no authorization":    {401, "hush", result{Err: "client_error: client error: 401"}},
		"an error of no form": {400, "hush", result{Err: "client_error: client error: 400"}},
		"a long error": {400, `{"status": "error", "errorType": "bad_data", "error": "` + strings.Repeat("é", 300) + `"}`,
			result{Err: "bad_data: " + strings.Repeat("é", 93) + "…"}},
		"control characters": {
			400, `{"status": "error", "errorType": "bad_data", "error": "a\u001b[2J\nb"}`,
			result{Err: "bad_data: a [2J b"},
		},
	} {
		address, client := serve(t, outward.Credentials{}, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(tc.status)
			_, _ = io.WriteString(w, tc.body)
		})
		got := query(t.Context(), client, address)
		if diff := cmp.Diff(tc.want, got); diff != "" || len(got.Err) > 200 {
			t.Errorf("%s (-want +got):\n%s", sentence, diff)
		}
	}
}

func TestUglyServers(t *testing.T) {
	const late = "the server cannot be reached: no whole answer in time: context deadline exceeded"
	for sentence, tc := range map[string]struct {
		answer http.HandlerFunc
		want   string
	}{
		"one that does not answer": {func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, late},
		"one that drips": {func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				_, _ = io.WriteString(w, " ")
				w.(http.Flusher).Flush()
			}
		}, late},
		"one that answers 10 MB": {func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, success("vector", samples(340_000)))
		}, "the server cannot be reached: answers more than 1 MiB"},
		"one that redirects": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://169.254.169.254/hush", http.StatusTemporaryRedirect)
		}, "bad_response: bad response code 307"},
		"one that breaks off": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			_, _ = io.WriteString(w, "hush")
		}, "the server cannot be reached: the request or the answer is no valid HTTP"},
		"one with lists in lists": {func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, success("vector", strings.Repeat("[", 500_000)))
		}, "the answer is not one of Prometheus"},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		if tc.want == late {
			cancel()
			ctx, cancel = context.WithTimeout(t.Context(), time.Second) // in which the head of an answer arrives
		}
		address, client := serve(t, outward.Credentials{}, tc.answer)
		if diff := cmp.Diff(result{Err: tc.want}, query(ctx, client, address)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", sentence, diff)
		}
		cancel()
	}
}

func TestAddressesThatAreNotRequested(t *testing.T) {
	_, client := serve(t, outward.Credentials{}, http.NotFound)
	for address, want := range map[string]string{
		"http://a b/hush":          "the address of Prometheus is not a URL",
		"http://me:hush@10.0.0.1/": "the server cannot be reached: only http://127.0.0.1:* may be requested",
		"http://169.254.169.254/":  "the server cannot be reached: only http://127.0.0.1:* may be requested",
	} {
		if got := query(t.Context(), client, address); !strings.HasPrefix(got.Err, want) || strings.Contains(got.Err, "hush") {
			t.Errorf("%s gives %+v, want %q", address, got, want)
		}
	}
}

func TestTheMemoryOfAnAnswerIsBounded(t *testing.T) {
	address, client := serve(t, outward.Credentials{}, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, success("vector", samples(34_000)))
	})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	got := query(t.Context(), client, address)
	runtime.ReadMemStats(&after)
	if diff := cmp.Diff(result{Err: "34000 series: aggregate them, e.g. sum(…)"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if allocated := after.TotalAlloc - before.TotalAlloc; allocated > 64<<20 {
		t.Errorf("it allocates %d bytes", allocated)
	}
}
