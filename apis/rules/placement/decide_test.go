// SPDX-License-Identifier: Apache-2.0

package placement_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"shipper.dev/shipper/apis/rules/placement"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

var noon = time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)

// healthy makes a cluster that has joined and is ready.
func healthy(c *shipper.Cluster) {
	c.Status.Conditions = append(c.Status.Conditions, condition(shipper.ClusterJoined, corev1.ConditionTrue, time.Hour),
		condition(shipper.ClusterReady, corev1.ConditionTrue, time.Hour))
}

// lost makes a cluster that has joined and has not been ready for so long.
func lost(since time.Duration) change {
	return func(c *shipper.Cluster) {
		ready := condition(shipper.ClusterReady, corev1.ConditionFalse, since)
		ready.Reason, ready.Message = shipper.ClusterUnreachable, "dial tcp: timeout"
		c.Status.Conditions = []shipper.Condition{condition(shipper.ClusterJoined, corev1.ConditionTrue, time.Hour), ready}
	}
}

func condition(kind string, status corev1.ConditionStatus, since time.Duration) shipper.Condition {
	return shipper.Condition{Type: kind, Status: status, LastTransitionTime: metav1.NewTime(noon.Add(-since))}
}

func unjoined(c *shipper.Cluster) { c.Status.Conditions = nil }

func taint(key, value string) change {
	return func(c *shipper.Cluster) {
		c.Spec.Taints = append(c.Spec.Taints, shipper.ClusterTaint{Key: key, Value: value, Effect: shipper.TaintNoSchedule})
	}
}

func label(key, value string) change {
	return func(c *shipper.Cluster) { metav1.SetMetaDataLabel(&c.ObjectMeta, key, value) }
}

func declares(name, value string) change {
	return func(c *shipper.Cluster) {
		if c.Spec.Properties == nil {
			c.Spec.Properties = map[string]string{}
		}
		c.Spec.Properties[name] = value
	}
}

func nodes(n int32) change { return func(c *shipper.Cluster) { c.Status.Nodes = &n } }

// member is a healthy cluster.
func member(name, region string, changes ...change) shipper.Cluster {
	return cluster(name, region, append([]change{healthy}, changes...)...)
}

// input is that of the first Release of an Application with this placement.
func input(p shipper.Placement, clusters ...shipper.Cluster) placement.Input {
	return placement.Input{
		App: app, Requirements: shipper.ClusterRequirements{Placement: &p}, Clusters: clusters,
		UnhealthyAfter: 5 * time.Minute, Now: noon,
	}
}

// after is the input for the next Release, which keeps the clusters or not.
func after(in placement.Input, sticky bool, current ...string) placement.Input {
	in.Current, in.Sticky = current, sticky
	return in
}

func all() shipper.Placement { return shipper.Placement{Type: shipper.PickAll} }
func pickN(count int32) shipper.Placement {
	return shipper.Placement{Type: shipper.PickN, Count: &count}
}
func fixed(names ...string) shipper.Placement {
	return shipper.Placement{Type: shipper.PickFixed, Clusters: names}
}

func requires(p shipper.Placement, terms ...shipper.ClusterTerm) shipper.Placement {
	p.Affinity = &shipper.ClusterAffinity{Required: terms}
	return p
}

func prefers(p shipper.Placement, terms ...shipper.PreferredClusterTerm) shipper.Placement {
	p.Affinity = &shipper.ClusterAffinity{Preferred: terms}
	return p
}

func withLabel(key string, values ...string) shipper.ClusterTerm {
	return shipper.ClusterTerm{LabelSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
		{Key: key, Operator: metav1.LabelSelectorOpIn, Values: values},
	}}}
}

func where(name string, operator shipper.PropertyOperator, value string) shipper.ClusterTerm {
	return shipper.ClusterTerm{Properties: []shipper.PropertyRequirement{{Name: name, Operator: operator, Value: value}}}
}

func picked(name string) placement.Verdict {
	return placement.Verdict{Cluster: name, Chosen: true, Reason: shipper.PlacementPicked}
}

func kept(name string) placement.Verdict {
	return placement.Verdict{Cluster: name, Chosen: true, Reason: shipper.PlacementKept}
}

func rejected(name string, reason shipper.PlacementReason, message string) placement.Verdict {
	return placement.Verdict{Cluster: name, Reason: reason, Message: message}
}

