// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// one is what a target says of which one cluster's Ready is as given.
func one(generation int64, ready shipper.Condition) Status {
	sum := condition("Ready", ready.Status, "", "")
	if ready.Status != "True" {
		sum = condition("Ready", "False", "ClustersNotReady", "a: "+ready.Reason)
	}
	operational := condition("Operational", "True", "", "")
	return Status{
		Generation: generation, Conditions: []shipper.Condition{operational, sum},
		Clusters: []Cluster{{"a", []shipper.Condition{operational, ready}}},
	}
}

func TestTurns(t *testing.T) {
	ready := condition("Ready", "True", "", "")
	no := func(reason, message string) shipper.Condition { return condition("Ready", "False", reason, message) }
	found := one(1, no("InProgress", "1 of 2"))
	found.Found = true
	unreachable := one(1, condition("Ready", "Unknown", "ClusterUnreachable", ""))
	starts, stuck := no("InProgress", "1 of 2"), no("DeploymentStuck", "quota")
	two := func(a, b shipper.Condition) Status {
		said := one(1, a)
		said.Clusters = append(said.Clusters, Cluster{"b", one(1, b).Clusters[0].Conditions})
		if b.Status != "True" {
			said.Conditions = one(1, b).Conditions
		}
		return said
	}
	ample := func(s Status) Status {
		s.Ample = true
		return s
	}
	other := one(1, ready)
	other.Clusters = []Cluster{{"b", other.Clusters[0].Conditions}}
	for sentence, tc := range map[string]struct {
		before, after Status
		want          bool
	}{
		"nothing":                              {one(1, ready), one(1, ready), false},
		"one Pod more":                         {one(1, no("InProgress", "1 of 2")), one(1, no("InProgress", "2 of 3")), false},
		"a Pod that starts":                    {one(1, no("InProgress", "1 of 2")), one(1, no("PodsNotReady", "1/2")), false},
		"Pods that are not in endpoints yet":   {one(1, no("InProgress", "moved")), one(1, no("PodsNotInEndpoints", "1/2")), false},
		"what was asked for last begins":       {one(1, ready), one(2, no("InProgress", "scaling")), false},
		"asked for more while it begins":       {one(1, no("InProgress", "1 of 2")), one(2, no("InProgress", "1 of 3")), false},
		"what was asked for last is there":     {one(1, ready), one(2, ready), true},
		"it is ready":                          {one(1, no("InProgress", "1 of 2")), one(1, ready), true},
		"a Pod is lost":                        {one(1, ready), one(1, no("InProgress", "1 of 2")), true},
		"it is stuck":                          {one(1, no("InProgress", "1 of 2")), one(1, no("DeploymentStuck", "quota")), true},
		"it is stuck with what is new":         {one(1, ready), one(2, no("DeploymentStuck", "quota")), true},
		"it is not stuck any more":             {one(1, no("DeploymentStuck", "quota")), one(1, no("InProgress", "1 of 2")), true},
		"a cluster does not answer":            {one(1, no("InProgress", "1 of 2")), unreachable, true},
		"a cluster answers again":              {unreachable, one(1, no("InProgress", "1 of 2")), true},
		"first of all that nothing is there":   {Status{}, one(1, no("MissingDeployment", "found 0")), false},
		"first of all that it begins":          {Status{}, one(1, no("InProgress", "1 of 2")), false},
		"first of all that it is ready":        {Status{}, one(1, ready), true},
		"first of all that it is stuck":        {Status{}, one(1, no("DeploymentStuck", "quota")), true},
		"what was there is not any more":       {one(1, ready), one(2, no("MissingDeployment", "found 0")), true},
		"one of two clusters is ready":         {two(starts, starts), two(ready, starts), false},
		"both are ready":                       {two(ready, starts), two(ready, ready), true},
		"one is ready, the other is stuck":     {two(starts, starts), two(ready, stuck), true},
		"one is not stuck any more, but ready": {two(stuck, starts), two(ready, starts), true},
		"first of all that one of two is":      {Status{}, two(ready, starts), false},
		"first of all that both are":           {Status{}, two(ready, ready), true},
		"another cluster":                      {one(1, ready), other, true},
		"what is found first of all":           {Status{}, found, true},
		"what is found":                        {one(1, no("InProgress", "0 of 2")), found, true},
		"what is too much goes":                {one(1, ready), ample(one(1, no("InProgress", "moved"))), false},
		"what is too much cannot go":           {one(1, ready), ample(one(1, no("Failed", "denied"))), true},
		"what was asked for and is there":      {one(1, ready), ample(one(2, ready)), true},
	} {
		if got := turns(tc.before, tc.after); got != tc.want {
			t.Errorf("%s: turns is %t", sentence, got)
		}
	}
}

