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
	packages := []pkg{{".", "a"}, {".", "slow"}, {".", "slower"}, {"test/x", "x"}, {"test/x", "x/y"}}
	for i := range together {
		packages = append(packages, pkg{".", fmt.Sprint("fast", i)})
	}
	jobs := plan(packages, map[string]float64{"a": 9.9, "slow": 10, "slower": 90, "x": 20, "x/y": 30})
	var got []string
	for _, j := range jobs {
		got = append(got, fmt.Sprint(j.module, " ", j.packages[0], " ", len(j.packages)))
	}
	want := []string{". slower 1", "test/x x 2", ". slow 1", fmt.Sprint(". a ", together), fmt.Sprintf(". fast%d 1", together-1)}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestOnlyWhatIsNamedIsTested(t *testing.T) {
	all := []pkg{
		{".", "shipper.dev/shipper/test/e2e"}, {".", "shipper.dev/shipper/test/env"}, {"test/chart", "shipper.dev/shipper/test/chart"},
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
