// SPDX-License-Identifier: Apache-2.0

package kill

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/env"
)

// replicas of the Application in each cluster.
const replicas = 4

// TestKilledAfterEveryWrite rolls forward, backward and aborts: first undisturbed, then with a reconciler that is killed
// after every write, or after every so many (stride).
func TestKilledAfterEveryWrite(t *testing.T) {
	undisturbed := map[string]string{}
	t.Run("undisturbed", func(t *testing.T) { live(t, spared, undisturbed) })
	if t.Failed() {
		return
	}
	t.Run("the answer lost", func(t *testing.T) { live(t, unanswered, undisturbed) })
	if env.IsNightly() {
		t.Run("the answer read", func(t *testing.T) { live(t, answered, undisturbed) })
	}
}

// live runs the three parts in one namespace. Ends has the final state of each part by name; a part that is missing is added.
func live(t *testing.T, how death, ends map[string]string) {
	s := begin(t)
	s.bystand()
	s.Must("creating the application", world.Management.Create(s.Ctx, s.application(appName, "0.0.1", replicas, allIn)))
	incumbent := s.Release(0)
	s.Completes(incumbent)
	s.rests()
	s.bystanders = s.othersVersions()

	contender := ""
	s.chapter("forward", how, replicas, ends, func() {
		next := s.application(appName, "0.0.2", replicas, vanguard)
		s.Edits(func(app *shipper.Application) { app.Spec.Template = next.Spec.Template })
		contender = s.Release(1)
		s.WaitsForCommand(contender, 0)
		s.Steps(contender, 1)
		s.WaitsForCommand(contender, 1)
		s.Steps(contender, 2)
		s.Completes(contender)
	})
	if env.IsNightly() {
		s.chapter("backward", how, replicas, ends, func() {
			s.Steps(contender, 1)
			s.WaitsForCommand(contender, 1)
			s.Steps(contender, 0)
			s.WaitsForCommand(contender, 0)
		})
	}
	s.Steps(contender, 1)
	s.WaitsForCommand(contender, 1)
	s.rests()
	// Half of the Pods are the contender's, and are deleted with it.
	s.chapter("abort", how, replicas/2, ends, func() {
		s.Must("deleting the contender", world.Management.Delete(s.Ctx, s.releaseNamed(contender)))
		s.settles(incumbent)
	})
}

// stride is after how many writes the reconciler is killed: after each in `make nightly`. In `make test`, where each story may cost half a
// minute, it is a prime, for the kills to fall on all kinds of writes; test/simulation kills after each.
func stride() int {
	if env.IsNightly() {
		return 1
	}
	return 11
}

func (s *fixture) releaseNamed(name string) *shipper.Release {
	s.Helper()
	rel := &shipper.Release{}
	s.Must("reading the release", world.Management.Get(s.Ctx, client.ObjectKey{Namespace: s.Namespace, Name: name}, rel))
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
		s.Patience = perseverance
	}
	tell()
	if recorded := s.ends(name, ends); !recorded {
		s.rests()
		s.ends(name, ends)
	}
	world.gate.decide(spared)
	s.Patience = env.Patience

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
	if want := len(writes)/stride() - 1; how != spared && lives < want {
		s.Errorf("%s: %d writes ended %d runs only, not %d", name, len(writes), lives, want)
	}
	if s.Failed() {
		s.FailNow()
	}
}

var errUnlike = errors.New("not that of the undisturbed run")

// ends waits until the state equals the final state of the undisturbed run, which it records, at rest, if there is none yet.
func (s *fixture) ends(name string, ends map[string]string) (recorded bool) {
	s.Helper()
	if ends[name] == "" {
		s.rests()
		end, err := dump(s.Ctx, s.Namespace)
		s.Must("reading everything", err)
		ends[name] = end
		return true
	}
	last := ""
	ctx, cancel := context.WithTimeout(s.Ctx, s.Patience)
	defer cancel()
	if env.Until(ctx, "the end", func(context.Context) error {
		s.Must("running the reconciler", s.Alive())
		var err error
		last, err = dump(s.Ctx, s.Namespace)
		s.Must("reading everything", err)
		if last != ends[name] {
			return errUnlike
		}
		return nil
	}) == nil {
		return false
	}
	lines := func(text string) []string { return slices.Collect(strings.SplitSeq(text, "\n")) }
	s.Fatalf("%s: the end is not that of the undisturbed run (-undisturbed +killed):\n%s", name,
		cmp.Diff(lines(ends[name]), lines(last)))
	return false
}
