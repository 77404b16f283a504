// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	rules "shipper.dev/shipper/apis/rules/traffic"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/fleet"
)

// balanced is the production Service http with a load balancer, which has given it these addresses.
func balanced(addresses ...string) corev1.Service {
	service, _ := production("http")
	service.Spec.Type = corev1.ServiceTypeLoadBalancer
	for _, ip := range addresses {
		service.Status.LoadBalancer.Ingress = append(service.Status.LoadBalancer.Ingress, corev1.LoadBalancerIngress{IP: ip})
	}
	return service
}

func TestAReleaseIsReadyWhenItsServiceHasTheAddressThatItAwaits(t *testing.T) {
	now := metav1.Unix(2000, 0)
	without, with := balanced(), balanced("192.0.2.1")
	exempt, inner := balanced(), balanced()
	exempt.Annotations = map[string]string{shipper.AwaitAddressAnnotation: "false"}
	inner.Spec.Type = corev1.ServiceTypeClusterIP
	text := fleet.WithoutAddress(&without)
	weighs := shipper.ClusterTrafficTarget{Name: "east", Weight: 10}
	type said struct{ ready, readyReason, addressed, addressedReason, message string }
	for sentence, tc := range map[string]struct {
		service     corev1.Service
		want        shipper.ClusterTrafficTarget
		established bool
		plan        rules.Plan
		said        said
	}{
		"no address in a cluster where nothing has served": {
			service: without, want: weighs, said: said{"False", "AddressAwaited", "False", "AddressAwaited", text},
		},
		"an address":                  {service: with, want: weighs, said: said{"True", "", "True", "", ""}},
		"no address, and none needed": {service: exempt, want: weighs, said: said{"True", "", "", "", ""}},
		"another type of Service":     {service: inner, want: weighs, said: said{"True", "", "", "", ""}},
		"no address in a cluster where the Application has served": {
			service: without, want: weighs, established: true, said: said{"True", "", "False", "AddressMissing", text},
		},
		"no address and no weight": {
			service: without, want: shipper.ClusterTrafficTarget{Name: "east"}, said: said{"True", "", "False", "AddressAwaited", text},
		},
		"no address, no weight requested yet, and no Pods in traffic": {
			service: without, want: shipper.ClusterTrafficTarget{Name: "east", AsFound: true},
			said: said{"True", "", "False", "AddressAwaited", text},
		},
		"no address, no weight requested yet, and Pods that were found in traffic": {
			service: without, want: shipper.ClusterTrafficTarget{Name: "east", AsFound: true},
			plan: rules.Plan{Needed: 1, Labelled: 1, Serving: 1, Achieved: 100},
			said: said{"True", "", "False", "AddressMissing", text},
		},
		"no address and Pods that are not ready, which are said first": {
			service: without, want: weighs, plan: rules.Plan{Needed: 1, Labelled: 1, NotReady: 1},
			said: said{"False", "PodsNotReady", "False", "AddressAwaited", text},
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			of := Outcome{want: tc.want, services: []string{"http"}, plan: tc.plan}
			family := application{established: sets.New[string]()}
			if tc.established {
				family.established.Insert(tc.want.Name)
			}
			of.address = addressOf(&tc.service, of.established(family))
			is := clusterStatus(shipper.ClusterTrafficStatus{}, worst([]Outcome{of}), now)
			got := said{}
			for _, c := range is.Conditions {
				switch c.Type {
				case shipper.TargetReady:
					got.ready, got.readyReason = string(c.Status), c.Reason
				case shipper.TargetAddressed:
					got.addressed, got.addressedReason, got.message = string(c.Status), c.Reason, c.Message
				}
			}
			if diff := cmp.Diff(tc.said, got, cmp.AllowUnexported(said{})); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestAClusterIsEstablishedOnceAReleaseHasServedThere(t *testing.T) {
	says := func(status corev1.ConditionStatus, reason string) []shipper.Condition {
		return []shipper.Condition{{Type: shipper.TargetAddressed, Status: status, Reason: reason}}
	}
	tt := &shipper.TrafficTarget{Status: shipper.TrafficTargetStatus{Clusters: []shipper.ClusterTrafficStatus{
		{Name: "addressed", Conditions: says("True", "")},
		{Name: "awaited", AchievedTraffic: 100, Conditions: says("False", shipper.AddressAwaited)},
		{Name: "earlier-version", AchievedTraffic: 100},
		{Name: "missing", Conditions: says("False", shipper.AddressMissing)},
		{Name: "without-traffic"},
	}}}
	got := sets.New[string]()
	establishedIn(got, tt)
	if diff := cmp.Diff([]string{"addressed", "earlier-version", "missing"}, sets.List(got)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestTheServiceThatLacksAnAddressIsReported(t *testing.T) {
	weighs := shipper.ClusterTrafficTarget{Name: "east", Weight: 10}
	one, other := balanced("192.0.2.1"), balanced()
	plans := []Outcome{
		{want: weighs, services: []string{"all"}, address: addressOf(&one, false)},
		{want: weighs, services: []string{"http"}, address: addressOf(&other, false)},
	}
	got := ready(worst(plans))
	want := shipper.Condition{
		Type: shipper.TargetReady, Status: "False", Reason: shipper.AddressAwaited, Message: fleet.WithoutAddress(&other),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
