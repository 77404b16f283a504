// SPDX-License-Identifier: Apache-2.0

package promserver

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"shipper.dev/shipper/test/env"
	"shipper.dev/shipper/test/program"
)

// The Prometheus and the App of the tests that do not start their own. Each test has Releases of its own.
var (
	server *Server
	app    *App
)

func TestMain(m *testing.M) { os.Exit(run(m)) }

// run runs the tests with a Prometheus that scrapes an App.
func run(m *testing.M) (code int) {
	folder, err := os.MkdirTemp("", "shipper-promserver-")
	if err == nil {
		defer os.RemoveAll(folder)
		app, err = StartApp()
	}
	if err == nil {
		defer app.Close()
		server, err = Start(context.Background(), folder, Target{Address: app.Address(), Labels: map[string]string{"cluster": "app-1"}})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "starting:", err)
		return 1
	}
	defer func() {
		if err := server.Close(); err != nil {
			fmt.Fprintln(os.Stderr, "stopping:", err)
			code = max(code, 1)
		}
	}()
	return m.Run()
}

// becomes waits until an expression is at most tolerance away from a value.
func becomes(t *testing.T, expression string, want, tolerance float64) {
	t.Helper()
	env.Eventually(t, expression, func(ctx context.Context) error {
		got, err := server.Query(ctx, expression)
		if err != nil {
			return err
		}
		if !(math.Abs(got-want) <= tolerance) { // which NaN is not
			return fmt.Errorf("it is %v, want %v", got, want)
		}
		return nil
	})
}

// errorShare is the share of a Release's requests that fail.
func errorShare(release string) string {
	return fmt.Sprintf(`sum(rate(http_requests_total{code=~"5..",shipper_release=%[1]q}[5s]))
		/ sum(rate(http_requests_total{shipper_release=%[1]q}[5s]))`, release)
}

func TestTheErrorShareIsWhatWasSet(t *testing.T) {
	app.Set("shop", "good", 200, 0, time.Millisecond)
	app.Set("shop", "bad", 50, 0.25, time.Millisecond)
	becomes(t, errorShare("good"), 0, 0.001)
	becomes(t, errorShare("bad"), 0.25, 0.001)
	becomes(t, `sum(rate(http_requests_total{code=~"5..",namespace="shop",shipper_release=~"good|bad"}[5s]))
		/ sum(rate(http_requests_total{namespace="shop",shipper_release=~"good|bad"}[5s]))`, 0.05, 0.005)
	app.Set("shop", "bad", 50, 0.75, time.Millisecond)
	becomes(t, errorShare("bad"), 0.75, 0.001)
}

func TestTheRateAndTheLatencyAreWhatWasSet(t *testing.T) {
	app.Set("shop", "slow", 40, 0.5, 300*time.Millisecond)
	becomes(t, `sum(rate(http_requests_total{shipper_release="slow"}[5s]))`, 40, 1)
	becomes(t, `rate(http_request_duration_seconds_sum{shipper_release="slow"}[5s])
		/ rate(http_request_duration_seconds_count{shipper_release="slow"}[5s])`, 0.3, 0.01)
	// A histogram says between which bounds a quantile is: 0.25 s and 0.5 s.
	becomes(t, `histogram_quantile(0.99, rate(http_request_duration_seconds_bucket{shipper_release="slow"}[5s]))`, 0.4975, 0.001)
}

func TestLabelsOfATargetAreAdded(t *testing.T) {
	app.Set("shop", "labelled", 1, 0, 0)
	becomes(t, `count(http_requests_total{cluster="app-1",shipper_release="labelled"})`, 2, 0)
}

func TestARemovedReleaseHasNoSeries(t *testing.T) {
	app.Set("shop", "removed", 1, 0, 0)
	becomes(t, `count(http_requests_total{shipper_release="removed"})`, 2, 0)
	app.Remove("shop", "removed")
	becomes(t, `count(http_requests_total{shipper_release="removed"}) or vector(0)`, 0, 0)
}