func TestHoldsBackLongerAndLonger(t *testing.T) {
	target := func(available int32) *shipper.CapacityTarget {
		ct := &shipper.CapacityTarget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web-0"}}
		ct.Status.Clusters = []shipper.ClusterCapacityStatus{{Name: "a", AvailableReplicas: available}}
		return ct
	}
	under, ready := one(1, condition("Ready", "False", "InProgress", "")), one(1, condition("Ready", "True", "", ""))
	pace := NewThrottle()
	for _, tc := range []struct {
		sentence      string
		at            time.Duration
		before, after int32
		says          Status
		want          time.Duration
	}{
		{"nothing to write", 0, 1, 1, under, 0},
		{"one more", 100 * time.Millisecond, 1, 2, under, 2 * time.Second},
		{"another one", 500 * time.Millisecond, 1, 3, under, 1600 * time.Millisecond},
		{"as it is written", 700 * time.Millisecond, 1, 1, under, 0},
		{"one more again", 800 * time.Millisecond, 1, 2, under, 2 * time.Second},
		{"the two seconds are over", 2800 * time.Millisecond, 1, 4, under, 0},
		{"one more after that", 2900 * time.Millisecond, 4, 5, under, 4 * time.Second},
		{"the four seconds are over", 7 * time.Second, 4, 5, under, 0},
		{"as it is written then", 8 * time.Second, 5, 5, under, 0},
		{"one more after that too", 9 * time.Second, 5, 6, under, 4 * time.Second},
		{"another four seconds are over", 13 * time.Second, 5, 6, under, 0},
		{"it is ready", 15 * time.Second, 6, 8, ready, 0},
		{"one more after it turned", 15500 * time.Millisecond, 8, 9, under, 0},
		{"another one after it turned", 16 * time.Second, 8, 9, under, 2 * time.Second},
	} {
		before := under
		if tc.sentence == "one more after it turned" { // nothing is there any more, which is a turn too
			before = ready
		}
		got := pace.DelayFor(UrgencyOf(before, tc.says), target(tc.before), target(tc.after), time.Unix(0, 0).Add(tc.at))
		if got != tc.want {
			t.Errorf("%s: held for %s, want %s", tc.sentence, got, tc.want)
		}
	}
}

// TestManyThatAreHeldBackLagLonger has so many be under way, each of which one second after the other wants to say how far it is.
func TestManyThatAreHeldBackLagLonger(t *testing.T) {
	target := func(i int, available int32) *shipper.CapacityTarget {
		ct := &shipper.CapacityTarget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("web-%d", i)}}
		ct.Status.Clusters = []shipper.ClusterCapacityStatus{{Name: "a", AvailableReplicas: available}}
		return ct
	}
	under, at := one(1, condition("Ready", "False", "InProgress", "")), func(second int) time.Time { return time.Unix(int64(second), 0) }
	for sentence, tc := range map[string]struct {
		others int
		gone   int // seconds since they were looked at
		want   time.Duration
	}{
		"few":                         {19, 0, 2 * time.Second},
		"a tenth of a second of each": {99, 0, 10 * time.Second},
		"not for ever":                {999, 0, 15 * time.Second},
		"many who are gone":           {999, 60, 2 * time.Second},
	} {
		pace := NewThrottle()
		for i := range tc.others {
			pace.DelayFor(UrgencyOf(under, under), target(i+1, 1), target(i+1, 2), at(0))
		}
		then := at(1 + tc.gone)
		held := pace.DelayFor(UrgencyOf(under, under), target(0, 1), target(0, 2), then)
		if held != tc.want {
			t.Errorf("%s: held for %s", sentence, held)
		}
		if held = pace.DelayFor(UrgencyOf(under, under), target(0, 1), target(0, 3), then.Add(held)); held != 0 {
			t.Errorf("%s: held for %s more", sentence, held)
		}
		if held = pace.DelayFor(UrgencyOf(under, one(1, condition("Ready", "True", "", ""))), target(0, 3), target(0, 4), then); held != 0 {
			t.Errorf("%s: that it is there is held for %s", sentence, held)
		}
	}
}

