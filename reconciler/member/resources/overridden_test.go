// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"testing"

	"shipper.dev/shipper/apis/rules/override"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/retry"
)

// changing is what one rule does to the ConfigMap a.
func changing(patch ...shipper.PatchOperation) []override.Change {
	return []override.Change{{
		Override: "team/x", Selected: override.Select([]shipper.OverriddenResource{{Kind: "ConfigMap", Name: "a"}}), Patch: patch,
		Delete: len(patch) == 0,
	}}
}

// with makes a pass with overrides, and returns its writes.
func (f *fixture) with(it *shipper.InstallationTarget, changes []override.Change) (Result, []string) {
	f.Helper()
	f.member.writes = nil
	task := f.task(it)
	task.Overrides = changes
	out := f.worker.Place(f.Context(), task)
	return out, f.member.writes
}

func TestOverridesChangeOnlyWhatTheyConcern(t *testing.T) {
	f := begin(t)
	f.snapshot("one", first)
	it := f.release(0, "one")
	add := changing(shipper.PatchOperation{"op": "replace", "path": "/data/k", "value": "2"})
	_, writes := f.with(it, add)
	same(t, "the first writes", []string{
		"create " + theAnchor, "apply Namespace /work", "apply ConfigMap work/a", "apply ConfigMap work/b", "apply " + theAnchor,
	}, writes)
	out, writes := f.with(it, add)
	same(t, "at rest", []any{nil, []string(nil)}, []any{out.Err, writes})
	if got := f.contents["one"][0].Object["data"]; got.(map[string]any)["k"] != "1" {
		t.Errorf("the shared content was changed: %v", got)
	}

	_, writes = f.place(it)
	same(t, "without the override", []string{"apply " + theAnchor, "apply ConfigMap work/a", "apply " + theAnchor}, writes)
	_, writes = f.with(it, changing())
	same(t, "left out", []string{"apply " + theAnchor, "delete ConfigMap work/a"}, writes)
	for range 3 {
		out, writes = f.with(it, changing())
	}
	same(t, "left out, at rest", []any{nil, []string(nil)}, []any{out.Err, writes})
}

func TestAnOverrideThatFailsWritesNothingInItsCluster(t *testing.T) {
	f := begin(t)
	f.snapshot("one", first)
	it := f.release(0, "one")
	out, writes := f.with(it, changing(shipper.PatchOperation{"op": "remove", "path": "/data/secret"}))
	reason, action := retry.ClassifyInCluster(out.Err)
	same(t, "result", []any{nil, shipper.OverrideFailed, retry.Wait, []string(nil)}, []any{out.General, reason, action, writes})
	f.placed(it)
	f.snapshot("two", second)
	newer := f.release(1, "two")
	selected := override.Select([]shipper.OverriddenResource{{Kind: "Namespace"}})
	_, writes = f.with(newer, []override.Change{{Selected: selected, Failed: "no label"}})
	same(t, "what serves stays", []string(nil), writes)
}
