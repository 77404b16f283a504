// SPDX-License-Identifier: Apache-2.0

package request_test

import (
	"compress/gzip"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"shipper.dev/shipper/outward"
	"shipper.dev/shipper/outward/request"
)

// serve starts a server, and returns its URL and a client that may request it.
func serve(t *testing.T, c outward.Credentials, answer http.HandlerFunc) (string, *http.Client) {
	t.Helper()
	server := httptest.NewServer(answer)
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

// result is what Do gave.
type result struct {
	Response request.Response
	Err      string
}

func answered(status int, content any) result {
	return result{Response: request.Response{Status: status, JSON: content}}
}

func do(ctx context.Context, client *http.Client, r request.Request) result {
	response, err := request.Do(ctx, client, r)
	out := result{Response: response}
	if err != nil {
		out.Err = err.Error()
	}
	return out
}

func TestDoSendsWhatIsAsked(t *testing.T) {
	type sent struct{ Method, Path, Body, Type, Agent, Custom, Authorization string }
	var got sent
	address, client := serve(t, outward.Credentials{Username: "ann", Password: "hush"}, func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got = sent{r.Method, r.URL.String(), string(body), r.Header.Get("Content-Type"), r.UserAgent(), r.Header.Get("X-Custom"),
			r.Header.Get("Authorization")}
	})
	const basic = "Basic YW5uOmh1c2g="
	for _, tc := range []struct {
		request request.Request
		want    sent
	}{
		{request.Request{URL: address + "/a?b=c"}, sent{Method: "GET", Path: "/a?b=c", Agent: "shipper", Authorization: basic}},
		{
			request.Request{Method: "POST", URL: address, Body: `{"a": 1}`, Headers: map[string]string{
				"x-custom": "1", "Authorization": "Bearer other", "Host": "metadata.internal", "Content-Length": "3",
			}},
			sent{"POST", "/", `{"a": 1}`, "application/json", "shipper", "1", basic},
		},
		{
			request.Request{Method: "POST", URL: address, Body: `a=b`, Headers: map[string]string{
				"Content-Type": "application/x-www-form-urlencoded", "User-Agent": "mine",
			}},
			sent{"POST", "/", `a=b`, "application/x-www-form-urlencoded", "mine", "", basic},
		},
	} {
		if diff := cmp.Diff(answered(200, nil), do(t.Context(), client, tc.request)); diff != "" {
			t.Errorf("%+v (-want +got):\n%s", tc.request, diff)
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%+v sends (-want +got):\n%s", tc.request, diff)
		}
	}
}

func TestAnswers(t *testing.T) {
	const deep = "answers JSON with lists and maps in each other deeper than 64"
	const many = "answers JSON with more than 10000 values"
	for sentence, tc := range map[string]struct {
		status int
		body   string
		want   result
	}{
		"an object":        {200, `{"ok": true, "n": [1.5, null]}`, answered(200, map[string]any{"ok": true, "n": []any{1.5, nil}})},
		"a number":         {200, ` 3 `, answered(200, 3.0)},
		"nothing":          {204, ``, answered(204, nil)},
		"a text":           {200, `fine`, answered(200, nil)},
		"two documents":    {200, `{} {}`, answered(200, nil)},
		"a broken server":  {500, `{"error": "x"}`, answered(500, map[string]any{"error": "x"})},
		"brackets in text": {200, `"` + strings.Repeat(`[{,\"`, 5000) + `"`, answered(200, strings.Repeat(`[{,"`, 5000))},
		"too many levels":  {200, strings.Repeat("[", 65) + strings.Repeat("]", 65), result{Err: deep}},
		"9,000 levels":     {200, strings.Repeat(`{"a":`, 9000) + "1" + strings.Repeat("}", 9000), result{Err: deep}},
		"500,000 levels":   {200, strings.Repeat("[", 500_000) + strings.Repeat("]", 500_000), answered(200, nil)},
		"many values":      {200, "[" + strings.Repeat("0,", 10_000) + "0]", result{Err: many}},
		"many maps":        {200, "[" + strings.Repeat("{},", 300_000) + "{}]", result{Err: many}},
	} {
		address, client := serve(t, outward.Credentials{}, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(tc.status)
			_, _ = io.WriteString(w, tc.body)
		})
		if diff := cmp.Diff(tc.want, do(t.Context(), client, request.Request{URL: address})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", sentence, diff)
		}
	}
}

