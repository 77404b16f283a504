// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// slowly has a step for each of the first Pods of ten.
var slowly = strategy{
	{"10", 0, 10, 0, 10}, {"20", 0, 20, 0, 20}, {"30", 0, 30, 0, 30}, {"40", 0, 40, 0, 40}, {"50", 0, 50, 0, 50},
	{"full on", 0, 100, 0, 100},
}

// TestBlockWithAScopeHoldsWhatIsInIt has two Applications between two steps, of which a block's scope matches one. Webhook
// and reconciler stop that one; the other goes on.
func TestBlockWithAScopeHoldsWhatIsInIt(t *testing.T) {
	t.Parallel()
	s := begin(t, []string{west, east}, []string{westRegion, eastRegion})
	in := s.of("gold", west, westRegion)
	out := s.of("silver", east, eastRegion)
	held, free := in.rollsSlowly("test-nginx"), out.rollsSlowly("nginx")

	step := int32(0)
	for _, scope := range []struct {
		name string
		is   shipper.RolloutBlockScope
	}{
		{"the labels of an Application", shipper.RolloutBlockScope{
			Applications: &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "gold"}},
		}},
		{"a region", shipper.RolloutBlockScope{Regions: []string{westRegion}}},
		{"a cluster", shipper.RolloutBlockScope{Clusters: []string{west}}},
		{"the name of a chart", shipper.RolloutBlockScope{Charts: []string{"test-nginx"}}},
	} {
		step++
		t.Run(scope.name, func(t *testing.T) {
			s, in, out := s.on(t), in.on(t), out.on(t)
			in.Steps(held, step)
			out.Steps(free, step)
			percent := fmt.Sprint(10 * (step + 1))
			in.asked(held, percent)
			out.asked(free, percent)
			rb := s.blocksWith(func(spec *shipper.RolloutBlockSpec) { spec.Scope = &scope.is })
			block := rb.Namespace + "/" + rb.Name
			t.Cleanup(func() { _ = world.Management.Delete(context.Background(), rb) })
			in.saysBlocked(held, block)
			asked := in.targets(held)

			said := "rollouts blocked by: " + block
			in.forbidden("moving what is in scope", in.TryStep(held, 0, client.DryRunAll), said)
			in.forbidden("editing what is in scope", in.TryEdit(more, client.DryRunAll), said)
			s.Must("moving what is not in scope", out.TryStep(free, 0, client.DryRunAll))
			s.Must("editing what is not in scope", out.TryEdit(more, client.DryRunAll))

			in.pulls(held, int(step)+1)
			out.pulls(free, int(step)+1)
			out.WaitsForCommand(free, step)
			out.saysUnblocked(free)
			in.hasCapacity(held)
			if diff := cmp.Diff(asked, in.targets(held)); diff != "" {
				t.Errorf("targets moved under a block (-before +after):\n%s", diff)
			}
			in.saysBlocked(held, block)

			s.lifts(block)
			in.WaitsForCommand(held, step)
		})
	}
}

// of returns a fixture for one Application of several.
func (s *fixture) of(app, cluster, region string) *fixture {
	its := *s
	its.App, its.clusters, its.regions = app, []string{cluster}, []string{region}
	return &its
}

// rollsSlowly begins to roll out a chart whose image cannot be pulled until the test makes it available.
func (s *fixture) rollsSlowly(chart string) (release string) {
	s.Helper()
	app := s.application("0.0.1", 10, slowly)
	app.Spec.Template.Chart.Name, app.Labels = chart, map[string]string{"tier": s.App}
	(*app.Spec.Template.Values)["image"] = map[string]any{"tag": "broken"}
	s.applies(app)
	release = s.Release(0)
	s.pulls(release, 1)
	s.WaitsForCommand(release, 0)
	return release
}