// wantVerdicts compares the decision, also that on the clusters in the reverse order.
func wantVerdicts(t *testing.T, in placement.Input, wanted int, want ...placement.Verdict) {
	t.Helper()
	expected := placement.Decision{Wanted: wanted, Verdicts: want}
	for _, v := range want {
		if v.Chosen {
			expected.Chosen = append(expected.Chosen, v.Cluster)
		}
	}
	for range 2 {
		if diff := cmp.Diff(expected, placement.Decide(in)); diff != "" {
			t.Fatalf("-want +got:\n%s", diff)
		}
		in.Clusters = reversed(in.Clusters)
	}
}

func reversed(clusters []shipper.Cluster) []shipper.Cluster {
	out := make([]shipper.Cluster, 0, len(clusters))
	for i := range clusters {
		out = append(out, clusters[len(clusters)-1-i])
	}
	return out
}

func TestAClusterThatDoesNotFitIsRejectedWithTheFirstReason(t *testing.T) {
	eu := requires(all(), withLabel(shipper.RegionLabel, "eu"))
	big := requires(all(), where("cpu.allocatable", shipper.PropertyGe, "4"))
	for sentence, tc := range map[string]struct {
		policy  shipper.Placement
		cluster shipper.Cluster
		reason  shipper.PlacementReason
		message string
	}{
		"it is being deleted": {all(), member("a", "r", going, unschedulable), shipper.PlacementLeaving, "the Cluster is being deleted"},
		"it has no conditions": {all(), member("a", "r", unjoined, unschedulable), shipper.PlacementNotJoined,
			"it has never been ready: Shipper has yet to connect to it; run shipperctl clusters check a"},
		"it was never ready": {all(), cluster("a", "r", lost(time.Second), func(c *shipper.Cluster) {
			c.Status.Conditions[0].Status = corev1.ConditionFalse
		}), shipper.PlacementNotJoined, "it has never been ready: ClusterUnreachable; run shipperctl clusters check a"},
		"it is lost for too long": {all(), cluster("a", "r", lost(5*time.Minute+time.Second), unschedulable), shipper.PlacementNotReady,
			"not ready since 2026-11-25T11:54:59Z, which is longer than 5m0s: ClusterUnreachable"},
		"it is unschedulable": {all(), member("a", "r", unschedulable, taint("k", "v")), shipper.PlacementUnschedulable,
			"spec.scheduler.unschedulable of the Cluster is true: set it to false"},
		"it is tainted": {eu, member("a", "r", taint("gpu", "yes")), shipper.PlacementTainted,
			"tainted gpu=yes:NoSchedule: tolerate it in placement.tolerations"},
		"it has many taints": {all(), member("a", "r", taint("a", ""), taint("b", ""), taint("c", ""), taint("d", "")),
			shipper.PlacementTainted, "tainted a:NoSchedule, b:NoSchedule, c:NoSchedule and 1 more: tolerate them in placement.tolerations"},
		"a label differs": {eu, member("a", "us"), shipper.PlacementAffinityNotMet,
			`label shipper.booking.com/region is "us", wanted shipper.booking.com/region in (eu)`},
		"a label is absent": {requires(all(), withLabel("env", "prod")), member("a", "us"), shipper.PlacementAffinityNotMet,
			"it has no label env, wanted env in (prod)"},
		"its name differs": {requires(all(), shipper.ClusterTerm{Names: []string{"b"}}), member("a", "us"),
			shipper.PlacementAffinityNotMet, "its name is not among names"},
		"the selector cannot be read": {requires(all(), shipper.ClusterTerm{LabelSelector: &metav1.LabelSelector{
			MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "NotExists"}},
		}}), member("a", "us"), shipper.PlacementAffinityNotMet,
			`labelSelector is not valid: "NotExists" is not a valid label selector operator`},
		"a property is too small": {big, member("a", "r", declares("cpu.allocatable", "2")), shipper.PlacementPropertyNotMet,
			"cpu.allocatable is 2, wanted Ge 4"},
		"a property is unknown": {big, member("a", "r"), shipper.PlacementPropertyUnknown, "cpu.allocatable is not known, wanted Ge 4"},
		"a property is no quantity": {big, member("a", "r", declares("cpu.allocatable", "lots")), shipper.PlacementPropertyUnknown,
			`cpu.allocatable is "lots", which cannot be compared, wanted Ge 4`},
		"of several terms the nearest is named": {
			requires(all(), withLabel("env", "prod"), where("nodes", shipper.PropertyGt, "5"), shipper.ClusterTerm{Names: []string{"b"}}),
			member("a", "r", nodes(5)), shipper.PlacementPropertyNotMet,
			"nodes is 5, wanted Gt 5 in placement.affinity.required[1], and no other term matches",
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			wantVerdicts(t, input(tc.policy, tc.cluster), 1, rejected("a", tc.reason, tc.message))
		})
	}
}

