// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	rules "shipper.dev/shipper/apis/rules/traffic"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/fleet"
)

// keeping is a Service that Release web-2 wrote, with a port for another.
func keeping(kept string, ports ...corev1.ServicePort) corev1.Service {
	return corev1.Service{
		ObjectMeta: metav1.ObjectMeta{
			Name: "all", Labels: map[string]string{shipper.OwnedByLabel: "web-2"},
			Annotations: map[string]string{shipper.KeptPortsAnnotation: kept, "a": "b"},
		},
		Spec: corev1.ServiceSpec{Ports: ports},
	}
}

func TestKeptPortsGoWithTheLastTrafficAndPodsOfOthers(t *testing.T) {
	all, none := rules.Release{Name: "web-2", Weight: 100}, rules.Release{Name: "web-1"}
	shares := none
	shares.Weight = 1
	found := none
	found.AsFound = true
	awaited := none
	awaited.Awaited = true
	own, other := backing("n", "web-2", "all"), backing("o", "web-1", "all")
	hook := backing("h", "web-1")
	hook.Annotations = map[string]string{shipper.HookRunAnnotation: "uid/pre-install/1"}
	going := backing("g", "web-1", "all")
	going.DeletionTimestamp = &metav1.Time{}
	for sentence, tc := range map[string]struct {
		releases []rules.Release
		pods     []corev1.Pod
		goes     bool
		inPlace  []string
	}{
		"it has all traffic, and alone has Pods": {releases: []rules.Release{none, all}, pods: []corev1.Pod{own}, goes: true},
		"another has traffic":                    {releases: []rules.Release{shares, all}, pods: []corev1.Pod{own}},
		"another is left as it was found":        {releases: []rules.Release{found, all}, pods: []corev1.Pod{own}},
		"another is to have Pods, which in place have no label of it": {
			releases: []rules.Release{awaited, all}, pods: []corev1.Pod{own},
		},
		"another has Pods in place still": {
			releases: []rules.Release{none, all}, pods: []corev1.Pod{own}, inPlace: []string{"web-1", "web-2"},
		},
		"it alone has Pods in place": {
			releases: []rules.Release{none, all}, pods: []corev1.Pod{own}, inPlace: []string{"web-2"}, goes: true,
		},
		"another has Pods": {releases: []rules.Release{none, all}, pods: []corev1.Pod{own, other}},
		"a hook and a Pod that goes need no port": {
			releases: []rules.Release{none, all}, pods: []corev1.Pod{own, hook, going}, goes: true,
		},
		"no Release has traffic, and no other Pods": {releases: []rules.Release{none}, goes: true},
	} {
		c := contents{
			family: application{here: ClusterState{InPlace: sets.New(tc.inPlace...)}}, releases: tc.releases, own: tc.pods,
			services: []corev1.Service{keeping(`{"drop":["81/TCP"]}`)},
		}
		if got := len(c.outlived()) == 1; got != tc.goes {
			t.Errorf("%s: they go: %t", sentence, got)
		}
	}
	plain := keeping("")
	if got := (contents{releases: []rules.Release{all}, services: []corev1.Service{plain}}).outlived(); len(got) > 0 {
		t.Error("a Service without kept ports is written")
	}
}

// TestPodsInPlaceNeedThePortsOfTheirRelease installs web-2 again while web-1 has no weight any more, and half of its capacity.
func TestPodsInPlaceNeedThePortsOfTheirRelease(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := errors.Join(shipper.AddToScheme(scheme), corev1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	meta := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: "shop", Name: name, Labels: map[string]string{shipper.AppLabel: "web"}}
	}
	for percent, want := range map[int32]bool{50: true, 0: false} {
		tt, ct := &shipper.TrafficTarget{ObjectMeta: meta("web-1")}, &shipper.CapacityTarget{ObjectMeta: meta("web-1")}
		tt.Spec.Clusters = []shipper.ClusterTrafficTarget{{Name: "west"}}
		ct.Spec.Clusters = []shipper.ClusterCapacityTarget{{Name: "west", TotalReplicaCount: 2, Percent: percent}}
		home := fake.NewClientBuilder().WithScheme(scheme).WithObjects(tt, ct).Build()
		pods := fake.NewClientBuilder().WithScheme(scheme).
			WithIndex(&corev1.Pod{}, fleet.ByApp, func(client.Object) []string { return nil }).Build()
		it := &shipper.InstallationTarget{ObjectMeta: meta("web-2")}
		if got, err := OthersServe(t.Context(), home, pods, it, "west"); got != want || err != nil {
			t.Errorf("at %d %%: %t, %v", percent, got, err)
		}
	}
}

func TestPortsWithoutThoseThatWereKept(t *testing.T) {
	port := func(name string, number int32) corev1.ServicePort {
		return corev1.ServicePort{Name: name, Port: number}
	}
	udp := corev1.ServicePort{Name: "dns", Port: 53, Protocol: corev1.ProtocolUDP}
	type ports = []corev1.ServicePort
	for sentence, tc := range map[string]struct {
		kept        string
		given, want ports
	}{
		"one goes":              {`{"drop":["81/TCP"]}`, ports{port("http", 80), port("admin", 81)}, ports{port("http", 80)}},
		"of one number, by UDP": {`{"drop":["53/UDP"]}`, ports{port("dns-tcp", 53), udp}, ports{port("dns-tcp", 53)}},
		"the other had no name": {`{"drop":["81/TCP"],"unname":["80/TCP"]}`, ports{port("port-80", 80), port("a", 81)}, ports{port("", 80)}},
		"a user has added one": {
			`{"drop":["81/TCP"],"unname":["80/TCP"]}`, ports{port("port-80", 80), port("a", 81), port("b", 82)},
			ports{port("port-80", 80), port("b", 82)},
		},
		"none would be left":     {`{"drop":["80/TCP"]}`, ports{port("http", 80)}, ports{port("http", 80)}},
		"what a user has edited": {`much`, ports{port("http", 80)}, ports{port("http", 80)}},
	} {
		before := keeping(tc.kept, tc.given...)
		after := withoutKept(&before)
		if diff := cmp.Diff(tc.want, after.Spec.Ports); diff != "" {
			t.Errorf("%s (-want +got):\n%s", sentence, diff)
		}
		if diff := cmp.Diff(map[string]string{"a": "b"}, after.Annotations); diff != "" {
			t.Errorf("%s (-want +got):\n%s", sentence, diff)
		}
	}
}