// TestACrowdHoldsBackNothingThatAClusterWaitsFor has 99 others be under way: where nobody else serves, a cluster goes on before
// others are as far (apis/rules/strategy), as soon as it is said that what was asked for last is there.
func TestACrowdHoldsBackNothingThatAClusterWaitsFor(t *testing.T) {
	target := func(i int, available int32) *shipper.CapacityTarget {
		ct := &shipper.CapacityTarget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("web-%d", i)}}
		ct.Status.Clusters = []shipper.ClusterCapacityStatus{{Name: "a", AvailableReplicas: available}}
		return ct
	}
	ready, starts := condition("Ready", "True", "", ""), condition("Ready", "False", "InProgress", "")
	down := condition("Ready", "Unknown", "ClusterUnreachable", "")
	two := func(generation int64, a, b shipper.Condition) Status {
		out := one(generation, b)
		out.Clusters = []Cluster{{"a", one(1, a).Clusters[0].Conditions}, {"b", one(1, b).Clusters[0].Conditions}}
		return out
	}
	for sentence, tc := range map[string]struct {
		before, after Status
		want          time.Duration
	}{
		"one cluster arrives":                        {two(1, starts, starts), two(1, ready, starts), time.Second},
		"one has what was asked for last":            {two(1, ready, ready), two(2, ready, starts), 2 * time.Second},
		"one has, and the other does not answer":     {two(1, ready, down), two(2, ready, down), 2 * time.Second},
		"one has, of which nothing was said":         {Status{}, two(1, ready, starts), 2 * time.Second},
		"none has yet what was asked for last":       {two(1, ready, ready), two(2, starts, starts), 10 * time.Second},
		"none has yet, of which nothing was said":    {Status{}, two(1, starts, starts), 10 * time.Second},
		"what is there is still there, others go on": {two(1, ready, starts), two(1, ready, starts), 10 * time.Second},
	} {
		pace, at := NewThrottle(), time.Unix(0, 0)
		for i := range 99 {
			pace.DelayFor(UrgencyOf(two(1, starts, starts), two(1, starts, starts)), target(i+1, 1), target(i+1, 2), at)
		}
		if held := pace.DelayFor(UrgencyOf(tc.before, tc.after), target(0, 1), target(0, 2), at.Add(time.Second)); held != tc.want {
			t.Errorf("%s: held for %s", sentence, held)
		}
	}
}

// TestOneClusterThatArrivesIsToldSoon has one of two clusters be there after the pause has grown.
func TestOneClusterThatArrivesIsToldSoon(t *testing.T) {
	target := func(available int32) *shipper.CapacityTarget {
		ct := &shipper.CapacityTarget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web-0"}}
		ct.Status.Clusters = []shipper.ClusterCapacityStatus{{Name: "a", AvailableReplicas: available}}
		return ct
	}
	starts, ready := condition("Ready", "False", "InProgress", ""), condition("Ready", "True", "", "")
	two := func(a shipper.Condition) Status {
		out := one(1, starts)
		out.Clusters = []Cluster{{"a", one(1, a).Clusters[0].Conditions}, {"b", one(1, starts).Clusters[0].Conditions}}
		return out
	}
	pace, at := NewThrottle(), time.Unix(0, 0)
	for n := range int32(4) { // the pause has grown to four seconds
		for left := time.Second; left > 0; at = at.Add(left) {
			left = pace.DelayFor(UrgencyOf(two(starts), two(starts)), target(n), target(n+1), at)
		}
	}
	if held := pace.DelayFor(UrgencyOf(two(starts), two(starts)), target(4), target(5), at); held != 4*time.Second {
		t.Errorf("one more Pod is told after %s", held)
	}
	if held := pace.DelayFor(UrgencyOf(two(starts), two(ready)), target(4), target(6), at); held != time.Second {
		t.Errorf("that one cluster is there is told after %s", held)
	}
}

func TestForgetsWhatIsHeldAndGone(t *testing.T) {
	named := func(name string, available int32) *shipper.CapacityTarget {
		ct := &shipper.CapacityTarget{ObjectMeta: metav1.ObjectMeta{Name: name}}
		ct.Status.Clusters = []shipper.ClusterCapacityStatus{{AvailableReplicas: available}}
		return ct
	}
	pace, began := NewThrottle(), time.Unix(0, 0)
	pace.DelayFor(Later, named("gone", 1), named("gone", 2), began)
	pace.DelayFor(Later, named("web-0", 1), named("web-0", 2), began.Add(forgetful+1))
	if len(pace.held) != 1 {
		t.Errorf("%d are held back", len(pace.held))
	}
}

func TestWhoeverLooksAgainLateWritesThen(t *testing.T) {
	named := func(name string, available int32) *shipper.CapacityTarget {
		ct := &shipper.CapacityTarget{ObjectMeta: metav1.ObjectMeta{Name: name}}
		ct.Status.Clusters = []shipper.ClusterCapacityStatus{{AvailableReplicas: available}}
		return ct
	}
	pace, began := NewThrottle(), time.Unix(0, 0)
	pace.DelayFor(Later, named("web-0", 1), named("web-0", 2), began)
	pace.DelayFor(Later, named("web-1", 1), named("web-1", 2), began.Add(2*time.Minute)) // others hold meanwhile
	if got := pace.DelayFor(Later, named("web-0", 1), named("web-0", 3), began.Add(2*time.Minute)); got != 0 {
		t.Errorf("what was held back two minutes ago is held for %s again", got)
	}
}
