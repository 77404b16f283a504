// SPDX-License-Identifier: Apache-2.0

package promises

import (
	"fmt"
	"strings"
	"testing"
)

// kubefleet has the capabilities of KubeFleet.
const kubefleet = "from-kubefleet.md"

// withoutTest begins the reason why no test shows a capability.
const withoutTest = "no test: "

// capabilities are how many there are of each group whose rows name tests: overrides, and staged updates.
var capabilities = map[string]int{"N": 20, "O": 31}

// TestEveryCapabilityOfKubeFleetHasATestOrAReason fails for a capability without a row, and for a row without a test that is there.
func TestEveryCapabilityOfKubeFleetHasATestOrAReason(t *testing.T) {
	source, rows := packages{}, map[string]row{}
	for _, r := range tables(read(t, kubefleet), "id", "there", "here", shownBy) {
		for _, id := range strings.Split(r.cells["id"], ", ") {
			if _, twice := rows[id]; twice {
				t.Errorf("%s, line %d: %s is there already", kubefleet, r.line, id)
			}
			rows[id] = r
		}
		names := quoted.FindAllStringSubmatch(r.cells[shownBy], -1)
		if r.cells["there"] == "" || r.cells["here"] == "" {
			t.Errorf("%s, line %d: a cell is empty", kubefleet, r.line)
		}
		if len(names) == 0 && !strings.HasPrefix(r.cells[shownBy], withoutTest) {
			t.Errorf("%s, line %d names no test, and no reason: %s", kubefleet, r.line, r.cells[shownBy])
		}
		for _, name := range names {
			if err := source.find(name[1]); err != nil {
				t.Errorf("%s, line %d: %v", kubefleet, r.line, err)
			}
		}
	}
	for group, count := range capabilities {
		for i := range count {
			id := fmt.Sprintf("%s-%d", group, i+1)
			if _, is := rows[id]; !is {
				t.Errorf("%s: there is no %s", kubefleet, id)
			}
			delete(rows, id)
		}
	}
	for id, r := range rows {
		t.Errorf("%s, line %d: there is no capability %s", kubefleet, r.line, id)
	}
}
