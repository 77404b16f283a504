// SPDX-License-Identifier: Apache-2.0

package strategy_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/intstr"

	"shipper.dev/shipper/apis/rules/position"
	"shipper.dev/shipper/apis/rules/waves"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// newPairs has a new Release with two waves of two clusters each: a and b, then c and d.
func newPairs(t *testing.T) *fleet {
	t.Helper()
	f := newFleet(t, 1)
	f.newest().Spec.Environment.Strategy.Waves[0].MaxConcurrency = new(intstr.FromInt32(2))
	f.newest().Annotations[shipper.ReleaseWavesAnnotation] = waves.Assigned{"a": 0, "b": 0, "c": 1, "d": 1}.String()
	f.bound, f.untouched = 4, []string{"c", "d"}
	f.settles()
	return f
}

func TestNoClusterBeginsWhileTooManyOfTheWavesBeforeAreNotReady(t *testing.T) {
	f := newPairs(t)
	f.goes(0, 2)
	f.settles()
	f.down["a"], f.down["b"] = true, true
	f.tick()
	f.goes(1, 0)
	f.untouched = []string{"c", "d"}
	f.settles()
	is := f.plan.Step
	var names []string
	for _, l := range is.Lacking {
		names = append(names, l.Cluster)
	}
	if diff := cmp.Diff([]string{"a", "b"}, names); diff != "" || is.Converged || !is.DoneWaveUnhealthy {
		t.Errorf("%+v (-want +got):\n%s", is, diff)
	}
	f.down["a"], f.untouched = false, nil
	f.tick() // the plan of the first tick does not know of it yet
	f.settles()
	if is := f.plan.Step; is.DoneWaveUnhealthy || !is.Converged {
		t.Errorf("with one of them back: %+v", is)
	}
	f.isAt(position.Position{Wave: 1, Step: 0})
}

func TestALostClusterOfTheWaveInFrontIsAwaitedAloneAndFollowsWhenItIsBack(t *testing.T) {
	f := newPairs(t)
	f.goes(0, 2)
	f.tick()
	f.down["a"] = true
	f.settles()
	f.wants("the other cluster of the wave gets there", map[string]int32{"a": 4, "b": 4})
	is := f.plan.Step
	if is.Converged || is.DoneWaveUnhealthy || len(is.Lacking) != 1 || is.Lacking[0].Cluster != "a" || is.Lacking[0].Reachable {
		t.Errorf("%+v", is)
	}
	f.isAt(position.Position{Wave: 0, Step: 0})
	f.down["a"] = false
	f.tick()
	f.settles()
	f.isAt(position.Position{Wave: 0, Step: 2})
}
