// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func requestOf(name string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Name: name}}
}

// newQueued makes places and the queue that they call requests to.
func newQueued(t *testing.T, most int) (*Slots, queue) {
	t.Helper()
	q := workqueue.NewTypedRateLimitingQueue(RateLimiter())
	t.Cleanup(q.ShutDown)
	p := NewSlots("test", most, nil)
	if err := p.Source().Start(t.Context(), q); err != nil {
		t.Fatal(err)
	}
	return p, q
}

// enter begins a pass and reports whether it got in.
func (p *Slots) enter(name, clusters string) (*SlotRequest, bool) {
	pass := p.Begin(requestOf(name))
	return pass, pass.Acquire(strings.Fields(clusters))
}

// called takes all out that wait in a queue.
func called(q queue) string {
	var out []string
	for q.Len() > 0 {
		request, _ := q.Get()
		out = append(out, request.Name)
		q.Done(request)
	}
	return strings.Join(out, ",")
}

func TestWhoFindsAClusterFullIsCalledWhenThereIsAPlace(t *testing.T) {
	p, q := newQueued(t, 2)
	first, ok := p.enter("first", "a b")
	_, ok2 := p.enter("second", "a")
	third, ok3 := p.enter("third", "a b")
	third.End()
	fourth, ok4 := p.enter("fourth", "b")
	if diff := cmp.Diff([]bool{true, true, false, true}, []bool{ok, ok2, ok3, ok4}); diff != "" {
		t.Error("who is in:", diff)
	}
	first.Release("b")
	fourth.End()
	if got := called(q); got != "" {
		t.Errorf("called before there is a place: %s", got)
	}
	first.Release("a")
	first.End()
	if got := called(q); got != "third" {
		t.Errorf("called: %q", got)
	}
	if _, ok := p.enter("late", "a"); ok {
		t.Error("somebody took the place of who was called")
	}
	if _, ok := p.enter("third", "a b"); !ok {
		t.Error("who was called has no place")
	}
}

func TestWhoWaitsForOneClusterKeepsNoPlaceInAnother(t *testing.T) {
	p, q := newQueued(t, 1)
	inA, _ := p.enter("in a", "a")
	inB, _ := p.enter("in b", "b")
	if waits, ok := p.enter("both", "a b"); ok {
		t.Fatal("there are two in a")
	} else {
		waits.End()
	}
	inA.End()
	if got := called(q); got != "both" {
		t.Fatalf("called: %q", got)
	}
	// Now b is full.
	if waits, ok := p.enter("both", "a b"); ok {
		t.Fatal("there are two in b")
	} else {
		waits.End()
	}
	if other, ok := p.enter("other", "a"); !ok {
		t.Error("nobody is in a and it is full")
	} else {
		other.End()
	}
	inB.End()
	if got := called(q); got != "both" {
		t.Fatalf("called: %q", got)
	}
	both, ok := p.enter("both", "a b")
	if !ok {
		t.Error("who was called last has no place")
	}
	both.End()
	if len(p.sites)+len(p.reserved)+len(p.credits)+len(p.passes) != 0 {
		t.Errorf("remembered: %v %v %v %v", p.sites, p.reserved, p.credits, p.passes)
	}
}

// crowd is clusters that are always full: whoever ends, somebody waits already.
type crowd struct {
	t      *testing.T
	p      *Slots
	q      queue
	inside map[string][]*SlotRequest
	number int
}

// come has somebody come who needs one cluster only.
func (c *crowd) come(cluster string) {
	c.number++
	pass, ok := c.p.enter(fmt.Sprint(cluster, " ", c.number), cluster)
	if ok {
		c.inside[cluster] = append(c.inside[cluster], pass)
		return
	}
	pass.End()
}

// end ends who was in a cluster first, and reports whether who needs all of some clusters gets in then.
func (c *crowd) end(cluster string, all ...string) (in *SlotRequest) {
	c.t.Helper()
	c.come(cluster)
	c.inside[cluster][0].End()
	c.inside[cluster] = c.inside[cluster][1:]
	for name := range strings.SplitSeq(called(c.q), ",") {
		needs, _, narrow := strings.Cut(name, " ")
		switch {
		case name == "":
		case narrow:
			pass, ok := c.p.enter(name, needs)
			if !ok {
				c.t.Fatalf("%s was called and is not in", name)
			}
			c.inside[needs] = append(c.inside[needs], pass)
		default:
			pass, ok := c.p.enter(name, strings.Join(all, " "))
			if ok {
				in = pass
			} else {
				pass.End()
			}
		}
	}
	return in
}

func TestWhoNeedsClustersThatAreAlwaysFullGetsIn(t *testing.T) {
	for most, crowded := range map[int]int{1: 2, 2: 3, 3: 4, 10: 15} {
		t.Run(fmt.Sprint(most, " places"), func(t *testing.T) { testAlwaysFull(t, most, crowded) })
	}
}

// testAlwaysFull has clusters of so many places, in which there may be some more of those to whom one is owed.
func testAlwaysFull(t *testing.T, most, crowded int) {
	clusters := []string{"a", "b", "c"}
	p, q := newQueued(t, most)
	c := &crowd{t: t, p: p, q: q, inside: map[string][]*SlotRequest{}}
	for range 2 * most {
		for _, cluster := range clusters {
			c.come(cluster)
		}
	}
	first, _ := p.enter("wide", strings.Join(clusters, " "))
	first.End()
	var wide *SlotRequest
	for round := 0; wide == nil; round++ {
		if round == 1000 {
			t.Fatal("who needs all of them never gets in")
		}
		wide = c.end(clusters[round%len(clusters)], clusters...)
	}
	for _, cluster := range clusters {
		if n := p.sites[cluster].inside; n > crowded {
			t.Errorf("%d are in %s", n, cluster)
		}
	}
	wide.End()
	for _, cluster := range clusters {
		if n := p.sites[cluster].inside; n != most {
			t.Errorf("%d are in %s when it has left", n, cluster)
		}
	}
	if len(p.credits) != 0 {
		t.Errorf("remembered: %v", p.credits)
	}
}

