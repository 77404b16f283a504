// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// TestFreezeBeginsAndEndsInTheMiddleOfAStep schedules a block while the contender's image cannot be pulled. The block begins,
// the image becomes available and the block ends, all without a user's action.
func TestFreezeBeginsAndEndsInTheMiddleOfAStep(t *testing.T) {
	onTwoClusters(t, func(s *fixture) {
		began := time.Now()
		incumbent, contender := s.stuckHalfway()
		took := time.Since(began)
		dev, heard := s.as("dev")
		block, start, end := s.freezes(atLeast(8*time.Second, 2*took), atLeast(15*time.Second, 6*took))
		from, until := start.Format(time.RFC3339), end.Format(time.RFC3339)

		// Before.
		s.turned(block, "active false, from "+from+", until never")
		s.Must("rehearsing an edit before the freeze", dev.TryEdit(more, client.DryRunAll))
		if got := heard.about("plan: RolloutBlock "+block, "will stop rollouts from "+from); len(got) != 1 {
			t.Errorf("the dry run does not warn of the scheduled block: %q", got)
		}
		asked := []any{s.targets(incumbent), s.targets(contender)}

		// Within.
		s.saysBlocked(contender, block)
		s.turned(block, "active true, from never, until "+until)
		s.toldOf("RolloutBlock", blockName, "RolloutBlockStarted", "in effect, until "+until)
		s.forbidden("editing within the freeze", dev.TryEdit(more), "rollouts blocked by: "+block, "until "+until)
		s.forbidden("advancing within the freeze", dev.TryStep(contender, 2), "rollouts blocked by: "+block, "until "+until)
		s.pulls(contender, 2)       // Pods that were requested before the block still start
		s.replaces(west, incumbent) // and Pods that die are replaced
		s.readyPods(incumbent, 4)
		s.hasCapacity(contender)
		s.endpoints(4)
		if diff := cmp.Diff(asked, []any{s.targets(incumbent), s.targets(contender)}); diff != "" {
			t.Errorf("targets moved within the freeze (-before +after):\n%s", diff)
		}

		// After.
		s.saysUnblocked(contender)
		if now := time.Now(); now.Before(end) {
			t.Errorf("the freeze ended %s too early", end.Sub(now))
		}
		s.turned(block, "active false, from never, until never")
		s.toldOf("RolloutBlock", blockName, "RolloutBlockEnded", "not in effect any more")
		s.WaitsForCommand(contender, 1)
		s.readyPods(contender, 2)
		s.readyPods(incumbent, 2)
		s.Must("rehearsing an edit after the freeze", dev.TryEdit(more, client.DryRunAll))
		s.wroteOnce(block)
	})
}

// wroteOnce fails unless the reconciler wrote the block's status only when it changed. That it does nothing else meanwhile is what
// the simulation proves, where time stands still until something is to be done (law 7).
func (s *fixture) wroteOnce(block string) {
	s.Helper()
	_, name, _ := strings.Cut(block, "/")
	var statuses int
	for _, event := range s.audits() {
		if !strings.HasPrefix(event.UserAgent, "shipper-reconciler") {
			continue
		}
		if event.ObjectRef.Resource == "rolloutblocks" && event.ObjectRef.Name == name {
			statuses++
		}
	}
	if statuses != 3 {
		s.Errorf("the reconciler asked %d times about the block, want 3: when it was announced, at its start and at its end", statuses)
	}
}

// TestBlockThatLiftsItself has blocks that end by TTL or by expiry.
func TestBlockThatLiftsItself(t *testing.T) {
	t.Parallel()
	for name, limit := range map[string]func(*shipper.RolloutBlockSpec, time.Duration){
		"when its time to live is over": func(spec *shipper.RolloutBlockSpec, life time.Duration) {
			spec.TTL = &metav1.Duration{Duration: life}
		},
		"when it expires": func(spec *shipper.RolloutBlockSpec, life time.Duration) {
			spec.ExpiresAt = &metav1.Time{Time: ceil(time.Now().Add(life - time.Second))}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := begin(t, []string{west}, []string{westRegion})
			began := time.Now()
			s.applies(s.application("0.0.1", 4, vanguard))
			rel := s.Release(0)
			s.WaitsForCommand(rel, 0)
			life := atLeast(5*time.Second, 4*time.Since(began))
			rb := s.blocksWith(func(spec *shipper.RolloutBlockSpec) { limit(spec, life) })
			block := rb.Namespace + "/" + rb.Name
			end := rb.CreationTimestamp.Add(life)
			if rb.Spec.ExpiresAt != nil {
				end = rb.Spec.ExpiresAt.Time
			}
			until := end.UTC().Format(time.RFC3339)
			s.refused("advancing", s.TryStep(rel, 1), "rollouts blocked by: "+block, "until "+until)
			s.saysBlocked(rel, block)
			s.turned(block, "active true, from never, until "+until)

			s.saysUnblocked(rel)
			s.turned(block, "active false, from never, until never")
			s.Steps(rel, 1)
			s.WaitsForCommand(rel, 1)
			s.readyPods(rel, 2)
		})
	}
}

