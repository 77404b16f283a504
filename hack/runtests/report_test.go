// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// module is a module with a package for each way in which tests end.
var module = map[string]string{
	"go.mod": "module m\n\ngo 1.26\n",
	"bad/bad_test.go": `package bad

import "testing"

func TestGood(t *testing.T) { t.Log("a log of a test that passes") }

func TestBad(t *testing.T) {
	t.Log("before")
	t.Run("fine", func(t *testing.T) { t.Log("a log of a subtest that passes") })
	t.Run("wrong", func(t *testing.T) { t.Error("this is wrong") })
}
`,
	"broken/broken_test.go": "package broken\n\nvar x int = `no number`\n",
	"good/good_test.go": `package good

import (
	"fmt"
	"os"
	"testing"
)

func TestMain(m *testing.M) {
	fmt.Println("fleet ready after 1.5s")
	fmt.Println("set-up ready after 1m2.5s")
	os.Exit(m.Run())
}

func TestParallel(t *testing.T) { t.Parallel(); t.Log("a log of a parallel test") }
`,
	"none/none.go": "package none\n",
	"stops/stops_test.go": `package stops

import "testing"

func TestStops(t *testing.T) { t.Log("near the end"); panic("it is over") }
`,
}

// run returns what a report prints of go test for that module, with a fixed time for each package, and the report.
func testModule(t *testing.T, verbose bool) (string, *report) {
	t.Helper()
	folder := t.TempDir()
	for name, text := range module {
		path := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), "go", "test", "-json", "-p", "1", "-vet=off", "-count=1", "./...")
	cmd.Dir, cmd.Env = folder, append(os.Environ(), "GOFLAGS=", "GOWORK=off", "GOTRACEBACK=none")
	text, err := cmd.Output()
	if err == nil {
		t.Fatal("all tests pass")
	}
	var out strings.Builder
	r := newReport(&out, verbose)
	r.read(strings.NewReader(string(text)))
	return regexp.MustCompile(`[0-9.]+s\b`).ReplaceAllString(out.String(), "1s"), r
}

func TestFailuresArePrintedAsGoTestDoes(t *testing.T) {
	got, _ := testModule(t, false)
	for _, want := range []string{
		"--- FAIL: TestBad (1s)\n",
		"--- FAIL: TestBad/wrong (1s)\n",
		"bad_test.go:10: this is wrong\n",
		"bad_test.go:8: before\n",
		"FAIL\tm/bad\t1s\n",
		"cannot use `no number`",
		"FAIL\tm/broken [build failed]\n",
		"ok  \tm/good\t1s\n",
		"?   \tm/none\t[no test files]\n",
		"stops_test.go:5: near the end\n",
		"panic: it is over",
		"FAIL\tm/stops\t1s\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("it does not print %q", want)
		}
	}
	for _, no := range []string{"=== RUN", "a log of", "--- PASS", "PASS\n", "fleet ready"} {
		if strings.Contains(got, no) {
			t.Errorf("it prints %q", no)
		}
	}
	if t.Failed() {
		t.Log(got)
	}
}

func TestVerboseOutputHasAllTests(t *testing.T) {
	got, _ := testModule(t, true)
	for _, want := range []string{"=== RUN   TestGood", "a log of a test that passes", "a log of a parallel test", "--- PASS: TestParallel"} {
		if !strings.Contains(got, want) {
			t.Errorf("it does not print %q:\n%s", want, got)
		}
	}
}

func TestTheTableSumsWhatPackagesWaitedFor(t *testing.T) {
	_, r := testModule(t, false)
	want := "waited for 1 fleets to start: 2s; for 1 packages to be set up, most of these fleets included: 1m3s\n"
	if diff := cmp.Diff(want, r.waiting()); diff != "" {
		t.Error(diff)
	}
	if took := r.durations(); len(took) != 1 || took["m/good"] == 0 {
		t.Errorf("durations to record: %v", took)
	}
}

func TestTheResultNamesEachFailure(t *testing.T) {
	_, r := testModule(t, false)
	var out strings.Builder
	r.out = &out
	if r.result(true) {
		t.Error("all have passed")
	}
	want := "--- FAIL: m/bad TestBad\n--- FAIL: m/bad TestBad/wrong\n--- FAIL: m/stops TestStops\n" +
		"FAIL\tm/bad\nFAIL\tm/broken\nFAIL\tm/stops\nFAIL\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
}

func TestACallThatFailsWithoutAFailedTestFails(t *testing.T) {
	for sentence, tc := range map[string]struct {
		failed bool
		want   string
	}{
		"all calls passed": {false, "ok\n"},
		"a call failed, such as one whose module is not there": {true, "FAIL\n"},
	} {
		t.Run(sentence, func(t *testing.T) {
			var out strings.Builder
			r := newReport(&out, false)
			r.read(strings.NewReader(`{"Action":"pass","Package":"shipper.dev/shipper/fast","Elapsed":1}` + "\n"))
			out.Reset()
			if ok := r.result(tc.failed); ok == tc.failed || out.String() != tc.want {
				t.Errorf("%t, and it prints %q", ok, out.String())
			}
		})
	}
}

func TestTheTableListsTheSlowestFirst(t *testing.T) {
	var out strings.Builder
	r := newReport(&out, false)
	r.read(strings.NewReader(`{"Action":"pass","Package":"shipper.dev/shipper/fast","Elapsed":1}
{"Action":"output","Package":"shipper.dev/shipper/old","Output":"ok  \tshipper.dev/shipper/old\t(cached)\n"}
{"Action":"pass","Package":"shipper.dev/shipper/old","Elapsed":90}
{"Action":"pass","Package":"shipper.dev/shipper/slow","Test":"TestSlow","Elapsed":19}
{"Action":"pass","Package":"shipper.dev/shipper/slow","Test":"TestSlow/part","Elapsed":18}
{"Action":"pass","Package":"shipper.dev/shipper/slow","Elapsed":20}
`))
	r.used(job{packages: []string{"shipper.dev/shipper/slow"}}, 7*time.Second)
	out.Reset()
	r.table(time.Minute)
	want := `
slowest packages      wall       cpu
pass                 20.0s      7.0s  slow
pass                  1.0s            fast

slowest tests         wall
pass                 19.0s            slow TestSlow

waited for 0 fleets to start: 0s; for 0 packages to be set up, most of these fleets included: 0s
total: 1m0s of wall time, 7s of CPU time
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
}

func TestProgressNamesWhatRuns(t *testing.T) {
	r := newReport(&strings.Builder{}, false)
	r.read(strings.NewReader(`{"Action":"start","Package":"shipper.dev/shipper/test/e2e"}
{"Action":"run","Package":"shipper.dev/shipper/test/e2e","Test":"TestA"}
{"Action":"pause","Package":"shipper.dev/shipper/test/e2e","Test":"TestA"}
{"Action":"run","Package":"shipper.dev/shipper/test/e2e","Test":"TestB"}
`))
	began := r.running["shipper.dev/shipper/test/e2e"].began
	if got, want := r.progress(began.Add(time.Minute)), "… testing test/e2e for 1m0s in TestB"; got != want {
		t.Errorf("%q, not %q", got, want)
	}
}
