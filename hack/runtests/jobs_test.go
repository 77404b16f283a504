// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTheLongestStartFirst(t *testing.T) {
	packages := []pkg{
		{".", "a", false}, {".", "slow", false}, {".", "b", true}, {".", "slower", true}, {"test/x", "x", false}, {"test/x", "x/y", true},
	}
	for i := range together {
		packages = append(packages, pkg{".", fmt.Sprint("fast", i), false})
	}
	left := &queue{jobs: plan(packages, map[string]float64{"a": 9.9, "slow": 10, "slower": 90, "x": 20, "x/y": 30})}
	next := func(slot bool) string {
		j, found := left.next(slot)
		if !found {
			return "none"
		}
		return fmt.Sprint(j.module, " ", j.packages[0], " ", len(j.packages))
	}
	got := []string{next(true), next(true), next(false), next(true), next(false), next(false), next(false), next(true)}
	want := []string{
		". slower 1", "test/x x 2", ". slow 1", ". b 1", ". a " + fmt.Sprint(together), fmt.Sprintf(". fast%d 1", together-1), "none", "none",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestWithoutASlotNoControlPlaneStarts(t *testing.T) {
	left := &queue{jobs: []job{{module: "fleet", fleet: true}, {module: "fast"}, {module: "faster"}}}
	var got []string
	for _, slot := range []bool{false, false, false, true} {
		j, _ := left.next(slot)
		got = append(got, j.module)
	}
	if diff := cmp.Diff([]string{"fast", "faster", "", "fleet"}, got); diff != "" {
		t.Error(diff)
	}
	left = &queue{jobs: []job{{module: "slow"}, {module: "fast"}}}
	if j, found := left.next(true); !found || j.module != "slow" {
		t.Errorf("a slot is idle while %v waits", left.jobs)
	}
}

func TestPackagesThatStartControlPlanesAreKnown(t *testing.T) {
	got, err := listModule(t.Context(), "../..", "./test/env", "./test/fleet", "./test/kill", "./test/promises")
	if err != nil {
		t.Fatal(err)
	}
	const tests = "shipper.dev/shipper/test/"
	want := []pkg{
		{"../..", tests + "env", false}, {"../..", tests + "fleet", true}, {"../..", tests + "kill", true}, {"../..", tests + "promises", false},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(pkg{})); diff != "" {
		t.Error(diff)
	}
}

func TestPackagesThatDoNotCompileAreTested(t *testing.T) {
	folder := t.TempDir()
	for name, text := range map[string]string{
		"go.mod": "module m\n\ngo 1.26\n", "good/good.go": "package good\n",
		"bad/bad_test.go": "package bad\n\nimport _ \"m/missing\"\n",
	} {
		path := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("GOWORK", "off")
	got, err := listModule(t.Context(), folder, "./...")
	if err != nil {
		t.Fatal(err)
	}
	want := []pkg{{folder, "m/bad", false}, {folder, "m/good", false}}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(pkg{})); diff != "" {
		t.Error(diff)
	}
}

func TestOnlyWhatIsNamedIsTested(t *testing.T) {
	all := []pkg{
		{".", "shipper.dev/shipper/test/e2e", true}, {".", "shipper.dev/shipper/test/env", false},
		{"test/chart", "shipper.dev/shipper/test/chart", true},
	}
	got, err := chosen(all, "test/chart,test/e2e")
	if diff := cmp.Diff([]pkg{all[2], all[0]}, got, cmp.AllowUnexported(pkg{})); diff != "" || err != nil {
		t.Error(diff, err)
	}
	if _, err := chosen(all, "test/e2"); err == nil {
		t.Error("a package that there is not was found")
	}
}

func TestWhatThisMachineMeasuredWins(t *testing.T) {
	folder := t.TempDir()
	checkedIn, recorded := filepath.Join(folder, "order"), filepath.Join(folder, "new", "times")
	if err := os.WriteFile(checkedIn, []byte("# a comment\n\n90 a\n20 b\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, took := range []map[string]float64{{"b": 5, "c": 1}, {"c": 2.25}} {
		if err := record(recorded, took); err != nil {
			t.Fatal(err)
		}
	}
	got, err := durations(checkedIn, recorded)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]float64{"a": 90, "b": 5, "c": 2.2}, got); diff != "" {
		t.Error(diff)
	}
}

func TestAPartialRunRecordsNothing(t *testing.T) {
	for _, flags := range [][]string{{"-run", "X"}, {"--run=X"}, {"-test.short"}, {"-v", "-skip=X"}} {
		if complete(flags) {
			t.Errorf("%q counts as a whole run", flags)
		}
	}
	if !complete([]string{"-v", "-race"}) || !talkative([]string{"-v"}) || talkative([]string{"-run", "v"}) {
		t.Error("flags are read wrongly")
	}
}