func TestACapabilityThatIsMissingIsNamed(t *testing.T) {
	in := input(all(), member("a", "r", offers("pv")), member("b", "r", offers("gpu", "pv", "x")))
	in.Requirements = capable(in.Requirements, "pv", "x", "gpu")
	wantVerdicts(t, in, 1,
		rejected("a", shipper.PlacementCapabilityMissing, "does not offer gpu, x: add it to spec.capabilities of the Cluster"),
		picked("b"))
}

func TestAClusterFits(t *testing.T) {
	for sentence, tc := range map[string]struct {
		policy  shipper.Placement
		cluster shipper.Cluster
	}{
		"when it is ready, although it has not joined by its conditions": {all(), cluster("a", "r", func(c *shipper.Cluster) {
			c.Status.Conditions = []shipper.Condition{condition(shipper.ClusterReady, corev1.ConditionTrue, 0)}
		})},
		"when it is not ready for just as long as allowed": {all(), cluster("a", "r", lost(5*time.Minute))},
		"when the type is absent, which means PickAll":     {shipper.Placement{}, member("a", "r")},
		"when the affinity is empty":                       {requires(all()), member("a", "r")},
		"when a term is empty":                             {requires(all(), shipper.ClusterTerm{}), member("a", "r")},
		"when one of two terms matches": {
			requires(all(), withLabel("x", "y"), withLabel("env", "prod")), member("a", "r", label("env", "prod")),
		},
		"when a term has its virtual label of the name": {requires(all(), withLabel(shipper.ClusterLabel, "a")), member("a", "r")},
		"when a term has its virtual label of a capability": {
			requires(all(), withLabel(shipper.CapabilityLabelPrefix+"gpu", "")), member("a", "r", offers("gpu")),
		},
		"although its object has another label for the region": {
			requires(all(), withLabel(shipper.RegionLabel, "r")), member("a", "r", label(shipper.RegionLabel, "s")),
		},
		"when what it declares wins over what Shipper observes": {
			requires(all(), where("nodes", shipper.PropertyEq, "7")), member("a", "r", nodes(1), declares("nodes", "7")),
		},
	} {
		t.Run(sentence, func(t *testing.T) { wantVerdicts(t, input(tc.policy, tc.cluster), 1, picked("a")) })
	}
}

func TestAClusterWithOneTaintThatIsNotToleratedIsRejected(t *testing.T) {
	for sentence, tc := range map[string]struct {
		toleration shipper.ClusterToleration
		tolerated  bool
	}{
		"equal":                 {shipper.ClusterToleration{Key: "gpu", Value: "yes"}, true},
		"equal, by its name":    {shipper.ClusterToleration{Key: "gpu", Operator: shipper.TolerationEqual, Value: "yes"}, true},
		"of another value":      {shipper.ClusterToleration{Key: "gpu", Value: "no"}, false},
		"of another key":        {shipper.ClusterToleration{Key: "cpu", Value: "yes"}, false},
		"of every value":        {shipper.ClusterToleration{Key: "gpu", Operator: shipper.TolerationExists}, true},
		"of every taint":        {shipper.ClusterToleration{Operator: shipper.TolerationExists}, true},
		"of this effect":        {shipper.ClusterToleration{Key: "gpu", Value: "yes", Effect: shipper.TaintNoSchedule}, true},
		"of another effect":     {shipper.ClusterToleration{Key: "gpu", Value: "yes", Effect: "NoExecute"}, false},
		"of an unknown kind":    {shipper.ClusterToleration{Key: "gpu", Operator: "Like", Value: "yes"}, false},
		"without key and Equal": {shipper.ClusterToleration{Value: "yes"}, false},
	} {
		t.Run(sentence, func(t *testing.T) {
			p := all()
			p.Tolerations = []shipper.ClusterToleration{tc.toleration}
			one, two := member("a", "r", taint("gpu", "yes")), member("a", "r", taint("gpu", "yes"), taint("other", ""))
			one.Spec.Taints[0].Effect = "" // NoSchedule
			if got := len(placement.Decide(input(p, one)).Chosen) == 1; got != tc.tolerated {
				t.Errorf("one taint is tolerated: %t", got)
			}
			if tc.toleration.Key != "" && len(placement.Decide(input(p, two)).Chosen) != 0 {
				t.Error("a cluster is chosen although only one of its two taints is tolerated")
			}
		})
	}
}