func TestWhatIsOwedFillsNoClusterFurther(t *testing.T) {
	p, q := newQueued(t, 2)
	for _, name := range []string{"a 1", "a 2"} {
		p.enter(name, "a")
	}
	inB := []*SlotRequest{}
	for _, name := range []string{"b 1", "b 2"} {
		pass, _ := p.enter(name, "b")
		inB = append(inB, pass)
	}
	for _, name := range []string{"w 1", "w 2"} {
		p.credit(requestOf(name), []string{"a"})
		pass, _ := p.enter(name, "a b")
		pass.End()
	}
	for _, pass := range inB {
		pass.End()
	}
	if got := called(q); got != "w 1,w 2" {
		t.Fatalf("called: %q", got)
	}
	_, first := p.enter("w 1", "a b")
	_, second := p.enter("w 2", "a b")
	if !first || second {
		t.Errorf("of two to whom a place is owed, in are: %t %t", first, second)
	}
	if diff := cmp.Diff(map[reconcile.Request][]string{requestOf("w 2"): {"a", "b"}}, p.credits); diff != "" {
		t.Error(diff)
	}
	p.Begin(requestOf("w 2")).End() // its object is not there any more
	if len(p.credits) != 0 {
		t.Errorf("remembered: %v", p.credits)
	}
}

func TestAPlaceThatNobodyTakesGoesToTheNext(t *testing.T) {
	p, q := newQueued(t, 1)
	first, _ := p.enter("first", "a")
	for _, name := range []string{"gone", "next"} {
		pass, _ := p.enter(name, "a")
		pass.End()
	}
	first.End()
	if got := called(q); got != "gone" {
		t.Fatalf("called: %q", got)
	}
	p.Begin(requestOf("gone")).End() // its object is not there any more
	if got := called(q); got != "next" {
		t.Fatalf("called: %q", got)
	}
}

func TestACallDuringAPassIsForTheNextPass(t *testing.T) {
	p, q := newQueued(t, 1)
	first, _ := p.enter("first", "a")
	waits, _ := p.enter("waits", "a")
	first.End()
	waits.End()
	if got := called(q); got != "waits" {
		t.Fatalf("called: %q", got)
	}
	if _, ok := p.enter("other", "a"); ok {
		t.Error("the place was given away")
	}
	if _, ok := p.enter("waits", "a"); !ok {
		t.Error("who was called has no place")
	}
}

func TestAClusterThatIsNamedTwiceTakesOnePlace(t *testing.T) {
	p, _ := newQueued(t, 1)
	twice, ok := p.enter("twice", "a a")
	if !ok {
		t.Error("it is in its own way")
	}
	twice.Release("a")
	twice.Release("a")
	twice.End()
	if len(p.sites) != 0 {
		t.Errorf("remembered: %v", p.sites)
	}
}

func TestWithoutPlacesEverybodyIsIn(t *testing.T) {
	var p *Slots
	pass := p.Begin(requestOf("any"))
	defer pass.End()
	if !pass.Acquire([]string{"a"}) {
		t.Error("it is not")
	}
	pass.Release("a")
}

// TestAClusterThatHangsKeepsSomeWorkersOnly has four workers and a cluster in which nothing ends: all that does not need it is
// done meanwhile, whatever was first, and the rest is when it answers again.
func TestAClusterThatHangsKeepsSomeWorkersOnly(t *testing.T) {
	p, q := newQueued(t, 2)
	needs := map[string]string{}
	for _, name := range []string{"h1", "h2", "h3", "h4", "h5", "h6", "f1", "f2", "f3", "f4"} {
		needs[name] = map[byte]string{'h': "fine hung", 'f': "fine"}[name[0]]
		q.Add(requestOf(name))
	}
	answers, done := make(chan struct{}), make(chan string, len(needs))
	work := func(request reconcile.Request) {
		pass := p.Begin(request)
		defer pass.End()
		clusters := strings.Fields(needs[request.Name])
		if !pass.Acquire(clusters) {
			return
		}
		pass.Release("fine")
		if len(clusters) > 1 {
			<-answers
		}
		done <- request.Name
	}
	var workers sync.WaitGroup
	for range 4 {
		workers.Go(func() {
			for {
				request, over := q.Get()
				if over {
					return
				}
				work(request)
				q.Done(request)
			}
		})
	}
	seen := map[string]bool{}
	for range 4 {
		seen[<-done] = true
	}
	if diff := cmp.Diff(map[string]bool{"f1": true, "f2": true, "f3": true, "f4": true}, seen); diff != "" {
		t.Error(diff)
	}
	close(answers)
	for range 6 {
		seen[<-done] = true
	}
	if len(seen) != len(needs) {
		t.Errorf("done: %v", seen)
	}
	q.ShutDown()
	workers.Wait()
}

func TestWhoIsInAClusterIsPublished(t *testing.T) {
	f := New(Options{})
	p := f.Slots("capacity", 1, nil)
	p.enter("in", "a")
	p.enter("out", "a")
	registry := prometheus.NewRegistry()
	if err := f.Publish(registry); err != nil {
		t.Fatal(err)
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			words := []string{family.GetName()}
			for _, label := range m.GetLabel() {
				words = append(words, label.GetValue())
			}
			got[strings.Join(words, " ")] = m.GetGauge().GetValue()
		}
	}
	want := map[string]float64{"shipper_cluster_targets a capacity working": 1, "shipper_cluster_targets a capacity waiting": 1}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
