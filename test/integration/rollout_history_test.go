// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/rollout/history"
)

func TestAHistoryIsCurrentUntilTheAPIServerHasNewerObjects(t *testing.T) {
	t.Parallel()
	s := running(t)
	rel := s.release(0)
	key := client.ObjectKeyFromObject(rel)
	app := s.app()
	seen, err := rollouts.histories.Live(t.Context(), app)
	s.must(err)
	want := func(sentence string, app *shipper.Application, h history.History, targets, want bool) {
		t.Helper()
		got, err := rollouts.histories.Current(t.Context(), app, h, targets)
		s.must(err)
		if got != want {
			t.Errorf("%s: current is %t, want %t", sentence, got, want)
		}
	}
	want("nothing was written", app, seen, true, true)

	another := app.DeepCopy()
	another.UID = "another"
	want("another Application of that name", another, seen, false, false)

	ct := &shipper.CapacityTarget{}
	s.must(s.Get(t.Context(), key, ct))
	s.annotate(ct)
	want("a target was written, and targets are not compared", app, seen, false, true)
	want("a target was written", app, seen, true, false)

	s.annotate(rel)
	want("a Release was written", app, seen, false, false)
	seen, err = rollouts.histories.Live(t.Context(), app)
	s.must(err)
	want("everything was read again", app, seen, true, true)

	s.annotate(s.app())
	want("the Application was written", app, seen, false, false)
	without := history.History{}
	want("a Release is not in the cache yet", s.app(), without, false, false)
}

// annotate changes nothing that the reconciler acts on.
func (s *rolloutFixture) annotate(o client.Object) {
	s.t.Helper()
	s.must(s.Patch(s.t.Context(), o, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"annotations":{"test":"1"}}}`))))
}
