// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

// unheardOf is a field that no object has.
const unheardOf = "unheardOf"

// freeForm are fields whose keys are those of users, and fields that are left out as a whole.
var freeForm = []string{"matchLabels", "data", "value", "jsonPatchOverrides", "identity", "deleteOptions", "unknown"}

// heard calls a function with a field more in each map below a value, one at a time.
func heard(value any, at string, call func(at string)) {
	switch value := value.(type) {
	case map[string]any:
		value[unheardOf] = "x"
		call(at)
		delete(value, unheardOf)
		for _, key := range slices.Sorted(maps.Keys(value)) {
			if !slices.Contains(freeForm, key) {
				heard(value[key], at+"."+key, call)
			}
		}
	case []any:
		for i := range value {
			heard(value[i], at+"[]", call)
		}
	}
}

// TestNoFieldOfKubeFleetVanishes adds a field to each map of each spec that is converted, and expects a review that names it, or an error.
func TestNoFieldOfKubeFleetVanishes(t *testing.T) {
	kinds := []string{
		"MemberCluster", "ClusterResourcePlacement", "ResourcePlacement", clusterOverride, namespacedOverride, "ClusterStagedUpdateStrategy",
		"ClusterStagedUpdateRun", "ClusterApprovalRequest",
	}
	tried := map[string]bool{}
	for _, name := range fleetInputs {
		raw, _ := converting(t, name)
		all, err := read(raw)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range all {
			if !slices.Contains(kinds, d.GetKind()) {
				continue
			}
			heard(d.Object["spec"], d.GetKind()+".spec", func(at string) {
				if tried[at] {
					return
				}
				tried[at] = true
				failed := &failures{}
				made, reviews := convertFleet(all, map[int]bool{}, failed, settings{})
				for _, one := range made {
					reviews = append(reviews, one.reviews...)
				}
				if len(failed.ordered()) == 0 && !strings.Contains(strings.Join(reviews, "\n"), unheardOf) {
					t.Errorf("%s: %s.%s is dropped", name, at, unheardOf)
				}
			})
		}
	}
	if len(tried) < 40 {
		t.Errorf("only %d maps were tried", len(tried))
	}
}
