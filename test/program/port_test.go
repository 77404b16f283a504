// SPDX-License-Identifier: Apache-2.0

package program

import "testing"

func TestAReservedPortIsReservedOnce(t *testing.T) {
	t.Parallel()
	seen := map[int]bool{}
	for range 50 {
		port, err := ReservePort()
		if err != nil {
			t.Fatal(err)
		}
		defer port.Release()
		if seen[port.Number] {
			t.Errorf("port %d was given twice", port.Number)
		}
		seen[port.Number] = true
	}
}
