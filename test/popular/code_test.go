// SPDX-License-Identifier: Apache-2.0

package popular

import (
	"testing"

	"shipper.dev/shipper/test/pod"
)

func TestGoKnowsWhatCodeIsTested(t *testing.T) {
	if err := pod.ReadCode(t.Context()); err != nil {
		t.Fatal(err)
	}
}
