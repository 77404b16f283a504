// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"fmt"
	"strconv"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/history"
)

func TestAHistoryIsCurrentUntilTheAPIServerHasNewerObjects(t *testing.T) {
	t.Parallel()
	s := running(t)
	var app *shipper.Application
	var seen history.History
	current := func(app *shipper.Application, targets bool) bool {
		t.Helper()
		got, err := rollouts.histories.Current(t.Context(), app, seen, targets)
		s.must(err)
		return got
	}
	// rests reads everything again until nothing writes meanwhile.
	rests := func() bool {
		t.Helper()
		app = s.app()
		var err error
		seen, err = rollouts.histories.Cached(t.Context(), app)
		s.must(err)
		return current(app, true)
	}
	tries := 0
	s.until("true: targets are not compared; false: a target was written", func() string {
		if !rests() {
			return "something was written"
		}
		tries++
		s.annotate(&shipper.CapacityTarget{ObjectMeta: s.release(0).ObjectMeta}, tries)
		return fmt.Sprintf("%t: targets are not compared; %t: a target was written", current(app, false), current(app, true))
	})

	want := func(sentence string, app *shipper.Application, is bool) {
		t.Helper()
		if got := current(app, false); got != is {
			t.Errorf("%s: current is %t, want %t", sentence, got, is)
		}
	}
	another := app.DeepCopy()
	another.UID = "another"
	want("another Application of that name", another, false)
	s.annotate(s.release(0), 1)
	want("a Release was written", app, false)

	s.until("true", func() string { return strconv.FormatBool(rests()) })
	s.annotate(s.app(), 1)
	want("the Application was written", app, false)
	seen = history.History{}
	want("a Release is not in the cache yet", s.app(), false)
}

// annotate changes nothing that the reconciler acts on.
func (s *rolloutFixture) annotate(o client.Object, to int) {
	s.t.Helper()
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"test":"%d"}}}`, to)
	s.must(s.Patch(s.t.Context(), o, client.RawPatch("application/merge-patch+json", patch)))
}
