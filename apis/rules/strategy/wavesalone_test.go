// SPDX-License-Identifier: Apache-2.0

package strategy_test

import (
	"testing"

	"shipper.dev/shipper/apis/rules/position"
)

// alone is a complete first Release with waves.
func alone(t *testing.T) *fleet {
	f := &fleet{app: newApp(), t: t, bound: 4}
	f.next(3)
	f.untouched = nil
	for _, at := range []position.Position{{}, {Step: 2}, {Wave: 1}, {Wave: 1, Step: 2}} {
		f.goes(at.Wave, at.Step)
		f.settles()
		f.isAt(at)
	}
	return f
}

// A client that does not know targetWave and writes the whole object drops the field: that is such a move back.
func TestAFirstReleaseThatGoesBackAWaveKeepsTraffic(t *testing.T) {
	f := alone(t)
	f.moveBack(position.Position{Wave: 0, Step: 2})
	f.settles()
	f.serves("after the move back", 4)
}
