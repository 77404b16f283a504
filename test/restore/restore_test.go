// SPDX-License-Identifier: Apache-2.0

package restore

import (
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/pod"
)

// scenario is how a management cluster is lost and restored.
type scenario struct {
	// before rolls out what the backup contains.
	before func(*fixture)
	// after happens between the backup and the loss; may be nil.
	after func(*fixture)
	// cut edits a Release before the backup is taken, while the reconciler no longer runs; may be nil.
	cut func(*fixture)
	// status reports whether the backup has status.
	status bool
	// running: the reconciler runs while objects are restored; otherwise it starts afterwards.
	running bool
	// podsMove allows the restored management cluster to delete Pods.
	podsMove bool
	// then waits for the expected state in the new management cluster.
	then func(*fixture)
}

// finished rolls the second Release out.
func finished(s *fixture) {
	half(s)
	contender := s.Release(1)
	s.Steps(contender, 2)
	s.Completes(contender)
	s.pods(contender, replicas, replicas)
}

// half rolls the second Release out to 50/50.
func half(s *fixture) {
	s.applies(environment("first", "0.0.1", allIn))
	s.Completes(s.Release(0))
	s.edits(environment("second", "0.0.2", vanguard))
	contender := s.Release(1)
	s.WaitsForCommand(contender, 0)
	s.Steps(contender, 1)
	s.WaitsForCommand(contender, 1)
	s.pods(contender, replicas/2, replicas/2)
}

// isFinished waits until the second Release has everything and the first nothing.
func isFinished(s *fixture) {
	s.Release(1)
	incumbent, contender := s.backup.releases[0].Name, s.backup.releases[1].Name
	s.Completes(contender)
	s.Completes(incumbent)
	s.pods(contender, replicas, replicas)
	s.pods(incumbent, 0, 0)
}

// isHalf waits until both Releases have half.
func isHalf(s *fixture) {
	s.Release(1)
	incumbent, contender := s.backup.releases[0].Name, s.backup.releases[1].Name
	s.WaitsForCommand(contender, 1)
	s.Completes(incumbent)
	s.pods(contender, replicas/2, replicas/2)
	s.pods(incumbent, replicas/2, replicas/2)
}

var scenarios = map[string]scenario{
	"a finished rollout, with status":    {before: finished, status: true, then: isFinished},
	"a finished rollout, without status": {before: finished, then: isFinished},
	"a finished rollout, without status, while Shipper runs": {
		before: finished, running: true, then: isFinished,
	},
	"half a rollout, with status":                        {before: half, status: true, then: isHalf},
	"half a rollout, without status":                     {before: half, then: isHalf},
	"half a rollout, without status, while Shipper runs": {before: half, running: true, then: isHalf},
	"a rollout on its way, with status": {
		before: half, cut: toTheEnd, status: true, podsMove: true, then: isFinished,
	},
	"a rollout on its way, without status": {before: half, cut: toTheEnd, podsMove: true, then: isFinished},
	"a rollout on its way back, without status": {
		before: half, cut: back, podsMove: true, then: isBack,
	},
	"a backup older than what runs, with status":    {before: finished, after: newer, status: true, then: isOlder},
	"a backup older than what runs, without status": {before: finished, after: newer, then: isOlder},
}

// toTheEnd requests the last step.
func toTheEnd(s *fixture) { s.Steps(s.Release(1), 2) }

// back requests the first step.
func back(s *fixture) { s.Steps(s.Release(1), 0) }

// isBack waits until the second Release has its one Pod and no traffic again.
func isBack(s *fixture) {
	s.Release(1)
	incumbent, contender := s.backup.releases[0].Name, s.backup.releases[1].Name
	s.WaitsForCommand(contender, 0)
	s.Completes(incumbent)
	s.pods(incumbent, replicas, replicas)
	s.pods(contender, 1, 0)
}

// newer rolls out a third Release, which is in no backup.
func newer(s *fixture) {
	s.edits(environment("third", "0.0.1", vanguard))
	contender := s.Release(2)
	s.WaitsForCommand(contender, 0)
	s.Steps(contender, 2)
	s.Completes(contender)
	s.pods(contender, replicas, replicas)
	s.pods(s.Release(2), replicas, replicas)
}

// isOlder waits until the newest Release of the backup serves again, beside the one that is in no backup.
func isOlder(s *fixture) {
	isFinished(s)
	s.pods(s.unknown(), replicas, replicas)
}