func TestSixtyFourLevelsAreDecoded(t *testing.T) {
	address, client := serve(t, outward.Credentials{}, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, strings.Repeat("[", 64)+strings.Repeat("]", 64))
	})
	got := do(t.Context(), client, request.Request{URL: address})
	levels, value := 0, got.Response.JSON
	for {
		list, ok := value.([]any)
		if !ok {
			break
		}
		if value = nil; len(list) > 0 {
			value = list[0]
		}
		levels++
	}
	if levels != 64 || got.Err != "" {
		t.Errorf("%d levels, %s", levels, got.Err)
	}
}

func TestUglyServers(t *testing.T) {
	const unreached = "the server cannot be reached: "
	const late = "no whole answer in time: context deadline exceeded"
	for sentence, tc := range map[string]struct {
		answer http.HandlerFunc
		want   result
	}{
		"one that does not answer": {func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, result{Err: unreached + late}},
		"one that drips": {func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				_, _ = io.WriteString(w, " ")
				w.(http.Flusher).Flush()
			}
		}, result{Err: "reading the answer: " + late}},
		"one that answers 10 MB": {func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, strings.Repeat(" ", 10<<20))
		}, result{Err: "answers more than 1 MiB"}},
		"one that answers 100 MB that are compressed": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			for range 100 {
				_, _ = io.WriteString(z, strings.Repeat(" ", 1<<20))
			}
			_ = z.Close()
		}, result{Err: "answers more than 1 MiB"}},
		"one that redirects": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", "http://169.254.169.254/latest")
			w.WriteHeader(http.StatusFound)
		}, answered(302, nil)},
		"one that redirects to no URL": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", "://hush")
			w.WriteHeader(http.StatusFound)
		}, result{Err: unreached + "the request or the answer is no valid HTTP"}},
		"one that breaks off": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			_, _ = io.WriteString(w, "hush")
		}, result{Err: "reading the answer: the request or the answer is no valid HTTP"}},
		"one with long headers": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Long", strings.Repeat("hush", 1<<19))
		}, result{Err: unreached + "the request or the answer is no valid HTTP"}},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		if strings.HasSuffix(tc.want.Err, late) {
			cancel()
			ctx, cancel = context.WithTimeout(t.Context(), time.Second) // in which the head of an answer arrives
		}
		address, client := serve(t, outward.Credentials{}, tc.answer)
		if diff := cmp.Diff(tc.want, do(ctx, client, request.Request{URL: address})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", sentence, diff)
		}
		cancel()
	}
}

func TestRequestsThatAreNotSent(t *testing.T) {
	address, client := serve(t, outward.Credentials{}, func(http.ResponseWriter, *http.Request) { t.Error("the server was requested") })
	for sentence, tc := range map[string]struct {
		request request.Request
		want    string
	}{
		"no URL":         {request.Request{URL: "http://a b/hush"}, "the URL cannot be requested"},
		"another method": {request.Request{URL: address, Method: "DELETE"}, "the method is neither GET nor POST"},
		"a URL that is not allowed": {
			request.Request{URL: "http://me:hush@169.254.169.254/hush"}, "the server cannot be reached: only http://127.0.0.1:* may be requested"},
		"a header that is none": {
			request.Request{URL: address, Headers: map[string]string{"X-A": "hush\nhush"}},
			"the server cannot be reached: the request or the answer is no valid HTTP"},
		"another scheme": {request.Request{URL: "file:///etc/passwd"}, "the server cannot be reached: only http://127.0.0.1:* may be requested"},
	} {
		if diff := cmp.Diff(result{Err: tc.want}, do(t.Context(), client, tc.request)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", sentence, diff)
		}
	}
}
