// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"testing"

	"k8s.io/apimachinery/pkg/util/sets"

	rules "shipper.dev/shipper/apis/rules/traffic"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

func TestPodsThatServeGoOnceOthersServe(t *testing.T) {
	plan := func(needed, serving int) rules.Plan { return rules.Plan{Needed: needed, Serving: serving} }
	tests := map[string]struct {
		// weights and plans of the Releases old and new, in this order.
		weights [2]uint32
		plans   [2]rules.Plan
		lacking []string
		unknown bool
		want    bool
	}{
		"both serve as asked":                       {[2]uint32{50, 50}, [2]rules.Plan{plan(2, 2), plan(2, 2)}, nil, false, true},
		"its traffic has to go first":               {[2]uint32{0, 100}, [2]rules.Plan{plan(0, 4), plan(4, 4)}, nil, false, false},
		"its traffic is gone":                       {[2]uint32{0, 100}, [2]rules.Plan{plan(0, 0), plan(4, 4)}, nil, false, true},
		"the other does not serve yet":              {[2]uint32{50, 50}, [2]rules.Plan{plan(2, 2), plan(2, 1)}, nil, false, false},
		"the other lacks pods":                      {[2]uint32{50, 50}, [2]rules.Plan{plan(2, 2), plan(1, 1)}, []string{"new"}, false, false},
		"the other lacks pods, and is to have none": {[2]uint32{100, 0}, [2]rules.Plan{plan(4, 4), plan(0, 0)}, []string{"new"}, false, true},
		"unknown, and the other is to have traffic": {[2]uint32{50, 50}, [2]rules.Plan{plan(2, 2), plan(2, 2)}, nil, true, false},
		"unknown, and the other is to have none":    {[2]uint32{100, 0}, [2]rules.Plan{plan(4, 4), plan(0, 0)}, nil, true, true},
		"it lacks pods itself":                      {[2]uint32{50, 50}, [2]rules.Plan{plan(2, 2), plan(2, 2)}, []string{"old"}, false, true},
		"the other serves, and is to have none":     {[2]uint32{100, 0}, [2]rules.Plan{plan(4, 4), plan(0, 1)}, nil, false, true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			service, _ := production("web")
			seen := observation{backends: []backend{{service: &service, app: rules.Application{Releases: []rules.Release{
				{Name: "old", Pods: []rules.Pod{{Name: "old-1", Serving: true}, {Name: "old-2"}}},
			}}}}}
			plans := map[*shipper.TrafficTarget][]Outcome{}
			var valid []*shipper.TrafficTarget
			for i, release := range []string{"old", "new"} {
				tt, want := asks(release, tc.weights[i])
				valid = append(valid, tt)
				plans[tt] = []Outcome{{want: want, service: &service, plan: tc.plans[i]}}
			}
			serving := seen.serving(valid, plans, ClusterState{Lacking: sets.New(tc.lacking...), Unknown: tc.unknown})
			if got := serving.MayRemove("old"); got != tc.want {
				t.Errorf("replaced: %t, want %t", got, tc.want)
			}
			if n := serving.Pods([]string{"old-1", "old-2", "other"}); n != 1 {
				t.Errorf("%d pods serve, want 1", n)
			}
		})
	}
	if (Serving{unknown: true}).MayRemove("old") || (Serving{}).MayRemove("old") {
		t.Error("a Release is replaced, and what serves is not known")
	}
}

func TestPodsOfAServiceThatIsLeftToCapacityDoNotServe(t *testing.T) {
	service, _ := production("web")
	left := backend{service: &service, left: true, app: rules.Application{Releases: []rules.Release{
		{Name: "old", Pods: []rules.Pod{{Name: "old-1", Serving: true}}},
	}}}
	if n := (observation{backends: []backend{left}}).serving(nil, nil, ClusterState{}).Pods([]string{"old-1"}); n != 0 {
		t.Errorf("%d pods serve, want 0", n)
	}
}
