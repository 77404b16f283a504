// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
)

func key(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: "work", Name: name}
}

func TestChangesAreTakenAfterASecondOfRestOrFiveSeconds(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Unix(0, 0))
	c := newChanges(clock)
	app := key("web")
	var got []time.Duration
	wait := func() { got = append(got, c.wait(app)) }
	wait() // nothing has changed
	c.add(app)
	wait()
	clock.Step(700 * time.Millisecond)
	c.add(app)
	wait()
	clock.Step(time.Second)
	wait()
	for range 4 { // until 5.3 s after the first
		clock.Step(900 * time.Millisecond)
		c.add(app)
		wait()
	}
	want := []time.Duration{
		0, time.Second, time.Second, 0, time.Second, time.Second, 600 * time.Millisecond, 0,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	first, ok := c.take(app)
	_, again := c.take(app)
	if !ok || again || !first.Equal(time.Unix(0, 0)) {
		t.Errorf("%v are taken, %t; then %t", first, ok, again)
	}
}