func TestPrometheusIsStartedAgainAtTheSameAddressWithItsData(t *testing.T) {
	app.Set("shop", "before", 10, 0.1, 0)
	becomes(t, `count(http_requests_total{shipper_release="before"})`, 2, 0)
	address := server.URL()
	if err := server.Stop(); err != nil {
		t.Fatal(err)
	}
	if value, err := server.Query(t.Context(), "1"); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("a stopped Prometheus: %v %v, want a refused connection", value, err)
	}
	app.Remove("shop", "before")
	app.Set("shop", "after", 10, 0.2, 0)
	if err := server.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(address, server.URL()); diff != "" {
		t.Error("address (-want +got):\n" + diff)
	}
	becomes(t, `count(last_over_time(http_requests_total{shipper_release="before"}[1h]))`, 2, 0)
	becomes(t, errorShare("after"), 0.2, 0.001)
}

func TestAQueryThatIsNotOneNumberFails(t *testing.T) {
	app.Set("shop", "many", 1, 0, 0)
	becomes(t, `count(http_requests_total{shipper_release="many"})`, 2, 0)
	for expression, want := range map[string]string{
		`http_requests_total{shipper_release="many"}`: "is not one number",
		`http_requests_total{shipper_release="none"}`: "is not one number",
		`http_requests_total{`:                        "400 Bad Request",
	} {
		if value, err := server.Query(t.Context(), expression); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v %v, want an error with %q", expression, value, err, want)
		}
	}
}

func TestAPrometheusThatExitsExplainsWhy(t *testing.T) {
	t.Parallel()
	s, err := Start(t.Context(), t.TempDir(), Target{Address: "a/path"})
	if err == nil {
		t.Fatal("it started", s.Close())
	}
	for _, part := range []string{"prometheus ended: exit status 2", `\"a/path\" is not a valid hostname`} {
		if strings.Count(err.Error(), part) != 1 {
			t.Errorf("the error does not say once %q:\n%v", part, err)
		}
	}
}

// compiler is a `go` that logs its arguments and installs an empty program.
const compiler = `#!/bin/sh
[ "$1" = list ] && exit # of what is left to compile, for the progress
echo "$GOFLAGS $*" >>"$CALLS"
echo "#!/bin/sh" >"$GOBIN/prometheus"
chmod +x "$GOBIN/prometheus"
`

func TestPrometheusIsBuiltOnceWithoutTheSDKsOfClouds(t *testing.T) {
	cache, calls, tools := t.TempDir(), filepath.Join(t.TempDir(), "calls"), t.TempDir()
	if err := os.WriteFile(filepath.Join(tools, "go"), []byte(compiler), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", tools+":"+os.Getenv("PATH"))
	t.Setenv("XDG_CACHE_HOME", cache)
	t.Setenv("SHIPPER_BINARIES", "build") // hack/download tests downloads
	t.Setenv("GOFLAGS", "-mod=mod")
	t.Setenv("CALLS", calls)
	for range 2 {
		folder, err := program.Build(t.Context(), t.Output(), buildScript)
		if err != nil {
			t.Fatal(err)
		}
		if want := filepath.Join(cache, "shipper/prometheus/v0.315.0"); folder != want {
			t.Errorf("folder is %s, want %s", folder, want)
		}
		if _, err := os.Stat(filepath.Join(folder, "prometheus")); err != nil {
			t.Error(err)
		}
	}
	got, err := os.ReadFile(calls)
	if err != nil {
		t.Fatal(err)
	}
	const want = "-mod=readonly install -C . -v -tags remove_all_sd -ldflags -s -w -X github.com/prometheus/common/version.Version=0.315.0 " +
		"github.com/prometheus/prometheus/cmd/prometheus\n"
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Error("calls of the compiler (-want +got):\n" + diff)
	}
}
