// SPDX-License-Identifier: Apache-2.0

package fairqueue

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"shipper.dev/shipper/apis/rules/stamp"
)

// requests are written "namespace/name namespace/name".
func requests(text string) []reconcile.Request {
	var out []reconcile.Request
	for _, word := range strings.Fields(text) {
		namespace, name, _ := strings.Cut(word, "/")
		out = append(out, reconcile.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}})
	}
	return out
}

// begin makes a queue of Releases' names, for four workers. Applications that are called back… go back, as those that become does, and
// those that are called moves… are under way.
func begin(t *testing.T, becomes map[string]bool) *queue {
	t.Helper()
	made := newQueue(
		func(r reconcile.Request) string { return stamp.ApplicationName(r.Name) },
		func(_, application string) priority {
			switch {
			case strings.HasPrefix(application, "back") || becomes[application]:
				return retreat
			case strings.HasPrefix(application, "moves"):
				return changed
			}
			return idle
		}, 4,
	)("", workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	q, ok := made.(*queue)
	if !ok {
		t.Fatalf("it is a %T", made)
	}
	t.Cleanup(q.ShutDown)
	return q
}

// all is the order in which everything that waits is taken, each done before the next.
func (q *queue) all() string {
	var out []string
	for q.Len() > 0 {
		request, _, _ := q.GetWithPriority()
		out = append(out, request.String())
		q.Done(request)
	}
	return strings.Join(out, " ")
}

func TestTurns(t *testing.T) {
	tests := []struct {
		name, added, want string
		known             string // added before, as what was there when the controller began
	}{
		{name: "nothing waits"},
		{
			name:  "one namespace is served in the order in which its Applications came",
			added: "a/x-1-0 a/y-1-0 a/z-1-0",
			want:  "a/x-1-0 a/y-1-0 a/z-1-0",
		},
		{
			name:  "who comes last waits for one turn of each other namespace and not for its backlog",
			added: "crowd/a-1-0 crowd/b-1-0 crowd/c-1-0 crowd/d-1-0 other/x-1-0 third/y-1-0",
			want:  "crowd/a-1-0 other/x-1-0 third/y-1-0 crowd/b-1-0 crowd/c-1-0 crowd/d-1-0",
		},
		{
			name:  "two backlogs take turns",
			added: "a/k-1-0 a/l-1-0 a/m-1-0 b/k-1-0 b/l-1-0 b/m-1-0",
			want:  "a/k-1-0 b/k-1-0 a/l-1-0 b/l-1-0 a/m-1-0 b/m-1-0",
		},
		{
			name:  "in one namespace an Application of many Releases costs others one turn",
			added: "a/many-1-0 a/many-2-0 a/many-3-0 a/one-1-0",
			want:  "a/many-1-0 a/one-1-0 a/many-2-0 a/many-3-0",
		},
		{
			name:  "Applications of the same name in two namespaces are two",
			added: "a/app-1-0 a/app-2-0 b/app-1-0",
			want:  "a/app-1-0 b/app-1-0 a/app-2-0",
		},
		{
			name:  "who goes back goes first, also before the backlog of its own namespace",
			added: "a/k-1-0 a/l-1-0 a/back-1-0",
			want:  "a/back-1-0 a/k-1-0 a/l-1-0",
		},
		{
			name:  "a backlog of those who go back leaves every second turn to others",
			added: "a/back1-1-0 a/back2-1-0 a/back3-1-0 b/k-1-0 b/l-1-0",
			want:  "a/back1-1-0 b/k-1-0 a/back2-1-0 b/l-1-0 a/back3-1-0",
		},
		{
			name:  "those who go back take turns among themselves",
			added: "a/back1-1-0 a/back2-1-0 a/back3-1-0 b/back-1-0",
			want:  "a/back1-1-0 b/back-1-0 a/back2-1-0 a/back3-1-0",
		},
		{
			name:  "what was there when the controller began leaves every second turn to what happens",
			known: "a/k-1-0 a/l-1-0 a/m-1-0",
			added: "a/x-1-0 a/y-1-0",
			want:  "a/x-1-0 a/k-1-0 a/y-1-0 a/l-1-0 a/m-1-0",
		},
		{
			name:  "who was under way when the controller began comes before who was at rest",
			known: "a/k-1-0 a/l-1-0 a/m-1-0 b/moves-1-0 b/n-1-0 a/back-1-0",
			want:  "b/moves-1-0 a/k-1-0 a/back-1-0 b/n-1-0 a/l-1-0 a/m-1-0",
		},
		{
			name:  "who is aborted does not wait for all who seem to go back because a cluster is lost",
			known: "a/backs-1-0 a/backt-1-0 a/backu-1-0",
			added: "a/back-1-0",
			want:  "a/back-1-0 a/backs-1-0 a/backt-1-0 a/backu-1-0",
		},
		{
			name:  "with all three lines full nobody starves",
			known: "a/k-1-0 a/l-1-0",
			added: "a/back1-1-0 a/back2-1-0 a/back3-1-0 a/x-1-0 a/y-1-0",
			want:  "a/back1-1-0 a/x-1-0 a/back2-1-0 a/k-1-0 a/back3-1-0 a/y-1-0 a/l-1-0",
		},
		{
			name:  "what was known and then has something happen moves up",
			known: "a/k-1-0 a/l-1-0 a/m-1-0",
			added: "a/m-1-0",
			want:  "a/m-1-0 a/k-1-0 a/l-1-0",
		},
		{
			name:  "what happens twice waits once, and where it was",
			added: "a/k-1-0 a/l-1-0 a/m-1-0 a/l-1-0",
			want:  "a/k-1-0 a/l-1-0 a/m-1-0",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			q := begin(t, nil)
			q.AddWithOpts(priorityqueue.AddOpts{Priority: ptr.To(-100)}, requests(tt.known)...)
			for _, request := range requests(tt.added) {
				q.Add(request)
			}
			if diff := cmp.Diff(tt.want, q.all()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestWhoBeginsToGoBackMovesUp(t *testing.T) {
	becomes := map[string]bool{}
	q := begin(t, becomes)
	for _, request := range requests("a/k-1-0 a/l-1-0 b/m-1-0 b/n-1-0 b/n-2-0") {
		q.Add(request)
	}
	becomes["n"] = true
	q.Add(requests("b/n-2-0")[0])
	if diff := cmp.Diff("b/n-2-0 a/k-1-0 b/m-1-0 a/l-1-0 b/n-1-0", q.all()); diff != "" {
		t.Error(diff)
	}
	if left := q.order.queues; len(left[changed].parties)+len(left[retreat].parties) != 0 {
		t.Errorf("parties are remembered that have nothing waiting: %v", left)
	}
}

// TestANamespaceLeavesAWorkerToOthers has four workers, of which three may be one's.
func TestANamespaceLeavesAWorkerToOthers(t *testing.T) {
	q := begin(t, nil)
	take := func() string {
		request, _, _ := q.GetWithPriority()
		return request.String()
	}
	for _, request := range requests("crowd/k-1-0 crowd/l-1-0 crowd/m-1-0 crowd/n-1-0 crowd/o-1-0 crowd/p-1-0") {
		q.Add(request)
	}
	got := []string{take(), take(), take()}
	if n := q.Len(); n != 0 {
		t.Fatalf("%d may be worked on besides %v", n, got)
	}
	next := make(chan string)
	go func() { next <- take() }() // the fourth worker
	q.Add(requests("crowd/back-1-0")[0])
	q.Add(requests("other/x-1-0")[0])
	got = append(got, <-next)
	q.Add(requests("crowd/n-1-0")[0]) // waits already

	for _, ended := range requests("crowd/k-1-0 other/x-1-0 crowd/l-1-0 crowd/m-1-0 crowd/back-1-0") {
		if q.Done(ended); ended.Namespace == "crowd" {
			got = append(got, take())
		}
	}
	want := strings.Fields("crowd/k-1-0 crowd/l-1-0 crowd/m-1-0 other/x-1-0 crowd/back-1-0 crowd/n-1-0 crowd/o-1-0 crowd/p-1-0")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestWhoComesAgainWhileWorkedOnWaitsForItsTurn(t *testing.T) {
	q := begin(t, nil)
	for _, request := range requests("a/k-1-0 a/l-1-0 b/m-1-0") {
		q.Add(request)
	}
	first, _, _ := q.GetWithPriority()
	q.Add(first)
	q.Done(first)
	if diff := cmp.Diff("b/m-1-0 a/l-1-0 a/k-1-0", q.all()); diff != "" {
		t.Error(diff)
	}
}

func TestWhatHappensWhileItIsWorkedOnIsNotTakenForKnown(t *testing.T) {
	q := begin(t, nil)
	q.Add(requests("a/k-1-0")[0])
	worked, _, _ := q.GetWithPriority()
	q.AddWithOpts(priorityqueue.AddOpts{Priority: ptr.To(-100)}, worked)
	q.AddWithOpts(priorityqueue.AddOpts{}, worked)
	q.AddWithOpts(priorityqueue.AddOpts{Priority: ptr.To(-100)}, requests("a/l-1-0")...)
	q.Done(worked)
	if diff := cmp.Diff("a/k-1-0 a/l-1-0", q.all()); diff != "" {
		t.Error(diff)
	}
}

// TestNobodyIsLost adds and takes in an order that nobody thought of.
func TestNobodyIsLost(t *testing.T) {
	var added []string
	q := begin(t, nil)
	for i, name := range []string{"k", "back", "l", "m", "n", "o", "back2", "p"} {
		for _, namespace := range []string{"a", "b", "c"}[:1+i%3] {
			request := requests(namespace + "/" + name + "-1-0")[0]
			added = append(added, request.String())
			q.AddWithOpts(priorityqueue.AddOpts{Priority: ptr.To(-i % 2)}, request)
		}
	}
	taken := strings.Fields(q.all())
	slices.Sort(added)
	slices.Sort(taken)
	if diff := cmp.Diff(added, taken); diff != "" {
		t.Error(diff)
	}
}

// TestFewOfThoseAtRestAreWorkedOn has four workers, of which one may look at what rests.
func TestFewOfThoseAtRestAreWorkedOn(t *testing.T) {
	q := begin(t, nil)
	q.AddWithOpts(priorityqueue.AddOpts{Priority: ptr.To(-100)}, requests("a/rests1-0-0 b/rests2-0-0 c/rests3-0-0")...)
	first, _, _ := q.GetWithPriority()
	for _, request := range requests("d/moves-0-0 a/moves-0-0") {
		q.Add(request)
	}
	for _, want := range []string{"d/moves-0-0", "a/moves-0-0"} {
		if got, _, _ := q.GetWithPriority(); got.String() != want {
			t.Errorf("%s is next, not %s", got, want)
		}
	}
	q.Done(first)
	if got := q.all(); got != "b/rests2-0-0 c/rests3-0-0" {
		t.Errorf("left is %s", got)
	}
}

// TestWhoIsAtRestIsLookedAtWhenSomethingHappensToIt has one at rest be worked on for long, and another wait for that, beside workers that
// have nothing to do.
func TestWhoIsAtRestIsLookedAtWhenSomethingHappensToIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := begin(t, nil)
		q.AddWithOpts(priorityqueue.AddOpts{Priority: ptr.To(-100)}, requests("a/rests1-0-0 b/rests2-0-0")...)
		first, _, _ := q.GetWithPriority()
		var next reconcile.Request
		go func() { next, _, _ = q.GetWithPriority() }()
		synctest.Wait() // there is nothing for that worker
		if next.Name != "" {
			t.Fatalf("%s is looked at beside %s", next, first)
		}
		q.Add(requests("b/rests2-0-0")[0])
		synctest.Wait()
		if got := next.String(); got != "b/rests2-0-0" {
			t.Errorf("%q is looked at", got)
		}
	})
}

// TestWhoIsOnlyToBeLookedAtKeepsItsTurn has two wait for one at rest, and the first of them be added again, as when a cluster is lost.
func TestWhoIsOnlyToBeLookedAtKeepsItsTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := begin(t, nil)
		again := priorityqueue.AddOpts{Priority: ptr.To(-100)}
		q.AddWithOpts(again, requests("a/rests1-0-0 b/rests2-0-0 c/rests3-0-0")...)
		first, _, _ := q.GetWithPriority()
		var taken []string
		go func() {
			for request, _, shut := q.GetWithPriority(); !shut; request, _, shut = q.GetWithPriority() {
				taken = append(taken, request.String())
				q.Done(request)
			}
		}()
		synctest.Wait()
		q.AddWithOpts(again, requests("b/rests2-0-0")...)
		synctest.Wait()
		q.Done(first)
		synctest.Wait()
		if got := strings.Join(taken, " "); got != "b/rests2-0-0 c/rests3-0-0" {
			t.Errorf("taken are %s", got)
		}
	})
}