// unknown returns the Release that is in no backup.
func (s *fixture) unknown() string {
	s.Helper()
	rels := &shipper.ReleaseList{}
	s.Must("listing what there was", world.lost.Management.List(s.Ctx, rels, client.InNamespace(s.Namespace)))
	for _, rel := range rels.Items {
		if !strings.Contains(" "+strings.Join(s.backup.names(), " ")+" ", " "+rel.Name+" ") {
			return rel.Name
		}
	}
	s.Fatal("the backup has all Releases")
	return ""
}

// TestNothingThatRunsIsTakenAway loses a management cluster and restores it in another.
func TestNothingThatRunsIsTakenAway(t *testing.T) {
	stories := map[string]*fixture{}
	for name := range scenarios {
		stories[name] = begin(t)
	}
	t.Run("before", func(t *testing.T) {
		for name, sc := range scenarios {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				s := stories[name].on(t)
				sc.before(s)
				stories[name].saves()
				if sc.after != nil {
					sc.after(s)
				}
			})
		}
	})
	if t.Failed() {
		return
	}
	lose(t, stories)
	for name, sc := range scenarios {
		for _, g := range stories[name].guards {
			g.hold(replicas, sc.podsMove)
		}
	}
	ctx := t.Context()
	for name, sc := range scenarios {
		if !sc.running {
			must(t, name, stories[name].backup.restore(ctx, world.new.restorer, sc.status))
		}
	}
	must(t, "starting the reconciler", world.new.Pod.StartReconciler(ctx))
	for name, sc := range scenarios {
		if sc.running {
			must(t, name, stories[name].backup.restore(ctx, world.new.restorer, sc.status))
		}
	}
	t.Run("after", func(t *testing.T) {
		for name, sc := range scenarios {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				stories[name].on(t).goesOn(sc)
			})
		}
	})
}

// lose ends the first Shipper and creates a management cluster with the objects that Shipper itself needs.
func lose(t *testing.T, stories map[string]*fixture) {
	t.Helper()
	must(t, "ending the reconciler", world.lost.Pod.Reconciler.Stop())
	for name, sc := range scenarios {
		if sc.cut != nil {
			sc.cut(stories[name])
			stories[name].saves()
		}
	}
	must(t, "ending the webhook", world.lost.Pod.Webhook.Stop())
	must(t, "replacing the management cluster", replace(t.Context()))
	var err error
	world.new.Pod, err = pod.New(t.Context(), world.new.PodOptions)
	must(t, "starting Shipper", err)
	must(t, "starting the webhook", world.new.Pod.StartWebhook(t.Context()))
	for _, s := range stories {
		s.moves(&world.new)
	}
}

// goesOn waits for the expected state after a restore, checks the guards' reports, and rolls out once more.
func (s *fixture) goesOn(sc scenario) {
	func() {
		defer s.judged() // also if the state is not reached
		sc.then(s)
		for _, name := range s.backup.names() {
			s.scheduled(name)
		}
	}()
	if s.Failed() {
		return
	}
	contender := s.backup.names()[1]
	rel, err := s.Get(contender)
	s.Must("reading the contender", err)
	if rel.Spec.TargetStep < 2 {
		s.Steps(contender, 2)
		isFinished(s)
	}
	s.edits(environment("fourth", "0.0.2", vanguard))
	next := s.Release(2)
	s.WaitsForCommand(next, 0)
	s.Steps(next, 2)
	s.Completes(next)
	s.pods(next, replicas, replicas)
	s.pods(contender, 0, 0)
	if sc.after != nil {
		s.pods(s.unknown(), replicas, replicas)
	}
}

// judged ends the guards' checks and reports violations.
func (s *fixture) judged() {
	for _, g := range s.guards {
		for _, offence := range g.report() {
			s.Error(offence)
		}
	}
}

func must(t *testing.T, doing string, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%s: %v", doing, err)
	}
}

// saves takes the backup.
func (s *fixture) saves() {
	var err error
	s.backup, err = save(s.Ctx, s.management.Management, s.Namespace)
	s.Must("saving", err)
}

// names of the Releases in a backup, oldest first.
func (b *backup) names() []string {
	var out []string
	for _, rel := range b.releases {
		out = append(out, rel.Name)
	}
	return out
}
