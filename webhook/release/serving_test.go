// SPDX-License-Identifier: Apache-2.0

package release

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"shipper.dev/shipper/apis/rules/block"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/webhook/protected"
	"shipper.dev/shipper/webhook/response"
)

func TestServedShareIsOfTheTrafficOfAllReleases(t *testing.T) {
	target := func(name string, weights map[string]uint32) shipper.TrafficTarget {
		tt := shipper.TrafficTarget{}
		tt.Name = name
		for cluster, weight := range weights {
			tt.Status.Clusters = append(tt.Status.Clusters, shipper.ClusterTrafficStatus{Name: cluster, AchievedTraffic: weight})
		}
		return tt
	}
	for want, targets := range map[string][]shipper.TrafficTarget{
		"":                                   {target("web-0", map[string]uint32{"a": 0}), target("web-1", map[string]uint32{"a": 100})},
		"50 % of the traffic in 1 cluster":   {target("web-0", map[string]uint32{"a": 3, "b": 0}), target("web-1", map[string]uint32{"a": 3})},
		"100 % of the traffic in 2 clusters": {target("web-0", map[string]uint32{"a": 100, "b": 7})},
		"1 to 50 % of the traffic in 2 clusters": {
			target("web-0", map[string]uint32{"a": 1, "b": 50}), target("web-1", map[string]uint32{"a": 999, "b": 50}),
		},
	} {
		if got := servedShare("web-0", targets); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// serves are Facts of which the TrafficTargets, or the error to read them, are known.
type serves struct {
	State

	targets []shipper.TrafficTarget
	err     error
	within  time.Duration
}

func (s *serves) TrafficTargetsNow(ctx context.Context, _ types.NamespacedName) ([]shipper.TrafficTarget, error) {
	if until, ok := ctx.Deadline(); ok {
		s.within = time.Until(until)
	}
	return s.targets, s.err
}

func TestDeletionOfAReleaseThatServesIsJudged(t *testing.T) {
	releaseAt := func(name string, step int32) *shipper.Release {
		return &shipper.Release{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Labels: map[string]string{shipper.AppLabel: "web"}},
			Spec:       shipper.ReleaseSpec{TargetStep: step},
		}
	}
	tt := shipper.TrafficTarget{}
	tt.Name, tt.Status.Clusters = "web-0", []shipper.ClusterTrafficStatus{{Name: "eu", AchievedTraffic: 100}}
	newest := tt
	newest.Name = "web-1"
	all := []shipper.TrafficTarget{tt}
	confirm := func(name string) map[string]string { return map[string]string{shipper.ConfirmDeletionAnnotation: name} }
	const (
		serving   = "Release web-0 serves 100 % of the traffic in 1 cluster and is not the newest. "
		abort     = "To give up the rollout that is under way: kubectl delete rel web-1 -n shop --wait=false. "
		retreat   = `To go back a step: kubectl patch rel web-1 -n shop --type=merge -p '{"spec":{"targetStep":1}}'. `
		confirmed = "To delete this one all the same: kubectl annotate rel web-0 -n shop shipper.booking.com/confirm-deletion=web-0, " +
			"and delete it again; it is then removed when others serve in its place"
		goesBack = "deleting the newest Release aborts its rollout: Application web goes back to Release web-0"
	)
	for sentence, tc := range map[string]struct {
		delete   string
		step     int32 // of the newest
		notes    map[string]string
		user     string
		facts    serves
		refusal  string
		warnings []string
	}{
		"the incumbent is refused": {"web-0", 0, nil, "dev", serves{targets: all}, serving + abort + confirmed, nil},
		"a retreat is offered where there is a step before": {
			"web-0", 2, nil, "dev", serves{targets: all}, serving + abort + retreat + confirmed, nil,
		},
		"a copied annotation confirms nothing": {
			"web-0", 0, confirm("web-1"), "dev", serves{targets: all},
			serving + abort + strings.Replace(confirmed, "=web-0,", "=web-0 --overwrite,", 1), nil,
		},
		"a confirmed one is admitted": {
			"web-0", 0, confirm("web-0"), "dev", serves{targets: all}, "",
			[]string{"Release web-0 serves 100 % of the traffic in 1 cluster; it is removed when others serve in its place"},
		},
		"the reconciler's is admitted":        {"web-0", 0, nil, "reconciler", serves{targets: all}, "", nil},
		"one that serves nothing is admitted": {"web-0", 0, nil, "dev", serves{}, "", nil},
		"one that is not known is admitted":   {"web-9", 0, nil, "dev", serves{targets: all}, "", nil},
		"the newest is admitted": {"web-1", 0, nil, "dev", serves{targets: []shipper.TrafficTarget{newest}}, "", []string{
			goesBack, "Release web-1 serves 100 % of the traffic in 1 cluster, and is removed when Release web-0 serves in its place",
		}},
		"one whose share cannot be read is refused for now": {
			"web-0", 0, nil, "dev", serves{err: errors.New("timeout")},
			"Release web-0 is not the newest, and what it serves could not be read: timeout. Try again", nil,
		},
		"the newest is admitted also when its share cannot be read": {
			"web-1", 0, nil, "dev", serves{err: errors.New("timeout")}, "",
			[]string{goesBack, "what Release web-1 serves could not be read: it is removed when others serve in its place"},
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			app := block.App{Name: "web", Releases: []*shipper.Release{releaseAt("web-0", 2), releaseAt("web-1", tc.step)}}
			old := releaseAt(tc.delete, 0)
			old.Annotations = tc.notes
			w := &Webhook{Guard: &protected.Guard{Reconciler: "reconciler"}, State: &tc.facts}
			req := &admission.Request{}
			req.UserInfo.Username = tc.user
			a := &response.Response{}
			got := ""
			if err := w.validateServing(t.Context(), req, a, app, old); err != nil {
				got = err.Error()
			}
			if !strings.HasSuffix(got, tc.refusal) || (got == "") != (tc.refusal == "") {
				t.Errorf("refused with %q, want %q", got, tc.refusal)
			}
			if diff := cmp.Diff(tc.warnings, a.Warnings()); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
			if tc.facts.within > askTime {
				t.Errorf("the API server has %s to answer, want %s at most", tc.facts.within, askTime)
			}
		})
	}
}

func TestAnAbortDoesNotSayThatAFailedReleaseServes(t *testing.T) {
	newest, previous := &shipper.Release{}, &shipper.Release{}
	newest.Name, previous.Name = "web-2", "web-1"
	newest.Labels = map[string]string{shipper.AppLabel: "web"}
	previous.Spec.Environment.Strategy = &shipper.RolloutStrategy{Steps: []shipper.RolloutStrategyStep{{Name: "staging"}, {Name: "full on"}}}
	previous.Spec.Environment.Strategy.Steps[1].Traffic.Contender = 100
	const goesBack = "deleting the newest Release aborts its rollout: Application web goes back to Release web-1"
	for step, want := range []string{
		"Release web-2 serves 9 % of the traffic, and is removed when Release web-1 is at its step again and another serves in its place",
		"Release web-2 serves 9 % of the traffic, and is removed when Release web-1 serves in its place",
	} {
		previous.Spec.TargetStep = int32(step)
		a := &response.Response{}
		warnOfAbort(a, newest, previous, "9 % of the traffic")
		if diff := cmp.Diff([]string{goesBack, want}, a.Warnings()); diff != "" {
			t.Errorf("previous Release at step %d (-want +got):\n%s", step, diff)
		}
	}
}
