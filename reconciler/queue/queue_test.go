// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// requests parses "namespace/name namespace/name".
func requests(text string) []reconcile.Request {
	var out []reconcile.Request
	for _, word := range strings.Fields(text) {
		namespace, name, _ := strings.Cut(word, "/")
		out = append(out, reconcile.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}})
	}
	return out
}

// begin makes a queue for four workers. Applications called back… and those in retreats are urgent, and those called moves… have a
// rollout in progress.
func begin(t *testing.T, retreats map[string]bool) *queue[reconcile.Request] {
	t.Helper()
	return newQueue(t, 4, func(r reconcile.Request) Priority {
		switch {
		case strings.HasPrefix(r.Name, "back") || retreats[r.Name]:
			return Urgent
		case strings.HasPrefix(r.Name, "moves"):
			return Normal
		}
		return Low
	})
}

func newQueue(t *testing.T, workers int, priority func(reconcile.Request) Priority) *queue[reconcile.Request] {
	t.Helper()
	made := Objects(workers, priority)("", workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	q, ok := made.(*queue[reconcile.Request])
	if !ok {
		t.Fatalf("it is a %T", made)
	}
	t.Cleanup(q.ShutDown)
	return q
}

// all is the order in which everything that waits is taken, each done before the next.
func all(q *queue[reconcile.Request]) string {
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
			added: "a/x a/y a/z",
			want:  "a/x a/y a/z",
		},
		{
			name:  "who comes last waits for one turn of each other namespace and not for its backlog",
			added: "crowd/a crowd/b crowd/c crowd/d other/x third/y",
			want:  "crowd/a other/x third/y crowd/b crowd/c crowd/d",
		},
		{
			name:  "two backlogs take turns",
			added: "a/k a/l a/m b/k b/l b/m",
			want:  "a/k b/k a/l b/l a/m b/m",
		},
		{
			name:  "who goes back goes first, also before the backlog of its own namespace",
			added: "a/k a/l a/back",
			want:  "a/back a/k a/l",
		},
		{
			name:  "a backlog of urgent requests leaves every second turn to others",
			added: "a/back1 a/back2 a/back3 b/k b/l",
			want:  "a/back1 b/k a/back2 b/l a/back3",
		},
		{
			name:  "urgent requests take turns among themselves",
			added: "a/back1 a/back2 a/back3 b/back",
			want:  "a/back1 b/back a/back2 a/back3",
		},
		{
			name:  "what was there when the controller began leaves every second turn to what happens",
			known: "a/k a/l a/m",
			added: "a/x a/y",
			want:  "a/x a/k a/y a/l a/m",
		},
		{
			name:  "who was under way when the controller began comes before who was at rest",
			known: "a/k a/l a/m b/moves b/n a/back",
			want:  "b/moves a/k a/back b/n a/l a/m",
		},
		{
			name:  "who is aborted does not wait for all who seem to go back because a cluster is lost",
			known: "a/backs a/backt a/backu",
			added: "a/back",
			want:  "a/back a/backs a/backt a/backu",
		},
		{
			name:  "with all three levels full no namespace starves",
			known: "a/k a/l",
			added: "a/back1 a/back2 a/back3 a/x a/y",
			want:  "a/back1 a/x a/back2 a/k a/back3 a/y a/l",
		},
		{
			name:  "what was known and then has something happen moves up",
			known: "a/k a/l a/m",
			added: "a/m",
			want:  "a/m a/k a/l",
		},
		{
			name:  "what happens twice waits once, and where it was",
			added: "a/k a/l a/m a/l",
			want:  "a/k a/l a/m",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			q := begin(t, nil)
			q.AddWithOpts(priorityqueue.AddOpts{Priority: ptr.To(-100)}, requests(tt.known)...)
			for _, request := range requests(tt.added) {
				q.Add(request)
			}
			if diff := cmp.Diff(tt.want, all(q)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestARequestThatBecomesUrgentMovesUp(t *testing.T) {
	becomes := map[string]bool{}
	q := begin(t, becomes)
	for _, request := range requests("a/k a/l b/m b/n b/n-2-0") {
		q.Add(request)
	}
	becomes["n-2-0"] = true
	q.Add(requests("b/n-2-0")[0])
	if diff := cmp.Diff("b/n-2-0 a/k b/m a/l b/n", all(q)); diff != "" {
		t.Error(diff)
	}
	if left := q.order.levels; len(left[Normal].waiting)+len(left[Urgent].waiting) != 0 {
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
	for _, request := range requests("crowd/k crowd/l crowd/m crowd/n crowd/o crowd/p") {
		q.Add(request)
	}
	got := []string{take(), take(), take()}
	if n := q.Len(); n != 0 {
		t.Fatalf("%d may be worked on besides %v", n, got)
	}
	next := make(chan string)
	go func() { next <- take() }() // the fourth worker
	q.Add(requests("crowd/back")[0])
	q.Add(requests("other/x")[0])
	got = append(got, <-next)
	q.Add(requests("crowd/n")[0]) // waits already

	for _, ended := range requests("crowd/k other/x crowd/l crowd/m crowd/back") {
		if q.Done(ended); ended.Namespace == "crowd" {
			got = append(got, take())
		}
	}
	want := strings.Fields("crowd/k crowd/l crowd/m other/x crowd/back crowd/n crowd/o crowd/p")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestARequestAddedDuringItsWorkWaitsForItsTurn(t *testing.T) {
	q := begin(t, nil)
	for _, request := range requests("a/k a/l b/m") {
		q.Add(request)
	}
	first, _, _ := q.GetWithPriority()
	q.Add(first)
	q.Done(first)
	if diff := cmp.Diff("b/m a/l a/k", all(q)); diff != "" {
		t.Error(diff)
	}
}

func TestAnEventDuringWorkOutranksABackgroundRequest(t *testing.T) {
	q := begin(t, nil)
	q.Add(requests("a/k")[0])
	worked, _, _ := q.GetWithPriority()
	q.AddWithOpts(priorityqueue.AddOpts{Priority: ptr.To(-100)}, worked)
	q.AddWithOpts(priorityqueue.AddOpts{}, worked)
	q.AddWithOpts(priorityqueue.AddOpts{Priority: ptr.To(-100)}, requests("a/l")...)
	q.Done(worked)
	if diff := cmp.Diff("a/k a/l", all(q)); diff != "" {
		t.Error(diff)
	}
}

// TestNoRequestIsLost adds and takes in random order.
func TestNoRequestIsLost(t *testing.T) {
	var added []string
	q := begin(t, nil)
	for i, name := range []string{"k", "back", "l", "m", "n", "o", "back2", "p"} {
		for _, namespace := range []string{"a", "b", "c"}[:1+i%3] {
			request := requests(namespace + "/" + name + "")[0]
			added = append(added, request.String())
			q.AddWithOpts(priorityqueue.AddOpts{Priority: ptr.To(-i % 2)}, request)
		}
	}
	taken := strings.Fields(all(q))
	slices.Sort(added)
	slices.Sort(taken)
	if diff := cmp.Diff(added, taken); diff != "" {
		t.Error(diff)
	}
}

func TestAnUrgentRequestIsUrgentWhenItIsTriedAgain(t *testing.T) {
	for sentence, again := range map[string]priorityqueue.AddOpts{
		"after a time":    {After: time.Millisecond},
		"after a failure": {RateLimited: true},
	} {
		t.Run(sentence, func(t *testing.T) {
			q := begin(t, nil)
			back := requests("a/back")[0]
			q.Add(back)
			q.GetWithPriority()
			for _, r := range requests("a/moves-1 a/moves-2 a/moves-3") {
				q.Add(r)
			}
			q.AddWithOpts(again, back)
			q.Done(back)
			err := wait.PollUntilContextTimeout(t.Context(), time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
				return q.Len() == 4, nil
			})
			if err != nil {
				t.Fatal(err)
			}
			if got, want := all(q), "a/back a/moves-1 a/moves-2 a/moves-3"; got != want {
				t.Errorf("the order is %s, want %s", got, want)
			}
		})
	}
}
