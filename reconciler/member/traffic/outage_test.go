// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rules "shipper.dev/shipper/apis/rules/traffic"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/fleet/report"
)

// targetOf is the TrafficTarget of a Release of an Application.
func targetOf(app, release string) *shipper.TrafficTarget {
	return &shipper.TrafficTarget{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: release, Labels: map[string]string{shipper.AppLabel: app, shipper.ReleaseLabel: release},
	}}
}

func outcomeIn(cluster string, empty bool, served sets.Set[string]) []Outcome {
	return []Outcome{{want: shipper.ClusterTrafficTarget{Name: cluster}, empty: empty, served: served.Has(cluster)}}
}

func TestAnOutageIsReportedAtOnceOnlyWhereThereWereEndpoints(t *testing.T) {
	type seen struct {
		Outage bool
		Again  time.Duration
	}
	start := time.Unix(1000, 0)
	for sentence, tc := range map[string]struct {
		served sets.Set[string]
		empty  []bool // in each of the passes, which are 6 s apart
		want   []seen
	}{
		"where there were endpoints":      {sets.New("eu"), []bool{true, true}, []seen{{true, 0}, {true, 0}}},
		"where there were some elsewhere": {sets.New("us"), []bool{true}, []seen{{false, 10 * time.Second}}},
		"after the grace period": {
			sets.New[string](), []bool{true, true, true},
			[]seen{{false, 10 * time.Second}, {false, 4 * time.Second}, {true, 0}},
		},
		"a grace period begins again": {
			sets.New[string](), []bool{true, false, true},
			[]seen{{false, 10 * time.Second}, {}, {false, 10 * time.Second}},
		},
		"it is over when there are endpoints":     {sets.New("eu"), []bool{true, false}, []seen{{true, 0}, {}}},
		"endpoints that come in time are awaited": {sets.New[string](), []bool{true, false}, []seen{{false, 10 * time.Second}, {}}},
	} {
		t.Run(sentence, func(t *testing.T) {
			o := newOutages()
			var got []seen
			for i, empty := range tc.empty {
				outcomes := outcomeIn("eu", empty, tc.served)
				again := o.observe(targetOf("web", "web-1"), outcomes, start.Add(time.Duration(i)*6*time.Second))
				got = append(got, seen{outcomes[0].outage, again})
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestAnOutageGoesOnWhereAClusterCannotBeRead(t *testing.T) {
	o, start := newOutages(), time.Unix(1000, 0)
	var got []int
	for i, s := range []Outcome{{empty: true}, {err: errors.New("no answer")}, {empty: true}, {err: errors.New("no answer")}, {}} {
		s.want.Name = "eu"
		o.observe(targetOf("web", "web-1"), []Outcome{s}, start.Add(time.Duration(i)*6*time.Second))
		got = append(got, testutil.CollectAndCount(o))
	}
	if diff := cmp.Diff([]int{0, 0, 1, 1, 0}, got); diff != "" {
		t.Errorf("series (-want +got):\n%s", diff)
	}
}

func TestStatusesTellWhereThereWereEndpoints(t *testing.T) {
	lost := []shipper.Condition{{Type: shipper.TargetReady, Status: corev1.ConditionFalse, Reason: shipper.ServiceWithoutEndpoints}}
	tt := targetOf("web", "web-1")
	tt.Status.Clusters = []shipper.ClusterTrafficStatus{
		{Name: "served", AchievedTraffic: 1}, {Name: "reported", Conditions: lost}, {Name: "never"},
	}
	served := sets.New("others")
	servedIn(served, tt)
	if diff := cmp.Diff([]string{"others", "reported", "served"}, sets.List(served)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestTheConditionSaysWhyThereAreNoEndpoints(t *testing.T) {
	const begin = `Service "web-prod" has no ready endpoints, though this release is to serve: `
	one := []string{"web-prod"}
	for want, s := range map[string]Outcome{
		begin + "there are no pods of this release": {services: one, plan: rules.Plan{Late: true}},
		begin + "no pod of this release that is to receive traffic is ready: the CapacityTarget says why": {
			services: one, plan: rules.Plan{Needed: 2, Labelled: 2, NotReady: 2},
		},
		begin + "pods are ready and not in its endpoints: compare its selector with the labels of the pods": {
			services: one, plan: rules.Plan{Needed: 2, Labelled: 2, NotReady: 1},
		},
	} {
		before := ready(s)
		if diff := cmp.Diff(before, orOutage(s, before)); diff != "" {
			t.Errorf("during the grace period -want +got:\n%s", diff)
		}
		s.outage = true
		got := orOutage(s, before)
		if got.Status != corev1.ConditionFalse || got.Reason != shipper.ServiceWithoutEndpoints || got.Message != want {
			t.Errorf("got %+v, want %q", got, want)
		}
	}
	missing := Outcome{outage: true}
	if got := orOutage(missing, ready(missing)); got.Reason != shipper.MissingService {
		t.Errorf("without a Service: %+v", got)
	}
}

func TestAnOutageIsOneWarning(t *testing.T) {
	in := func(reason string) *shipper.TrafficTarget {
		tt := targetOf("web", "web-1")
		tt.Status.Clusters = []shipper.ClusterTrafficStatus{{Name: "eu", Conditions: []shipper.Condition{{
			Type: shipper.TargetReady, Status: corev1.ConditionFalse, Reason: reason, Message: "it is empty",
		}}}}
		return tt
	}
	lost, other := in(shipper.ServiceWithoutEndpoints), in(shipper.InProgress)
	warning := []report.Event{{
		Type: "Warning", Reason: "ServiceWithoutEndpoints", Action: "UpdateStatus", Note: `cluster "eu", release "web-1": it is empty`,
	}}
	for sentence, tc := range map[string]struct {
		was, is *shipper.TrafficTarget
		want    []report.Event
	}{
		"when it begins":            {other, lost, warning},
		"when nothing was known":    {targetOf("web", "web-1"), lost, warning},
		"but not while it goes on":  {lost, lost, nil},
		"but not when it is over":   {lost, other, nil},
		"but not for other reasons": {targetOf("web", "web-1"), other, nil},
	} {
		if diff := cmp.Diff(tc.want, outageEvents(tc.was, tc.is)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", sentence, diff)
		}
	}
}

func TestTheMetricOfOutagesIsBounded(t *testing.T) {
	const help = `# HELP shipper_service_without_endpoints 1 while the production Service of an Application has no ready endpoints ` +
		`in a cluster, though a Release is to serve there, and from then on while the cluster cannot be read. ` +
		`Absent otherwise, and where no reconciler leads. At most 1,000 series, ` +
		`the first by name. Labels namespace and application: of the Application; cluster: the Cluster's name.
# TYPE shipper_service_without_endpoints gauge
`
	o, now := newOutages(), time.Unix(1000, 0)
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(o)
	published := func(want string) {
		t.Helper()
		if err := testutil.GatherAndCompare(registry, strings.NewReader(want)); err != nil {
			t.Error(err)
		}
	}
	o.observe(targetOf("web", "web-1"), outcomeIn("eu", true, sets.New("eu")), now)
	o.observe(targetOf("web", "web-2"), outcomeIn("eu", true, sets.New("eu")), now) // the same Service
	o.observe(targetOf("api", "api-1"), outcomeIn("eu", true, sets.New[string]()), now)
	published(help + `shipper_service_without_endpoints{application="web",cluster="eu",namespace="shop"} 1` + "\n")
	o.observe(targetOf("web", "web-1"), outcomeIn("eu", false, sets.New("eu")), now)
	o.forget(client.ObjectKeyFromObject(targetOf("web", "web-2")))
	published("")
	for i := range maxOutages + 1 {
		o.observe(targetOf(fmt.Sprint("app-", i), fmt.Sprint("app-", i, "-1")), outcomeIn("eu", true, sets.New("eu")), now)
	}
	if n, err := testutil.GatherAndCount(registry); err != nil || n != maxOutages {
		t.Errorf("%d series, %v; want %d", n, err, maxOutages)
	}
}
