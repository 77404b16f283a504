// SPDX-License-Identifier: Apache-2.0

package waves_test

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/intstr"

	"shipper.dev/shipper/apis/rules/waves"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

func TestFailuresAllowedAreRoundedDown(t *testing.T) {
	for text, want := range map[string]int{"0": 0, "3": 3, "-1": 0, "10%": 1, "5%": 0, "25%": 4, "100%": 19, "lots": 0, "500": 100} {
		n := intstr.Parse(text)
		if got := waves.FailuresAllowed(&n, 19); got != want {
			t.Errorf("%s of 19 is %d, want %d", text, got, want)
		}
	}
	if got := waves.FailuresAllowed(nil, 19); got != 0 {
		t.Errorf("without a budget it is %d", got)
	}
}

func TestOverBudget(t *testing.T) {
	assigned := waves.Assigned{"canary": 0}
	clusters := []string{"canary"}
	for i := range 19 {
		name := fmt.Sprintf("p%02d", i)
		assigned[name], clusters = 1, append(clusters, name)
	}
	budget := func(text string) *intstr.IntOrString {
		if text == "" {
			return nil
		}
		return new(intstr.Parse(text))
	}
	for sentence, tc := range map[string]struct {
		all, canary, production string
		failed                  string
		want                    string
	}{
		"without a budget none may fail": {
			failed: "p00",
			want:   "1 cluster (p00) of wave production failed, and its maxFailures is 0",
		},
		"a wave has its own": {production: "2", failed: "p00 p01"},
		"beyond it": {
			production: "1", failed: "p00 p01",
			want: "2 clusters (p00, p01) of wave production failed, and its maxFailures is 1",
		},
		"a percentage of the wave is rounded down": {
			production: "10%", failed: "p00 p01",
			want: "2 clusters (p00, p01) of wave production failed, and its maxFailures is 10% of 19, which is 1",
		},
		"that of one wave is not that of another": {
			production: "2", failed: "canary",
			want: "1 cluster (canary) of wave canary failed, and its maxFailures is 0",
		},
		"that of all waves is that of each": {all: "2", failed: "p00 p01"},
		"but a wave all of whose clusters fail, fails": {
			all: "2", failed: "canary",
			want: "1 cluster (canary), all of wave canary, failed, which no maxFailures covers",
		},
		"whatever the wave says itself": {
			all: "2", canary: "1", failed: "canary",
			want: "1 cluster (canary), all of wave canary, failed, which no maxFailures covers",
		},
		"and whatever percentage it says": {
			canary: "100%", failed: "canary",
			want: "1 cluster (canary), all of wave canary, failed, which no maxFailures covers",
		},
		"a wave of one cluster that says 0 says why": {
			all: "2", canary: "0", failed: "canary",
			want: "1 cluster (canary) of wave canary failed, and its maxFailures is 0",
		},
		"all waves together have that of all": {
			all: "2", production: "9", failed: "p00 p01 p02",
			want: "3 clusters (p00, p01, p02) failed, and maxFailures is 2",
		},
		"a percentage of all is rounded down": {
			all: "9%", failed: "p00 p01",
			want: "2 clusters (p00, p01) failed, and maxFailures is 9% of 20, which is 1",
		},
		"a wave may have less than all": {
			all: "5", production: "0", failed: "p00",
			want: "1 cluster (p00) of wave production failed, and its maxFailures is 0",
		},
		"a wave may not have more than all": {
			all: "1", production: "5", failed: "p00 p01",
			want: "2 clusters (p00, p01) failed, and maxFailures is 1",
		},
		"a message names few of many": {
			production: "1", failed: "p00 p01 p02 p03 p04 p05 p06",
			want: "7 clusters (p00, p01, p02, p03, p04 and 2 more) of wave production failed, and its maxFailures is 1",
		},
		"a cluster that has left the waves still counts": {
			all: "1", failed: "gone p00",
			want: "2 clusters (gone, p00) failed, and maxFailures is 1",
		},
	} {
		s := &shipper.RolloutStrategy{MaxFailures: budget(tc.all), Waves: []shipper.Wave{
			{Name: "canary", MaxFailures: budget(tc.canary)}, {Name: "production", MaxFailures: budget(tc.production)},
		}}
		if got := assigned.OverBudget(s, clusters, strings.Fields(tc.failed)); got != tc.want {
			t.Errorf("%s:\n%q, want\n%q", sentence, got, tc.want)
		}
		if is := tc.all+tc.canary+tc.production != ""; waves.HasBudget(s) != is {
			t.Errorf("%s: it has a budget: %t", sentence, !is)
		}
	}
}

func TestNeverMoreThanAHundredFail(t *testing.T) {
	assigned, s := waves.Assigned{}, &shipper.RolloutStrategy{}
	var clusters, failed []string
	for i := range 4 {
		s.Waves = append(s.Waves, shipper.Wave{Name: fmt.Sprint("w", i), MaxFailures: new(intstr.FromString("100%"))})
		for j := range 30 {
			name := fmt.Sprintf("c%d-%02d", i, j)
			if assigned[name], clusters = int32(i), append(clusters, name); j < 26 {
				failed = append(failed, name)
			}
		}
	}
	if got := assigned.OverBudget(s, clusters, failed[:100]); got != "" {
		t.Errorf("100 of them: %s", got)
	}
	if got := assigned.OverBudget(s, clusters, failed[:101]); !strings.HasSuffix(got, "failed, and at most 100 may") {
		t.Errorf("101 of them: %s", got)
	}
}

func TestAFailedClusterTakesNoSlotAndKeepsNoneFromBeginning(t *testing.T) {
	s := &shipper.RolloutStrategy{Waves: []shipper.Wave{{Name: "canary"}, {Name: "prod"}}}
	got := waves.Begin(s, []waves.Cluster{
		{Name: "a", Wave: 0, State: waves.Failed}, {Name: "b", Wave: 0, State: waves.Failed}, {Name: "c", Wave: 1, State: waves.Failed},
		{Name: "d", Wave: 1, State: waves.Waiting}, {Name: "e", Wave: 1, State: waves.Waiting},
	})
	if len(got) != 1 || got[0] != "d" {
		t.Errorf("%v begin, want [d]", got)
	}
}
