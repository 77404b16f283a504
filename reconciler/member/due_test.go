// SPDX-License-Identifier: Apache-2.0

package member

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestWorkIsDueAtItsEarliestTime(t *testing.T) {
	web, start := Key{Cluster: "eu", Namespace: "team", App: "web"}, time.Unix(1000, 0)
	at := func(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }
	var d due
	d.mark(work{web, "web-1"}, at(30))
	d.mark(work{web, "web-0"}, at(2))
	d.mark(work{web, "web-1"}, at(5)) // sooner
	d.mark(work{web, "web-1"}, at(9)) // no sooner
	d.mark(work{Key: Key{Cluster: "eu", Namespace: "team", App: "web", Pods: true}}, at(0))
	type step struct {
		Taken []string
		Next  time.Duration
	}
	var got []step
	d.mark(work{web, "web-2"}, at(20))
	d.mark(work{web, "web-3"}, at(19))
	for _, second := range []int{0, 2, 4, 6, 99, 100} {
		got = append(got, step{d.take(web, at(second)), d.next(web, at(second))})
	}
	want := []step{
		{nil, 2 * time.Second}, {[]string{"web-0"}, 3 * time.Second}, {nil, time.Second}, {[]string{"web-1"}, 13 * time.Second},
		{[]string{"web-3", "web-2"}, 0}, {nil, 0},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if len(d.all) > 0 {
		t.Errorf("left behind: %v", d.all)
	}
	d.mark(work{web, "web-0"}, at(0))
	if got := d.next(web, at(1)); got != time.Millisecond {
		t.Errorf("what became due during a pass is due in %s", got)
	}
}