// freezesAfterAnother schedules blocks of some seconds each, as far apart, and returns how long after each start and end all
// affected objects had reported it. Longest is how long they took at most to report a block.
func (s *fixture) freezesAfterAnother(c *chronicle, concerned []string, count int, longest time.Duration) []time.Duration {
	s.Helper()
	var freezes []*shipper.RolloutBlock
	while := atLeast(4*time.Second, 2*longest) // one must not end before all objects report its start
	for i, first := 0, ceil(time.Now().Add(time.Second)); i < count; i++ {
		start := first.Add(time.Duration(2*i) * while)
		rb := s.globalBlock(fmt.Sprintf("%s-freeze-%d", s.Namespace, i))
		rb.Spec.Schedule = &shipper.RolloutBlockSchedule{
			Start: &metav1.Time{Time: start}, End: &metav1.Time{Time: start.Add(while)},
		}
		s.Must("announcing a freeze", world.Management.Create(s.Ctx, rb))
		s.Cleanup(func() { _ = world.Management.Delete(context.Background(), rb) })
		freezes = append(freezes, rb)
	}
	var times []time.Duration
	for _, rb := range freezes {
		times = append(times,
			s.told(c, comingOf(rb, concerned)).Sub(rb.Spec.Schedule.Start.Time),
			s.told(c, goingFrom(concerned)).Sub(rb.Spec.Schedule.End.Time))
	}
	if first := slices.Min(times); first < 0 {
		s.Errorf("all objects reported it %s too early", -first)
	}
	return times
}

// awaitsATime creates blocks that begin or end in an hour. They stop nothing meanwhile.
func (s *fixture) awaitsATime() {
	s.Helper()
	hour := &metav1.Time{Time: ceil(time.Now().Add(time.Hour))}
	for name, schedule := range map[string]*shipper.RolloutBlockSchedule{"begins": {Start: hour}, "ends": {End: hour}} {
		rb := s.globalBlock(name)
		rb.Namespace, rb.Spec.Schedule, rb.Spec.Enforcement = s.Namespace, schedule, shipper.RolloutBlockAudit
		s.Must("creating a block", world.Management.Create(s.Ctx, rb))
	}
}

// more is an edit of an Application that creates a Release.
func more(app *shipper.Application) { (*app.Spec.Template.Values)["replicaCount"] = int64(9) }

// atLeast is a time for what tests do within a block: on a busy machine longer, in proportion to what something else took there. Times of
// blocks are whole seconds.
func atLeast(usually, took time.Duration) time.Duration {
	return max(usually, (took + time.Second - 1).Truncate(time.Second))
}

// ceil rounds up to a whole second, as times in the API are.
func ceil(t time.Time) time.Time { return t.Add(time.Second - 1).Truncate(time.Second).UTC() }

// freezes creates a block that begins soon and lasts for a while, and returns the name that an override must give.
func (s *fixture) freezes(soon, while time.Duration) (block string, start, end time.Time) {
	s.Helper()
	rb := s.blocksWith(func(spec *shipper.RolloutBlockSpec) {
		start = ceil(time.Now().Add(soon))
		end = start.Add(while)
		spec.Schedule = &shipper.RolloutBlockSchedule{Start: &metav1.Time{Time: start}, End: &metav1.Time{Time: end}}
	})
	return rb.Namespace + "/" + rb.Name, start, end
}

// turned waits until a block's status reports whether it is in effect, and when that changes.
func (s *fixture) turned(block, want string) {
	s.Helper()
	namespace, name, _ := strings.Cut(block, "/")
	say := func(t *metav1.Time) string {
		if t == nil {
			return "never"
		}
		return t.UTC().Format(time.RFC3339)
	}
	s.Eventually("status of "+block, want, func() (string, error) {
		rb := &shipper.RolloutBlock{}
		err := world.Management.Get(s.Ctx, client.ObjectKey{Namespace: namespace, Name: name}, rb)
		if rb.Status.Active == nil {
			return "unknown", err
		}
		return fmt.Sprintf("active %t, from %s, until %s", *rb.Status.Active, say(rb.Status.NextStart), say(rb.Status.NextEnd)), err
	})
}