// TestWhoIsParkedAndHasSomethingUnderWaySinceIsLookedAt has one be parked, and its Application begin something that does not concern it,
// before it is to be looked at again, as when a cluster is lost.
func TestWhoIsParkedAndHasSomethingUnderWaySinceIsLookedAt(t *testing.T) {
	becomes := map[string]bool{}
	q := begin(t, becomes)
	again := priorityqueue.AddOpts{Priority: ptr.To(-100)}
	q.AddWithOpts(again, requests("a/rests1-0-0 b/rests2-0-0 c/rests3-0-0")...)
	if got := q.next() + " " + q.parkAll(); got != "a/rests1-0-0 b/rests2-0-0 c/rests3-0-0" {
		t.Fatalf("worked on and parked are %s", got)
	}
	becomes["rests3"] = true
	q.AddWithOpts(again, requests("b/rests2-0-0 c/rests3-0-0")...)
	if got := q.all(); got != "c/rests3-0-0" {
		t.Errorf("looked at are %q", got)
	}
}

// next is who is worked on next.
func (q *queue) next() string {
	request, _, _ := q.GetWithPriority()
	return request.String()
}

// parkAll has a worker find out of all that wait that they may not be worked on, and names them.
func (q *queue) parkAll() string {
	var out []string
	for q.Len() > 0 {
		request, _ := q.Get()
		if q.order.admit(request) {
			out = append(out, "not")
		}
		q.end(request)
		out = append(out, request.String())
	}
	return strings.Join(out, " ")
}