func TestPickFixed(t *testing.T) {
	bad := []change{taint("gpu", "yes"), unschedulable, unjoined}
	there := []shipper.Cluster{member("a", "r", bad...), member("b", "r"), member("c", "r", going)}
	notNamed := rejected("b", shipper.PlacementNotNamed, "placement.clusters does not name it")
	left := rejected("c", shipper.PlacementLeaving, "the Cluster is being deleted")
	unknown := rejected("bb", shipper.PlacementNotJoined, `there is no Cluster "bb": it is chosen when it joins`)
	in := input(fixed("a", "bb", "c"), there...)
	wantVerdicts(t, in, 3, picked("a"), notNamed, unknown, left)
	wantVerdicts(t, after(in, true, "a", "b", "c", "zz"), 3, kept("a"), notNamed, unknown, left)
	in.Requirements = capable(in.Requirements, "gpu")
	incapable := rejected("a", shipper.PlacementCapabilityMissing, "does not offer gpu: add it to spec.capabilities of the Cluster")
	wantVerdicts(t, in, 3, incapable, notNamed, unknown, left)
	wantVerdicts(t, after(in, false, "a"), 3, incapable, notNamed, unknown, left)
	wantVerdicts(t, after(in, true, "a"), 3, kept("a"), notNamed, unknown, left)
}

func TestWithoutAPlacementNothingIsChosen(t *testing.T) {
	in := input(all(), member("a", "r"))
	in.Requirements.Placement = nil
	if d := placement.Decide(in); len(d.Chosen) != 0 || d.Wanted != 0 {
		t.Errorf("got %+v", d)
	}
}

func TestAPolicyThatIsUnchangedKeepsItsClusters(t *testing.T) {
	const others = "placement.count is 2, and others are chosen before it: raise it, or prefer this cluster in placement.affinity"
	bad := []change{taint("gpu", "yes"), unschedulable, lost(time.Hour)}
	left := rejected("c", shipper.PlacementLeaving, "the Cluster is being deleted")
	gpu := rejected("d", shipper.PlacementTainted, "tainted gpu=yes:NoSchedule: tolerate it in placement.tolerations")
	clusters := []shipper.Cluster{
		member("a", "r"), cluster("b", "r", bad...), member("c", "r", going), member("d", "r", taint("gpu", "yes")),
	}
	t.Run("PickAll keeps and adds", func(t *testing.T) {
		wantVerdicts(t, after(input(all(), clusters...), true, "b", "c", "gone"), 2, picked("a"), kept("b"), left, gpu)
	})
	t.Run("PickN replaces what leaves and what is gone", func(t *testing.T) {
		wantVerdicts(t, after(input(pickN(2), clusters...), true, "b", "c"), 2, picked("a"), kept("b"), left, gpu)
		wantVerdicts(t, after(input(pickN(2), clusters...), true, "b", "gone"), 2, picked("a"), kept("b"), left, gpu)
	})
	t.Run("PickN that is full takes no better one", func(t *testing.T) {
		p := prefers(pickN(2), shipper.PreferredClusterTerm{Weight: 100, ClusterTerm: withLabel("best", "yes")})
		in := after(input(p, append(clusters, member("best", "r", label("best", "yes")))...), true, "a", "b")
		best := rejected("best", shipper.PlacementOutranked, others)
		best.Affinity = 100
		wantVerdicts(t, in, 2, kept("a"), kept("b"), best, left, gpu)
	})
	t.Run("a changed policy judges all afresh", func(t *testing.T) {
		in := after(input(pickN(2), clusters...), false, "b", "c")
		wantVerdicts(t, in, 2, picked("a"), rejected("b", shipper.PlacementNotReady,
			"not ready since 2026-11-25T11:00:00Z, which is longer than 5m0s: ClusterUnreachable"), left, gpu)
	})
	t.Run("of more than PickN wants those are kept that rank highest", func(t *testing.T) {
		p := prefers(pickN(2), shipper.PreferredClusterTerm{Weight: -1, ClusterTerm: withLabel(shipper.ClusterLabel, "b")})
		last := rejected("b", shipper.PlacementOutranked, others)
		last.Affinity = -1
		wantVerdicts(t, after(input(p, clusters...), true, "a", "b", "d"), 2, kept("a"), last, left, kept("d"))
	})
}
