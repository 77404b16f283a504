// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

func TestSharesAreWhatWholePodsGive(t *testing.T) {
	type said struct {
		Got, Wanted  string
		Above, Below bool
		Enough       int32
	}
	for sentence, tc := range map[string]struct {
		step     shipper.RolloutStrategyStep
		replicas []int32
		want     []said
	}{
		"one Pod of two for a weight of 5":        {step("canary", 5, 100, 5, 95), of(1), []said{{"50 %", "5 %", true, false, 25}}},
		"one Pod of eleven for a weight of 10":    {step("canary", 10, 100, 10, 90), of(10), []said{{"9.1 %", "10 %", false, false, 12}}},
		"half of the Pods for half of the weight": {step("50/50", 50, 50, 50, 50), of(3), []said{{"50 %", "50 %", false, false, 1}}},
		"exactly 1.5 times the weight":            {step("canary", 25, 75, 1, 5), of(4), []said{{"25 %", "17 %", false, false, 7}}},
		"an incumbent with too few Pods for any number of replicas": {
			step("canary", 100, 1, 10, 90), of(10), []said{{"67 %", "10 %", true, false, 0}},
		},
		"a contender with too few Pods": {step("canary", 10, 100, 90, 10), of(10), []said{{"33 %", "90 %", false, true, 1}}},
		"two Deployments, which are rounded up one by one": {
			step("canary", 10, 90, 10, 90), of(1, 1), []said{{"33 %", "10 %", true, false, 13}},
		},
		"a contender without traffic":  {step("staging", 1, 100, 0, 100), of(10), nil},
		"an incumbent without traffic": {step("full on", 100, 0, 100, 0), of(10), nil},
		"no replicas":                  {step("canary", 5, 95, 5, 95), of(0), nil},
		"less than one percent":        {step("canary", 1, 100, 1, 999), of(100), []said{{"1 %", "0.1 %", true, false, 1997}}},
	} {
		t.Run(sentence, func(t *testing.T) {
			var got []said
			for _, s := range Shares(&shipper.RolloutStrategy{Steps: []shipper.RolloutStrategyStep{tc.step}}, tc.replicas) {
				got = append(got, said{s.Got(), s.Wanted(), s.Above(), s.Below(), Enough(tc.step)})
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestFromEnoughReplicasOnNoNumberIsAboveTheWeight(t *testing.T) {
	for _, s := range []shipper.RolloutStrategyStep{
		step("canary", 5, 100, 5, 95), step("canary", 10, 90, 10, 90), step("canary", 1, 99, 1, 99), step("canary", 25, 75, 20, 80),
		step("canary", 30, 100, 1, 999),
	} {
		above := func(n int32) bool {
			shares := Shares(&shipper.RolloutStrategy{Steps: []shipper.RolloutStrategyStep{s}}, of(n))
			return len(shares) == 1 && shares[0].Above()
		}
		enough := Enough(s)
		if enough <= 1 || !above(enough-1) {
			t.Errorf("%d replicas are not the least that are enough for %+v", enough, s)
		}
		for n := enough; n < enough+1000; n++ {
			if above(n) {
				t.Errorf("%d replicas are not enough for %+v, and %d are said to be", n, s, enough)
			}
		}
	}
}

func TestTheWorstShareIsTheFarthestAboveItsWeight(t *testing.T) {
	s := &shipper.RolloutStrategy{Steps: []shipper.RolloutStrategyStep{
		step("ten", 10, 100, 10, 90), step("five", 5, 100, 5, 95), step("half", 50, 50, 50, 50),
	}}
	worst, found := Worst(Shares(s, of(1)))
	if want := (Share{Step: 1, Name: "five", Weight: 5, Total: 100, Serving: 1, All: 2}); !found || worst != want {
		t.Errorf("%+v is the worst, and not %+v", worst, want)
	}
	if worst, found := Worst(Shares(s, of(100))); found {
		t.Errorf("%+v is none that is above its weight", worst)
	}
}

func TestAPlanSaysTheShareBesideTheWeight(t *testing.T) {
	var got []string
	for _, s := range Steps(&shipper.RolloutStrategy{Steps: []shipper.RolloutStrategyStep{
		step("staging", 1, 100, 0, 100), step("canary", 5, 100, 5, 95), step("full on", 100, 0, 100, 0),
	}}, of(1), of(1)) {
		got = append(got, s.Requests())
	}
	want := []string{"", ": the contender serves 50 % of the requests, for a weight of 5 %", ""}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