// TestWhoIsLookedAtAgainIsNotJudgedAgain has three be added once for each of two clusters, as after a start: judging them is what a start
// with thousands of Applications had been busy with.
func TestWhoIsLookedAtAgainIsNotJudgedAgain(t *testing.T) {
	judged := 0
	q, ok := newQueue(func(r reconcile.Request) string { return stamp.ApplicationName(r.Name) },
		func(string, string) priority { judged++; return idle }, 4,
	)("", workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]()).(*queue)
	if !ok {
		t.Fatal("it is another queue")
	}
	defer q.ShutDown()
	again := priorityqueue.AddOpts{Priority: ptr.To(-100)}
	all := requests("a/rests1-0-0 b/rests2-0-0 c/rests3-0-0")
	for range 2 {
		q.AddWithOpts(again, all...)
	}
	if judged != 3 {
		t.Errorf("judged %d times", judged)
	}
	q.Add(all[2])
	if got := q.all(); judged != 4 || got != "c/rests3-0-0 a/rests1-0-0 b/rests2-0-0" {
		t.Errorf("judged %d times, and taken are %s", judged, got)
	}
}

// TestWhoeverMayBeWorkedOnFindsAnIdleWorker has one at rest end of a namespace that has its share: that makes room for two.
func TestWhoeverMayBeWorkedOnFindsAnIdleWorker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := begin(t, nil)
		q.AddWithOpts(priorityqueue.AddOpts{Priority: ptr.To(-100)}, requests("a/rests1-0-0 b/rests2-0-0")...)
		first, _, _ := q.GetWithPriority()
		worked := make(chan string, 4)
		work := func() {
			request, _, _ := q.GetWithPriority()
			worked <- request.String()
		}
		for _, request := range requests("a/moves1-0-0 a/moves2-0-0 a/moves3-0-0") {
			q.Add(request)
		}
		for range 3 {
			go work()
			synctest.Wait()
		}
		q.Done(first)
		go work()
		synctest.Wait()
		var taken []string
		for len(worked) > 0 {
			taken = append(taken, <-worked)
		}
		slices.Sort(taken)
		if got := strings.Join(taken, " "); got != "a/moves1-0-0 a/moves2-0-0 a/moves3-0-0 b/rests2-0-0" {
			t.Errorf("worked on are %s", got)
		}
	})
}
