// SPDX-License-Identifier: Apache-2.0

package kill

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// replicas of the Application in each cluster.
const replicas = 4

// TestKilledAfterEveryWrite rolls forward, backward and aborts: first undisturbed, then with a reconciler that is killed
// after every write.
func TestKilledAfterEveryWrite(t *testing.T) {
	undisturbed := map[string]string{}
	t.Run("undisturbed", func(t *testing.T) { live(t, spared, undisturbed) })
	if t.Failed() {
		return
	}
	t.Run("the answer lost", func(t *testing.T) { live(t, unanswered, undisturbed) })
	if os.Getenv("SHIPPER_KILL") == "all" {
		t.Run("the answer read", func(t *testing.T) { live(t, answered, undisturbed) })
	}
}

// live runs the three parts in one namespace. Ends has the final state of each part by name; a part that is missing is added.
func live(t *testing.T, how death, ends map[string]string) {
	s := begin(t)
	s.bystand()
	s.must("creating the application", world.management.Create(s.ctx, s.application(appName, "0.0.1", replicas, allIn)))
	incumbent := s.release(appName, 0)
	s.completes(incumbent)
	s.rests()
	s.bystanders = s.othersVersions()

	contender := ""
	s.chapter("forward", how, replicas, ends, func() {
		s.edits(s.application(appName, "0.0.2", replicas, vanguard).Spec.Template)
		contender = s.release(appName, 1)
		s.waitsForCommand(contender, 0)
		s.steps(contender, 1)
		s.waitsForCommand(contender, 1)
		s.steps(contender, 2)
		s.completes(contender)
	})
	s.chapter("backward", how, replicas, ends, func() {
		s.steps(contender, 1)
		s.waitsForCommand(contender, 1)
		s.steps(contender, 0)
		s.waitsForCommand(contender, 0)
	})
	s.steps(contender, 1)
	s.waitsForCommand(contender, 1)
	s.rests()
	// Half of the Pods are the contender's, and are deleted with it.
	s.chapter("abort", how, replicas/2, ends, func() {
		s.must("deleting the contender", world.management.Delete(s.ctx, s.releaseNamed(contender)))
		s.settles(incumbent)
	})
}

func (s *fixture) releaseNamed(name string) *shipper.Release {
	s.Helper()
	rel := &shipper.Release{}
	s.must("reading the release", world.management.Get(s.ctx, client.ObjectKey{Namespace: s.namespace, Name: name}, rel))
	return rel
}

// chapter runs one part, kills the reconciler as how says, compares the final state with ends, and reports violated
// invariants. At least floor Pods must serve in each cluster throughout.
func (s *fixture) chapter(name string, how death, floor int, ends map[string]string, tell func()) {
	s.Helper()
	began := time.Now()
	for _, g := range s.guards {
		g.hold(floor)
	}
	world.gate.count()
	world.gate.decide(how)
	if how != spared {
		s.patience = perseverance
	}
	tell()
	s.ends(name, ends)
	s.rests()
	s.ends(name, ends)
	world.gate.decide(spared)
	s.patience = patience

	writes, lives := world.gate.count()
	s.leftAlone(writes)
	for _, g := range s.guards {
		offences, events, least := g.report()
		s.Logf("%s: %d events in %s, %d served at least", name, events, g.cluster, least)
		if len(offences) > 0 {
			s.Errorf("%s: invariants were broken:\n%s", name, strings.Join(offences, "\n"))
		}
	}
	s.Logf("%s: %d writes, %d lives, %s", name, len(writes), lives, time.Since(began).Round(time.Second))
	if os.Getenv("SHIPPER_KILL_WRITES") != "" {
		s.Logf("%s:\n%s", name, strings.Join(writes, "\n"))
	}
	if want := len(writes) - 1; how != spared && lives < want {
		s.Errorf("%s: of %d writes only %d ended a run", name, len(writes), lives)
	}
	if s.Failed() {
		s.FailNow()
	}
}

// ends waits until the state equals the final state of the undisturbed run, which it records if there is none yet.
func (s *fixture) ends(name string, ends map[string]string) {
	s.Helper()
	if ends[name] == "" {
		s.rests()
		end, err := dump(s.ctx, s.namespace)
		s.must("reading everything", err)
		ends[name] = end
		return
	}
	deadline := time.Now().Add(s.patience)
	last := ""
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		end, err := dump(s.ctx, s.namespace)
		s.must("reading everything", err)
		if end == ends[name] {
			return
		}
		last = end
		s.must("running the reconciler", world.reconciler.failure())
		if time.Now().After(deadline) {
			break
		}
		<-tick.C
	}
	lines := func(text string) []string { return slices.Collect(strings.SplitSeq(text, "\n")) }
	s.Fatalf("%s: the end is not that of the undisturbed run (-undisturbed +killed):\n%s", name,
		cmp.Diff(lines(ends[name]), lines(last)))
}
