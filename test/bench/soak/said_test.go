// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSaid(t *testing.T) {
	got := said{errors: map[string]int{}, others: map[string]int{}}
	err := got.take("reconciler", strings.NewReader(
		`{"level":"info","logger":"fleet","msg":"Cluster cannot be worked with","cluster":"west","reason":"ClusterUnreachable"}
{"level":"error","controller":"traffic","msg":"Reconciler error","error":"patching Pod soak-12/app-1f2e-0-abcde: timed out after 12.5s"}
{"level":"error","controller":"traffic","msg":"Reconciler error","error":"patching Pod soak-7/app-99aa-3-fghij: timed out after 3s"}
fatal error: concurrent map writes
`))
	if err != nil {
		t.Fatal(err)
	}
	want := said{
		errors: map[string]int{
			"reconciler: traffic: Reconciler error: patching Pod ·/·: timed out after ·": 2,
			"reconciler: fatal error: concurrent map writes":                             1,
		},
		others: map[string]int{"reconciler: fleet: Cluster cannot be worked with: ClusterUnreachable": 1},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(said{})); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if err := got.missed(); err != nil {
		t.Errorf("an error that was logged twice is taken for one that repeats: %v", err)
	}
	got.errors["reconciler: fatal error: concurrent map writes"] = often + 1
	if got.missed() == nil {
		t.Error("an error that repeats is not seen")
	}
}
