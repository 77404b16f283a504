// SPDX-License-Identifier: Apache-2.0

package clusters

import "testing"

func TestNamespacesOfPlacementsAreChecked(t *testing.T) {
	for name, want := range map[string]string{
		"shop": "",
		"*":    "",
		"":     `--placements: "" is no name of a namespace; '*' is all`,
		"Shop": `--placements: "Shop" is no name of a namespace; '*' is all`,
		"kube-system": "--placements: objects of namespace kube-system are never placed: namespaces with the prefix kube- belong to " +
			"Kubernetes",
		"shipper-system": "--placements: objects of namespace shipper-system are never placed: it is Shipper's own namespace",
	} {
		got := ""
		if err := checkPlacements([]string{"web", name}); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("of %q: %s, want %s", name, got, want)
		}
	}
}
