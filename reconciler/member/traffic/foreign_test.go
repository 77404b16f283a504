// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/fleet/report"
)

// controlled gives a Pod a controller.
func controlled(pod corev1.Pod, apiVersion, kind, name string) corev1.Pod {
	pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: apiVersion, Kind: kind, Name: name, Controller: ptr.To(true)}}
	return pod
}

// ofReplicaSet is a ready Pod of a Release that a ReplicaSet controls.
func ofReplicaSet(name, release, replicaSet string) corev1.Pod {
	pod := controlled(aPod(name, release, corev1.PodRunning, true, false), "apps/v1", "ReplicaSet", replicaSet)
	pod.Labels["pod-template-hash"] = "5d4f"
	return pod
}

func TestOnlyPodsOfTheDeploymentAreTheReleases(t *testing.T) {
	known := owners{
		deployments: map[string][]string{"web-1": {"web-1-nginx"}, "web-2": nil, "web-3": nil, "web-4": {}},
		known:       sets.New("web-1", "web-2", "web-4"),
	}
	hook := aPod("hook", "", corev1.PodRunning, true, false)
	hook.Annotations = map[string]string{shipper.HookRunAnnotation: "uid/pre-install/1"}
	for sentence, tc := range map[string]struct {
		pod corev1.Pod
		own bool
	}{
		"of the Deployment's ReplicaSet":          {ofReplicaSet("a", "web-1", "web-1-nginx-5d4f"), true},
		"of a ReplicaSet of another Deployment":   {ofReplicaSet("a", "web-1", "evil-5d4f"), false},
		"of a ReplicaSet whose name begins alike": {ofReplicaSet("a", "web-1", "web-1-nginx-more-5d4f"), false},
		"of another template than its name says":  {ofReplicaSet("a", "web-1", "web-1-nginx-beef"), false},
		"of a ReplicaSet of another group": {
			controlled(ofReplicaSet("a", "web-1", ""), "example.com/v1", "ReplicaSet", "web-1-nginx-5d4f"), false,
		},
		"of a StatefulSet": {
			controlled(ofReplicaSet("a", "web-1", ""), "apps/v1", "StatefulSet", "web-1-nginx-5d4f"), false,
		},
		"of no controller":                           {aPod("a", "web-1", corev1.PodRunning, true, true), false},
		"a hook of the chart":                        {hook, true},
		"of a Release whose Deployment is not known": {ofReplicaSet("a", "web-2", "web-2-nginx-5d4f"), true},
		"of a StatefulSet, and a Release whose Deployment is not known": {
			controlled(aPod("a", "web-2", "", true, true), "apps/v1", "StatefulSet", "x"), false,
		},
		"of a Release that has no Deployments": {ofReplicaSet("a", "web-4", "web-4-nginx-5d4f"), false},
		"of no Release":                        {ofReplicaSet("a", "", "web-1-nginx-5d4f"), false},
		"of a Release that there is not":       {ofReplicaSet("a", "web-3", "web-3-nginx-5d4f"), false},
	} {
		own, foreign := known.split([]corev1.Pod{tc.pod})
		if got := len(own) == 1; got != tc.own || len(own)+len(foreign) != 1 {
			t.Errorf("%s: it is the Release's: %t", sentence, got)
		}
	}
}

func TestOfSeveralDeploymentsTheInstalledOneIsTheReleases(t *testing.T) {
	made := func(name, app string, minute int, owner string) appsv1.Deployment {
		return appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{
			Name: name, Labels: map[string]string{shipper.AppLabel: app}, CreationTimestamp: metav1.Date(2026, 1, 2, 3, minute, 0, 0, time.UTC),
			OwnerReferences: []metav1.OwnerReference{{Kind: "ConfigMap", Name: owner}},
		}}
	}
	for sentence, tc := range map[string]struct {
		list   []appsv1.Deployment
		listed []string
		want   []string
	}{
		"none of another Application": {list: []appsv1.Deployment{made("other", "other", 0, "web-1-anchor")}},
		"what the anchor lists, not what names it": {
			list: []appsv1.Deployment{made("evil", "web", 1, "web-1-anchor"), made("a", "web", 2, "")}, listed: []string{"a"},
			want: []string{"a"},
		},
		"nothing, where the anchor lists nothing": {
			list: []appsv1.Deployment{made("evil", "web", 1, "web-1-anchor")}, listed: []string{},
		},
		"what the anchor owns": {
			list: []appsv1.Deployment{made("evil", "web", 1, ""), made("a", "web", 2, "web-1-anchor")}, want: []string{"a"},
		},
		"not what another anchor owns": {
			list: []appsv1.Deployment{made("a", "web", 1, ""), made("b", "web", 2, "web-2-anchor")}, want: []string{"a"},
		},
		"the oldest of what the anchor owns": {
			list: []appsv1.Deployment{made("evil", "web", 2, "web-1-anchor"), made("a", "web", 1, "web-1-anchor")}, want: []string{"a"},
		},
		"the oldest of what the anchor let go": {
			list: []appsv1.Deployment{made("evil", "web", 2, ""), made("a", "web", 1, "")}, want: []string{"a"},
		},
		"all, rather than none, of one age": {
			list: []appsv1.Deployment{made("a", "web", 1, ""), made("b", "web", 1, "")}, want: []string{"a", "b"},
		},
	} {
		if diff := cmp.Diff(tc.want, oldest(candidates(tc.list, "web", "web-1", tc.listed))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", sentence, diff)
		}
	}
}

func TestEndpointsOfNoReleaseAreNamed(t *testing.T) {
	known := owners{deployments: map[string][]string{"web-1": {"web-1-nginx"}}}
	going := controlled(aPod("going", "web-1", corev1.PodRunning, true, true), "apps/v1", "StatefulSet", "evil")
	going.DeletionTimestamp = &metav1.Time{}
	pods := []corev1.Pod{
		ofReplicaSet("own", "web-1", "web-1-nginx-5d4f"),
		controlled(aPod("evil-0", "web-1", corev1.PodRunning, true, true), "apps/v1", "StatefulSet", "evil"),
		controlled(aPod("evil-1", "web-1", corev1.PodRunning, true, true), "apps/v1", "StatefulSet", "evil"),
		aPod("bare", "web-1", corev1.PodRunning, true, true), going,
	}
	endpoint := func(pod string, ready bool) discoveryv1.Endpoint {
		return discoveryv1.Endpoint{
			Conditions: discoveryv1.EndpointConditions{Ready: &ready}, TargetRef: &corev1.ObjectReference{Kind: "Pod", Name: pod},
		}
	}
	slice := func(name, service string, owners []metav1.OwnerReference, endpoints ...discoveryv1.Endpoint) discoveryv1.EndpointSlice {
		return discoveryv1.EndpointSlice{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{discoveryv1.LabelServiceName: service}, OwnerReferences: owners},
			Endpoints:  endpoints,
		}
	}
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "web", UID: "1"}}
	byService := []metav1.OwnerReference{{APIVersion: "v1", Kind: "Service", Name: "web", UID: "1", Controller: ptr.To(true)}}
	got := foreignEndpoints([]discoveryv1.EndpointSlice{
		slice("web-x", "web", byService, endpoint("own", true), endpoint("evil-0", true), endpoint("evil-1", false), endpoint("bare", true),
			endpoint("gone already", true), endpoint("going", true)),
		slice("web-y", "web", byService, endpoint("evil-0", true)),
		slice("by-hand", "web", nil, discoveryv1.Endpoint{Addresses: []string{"10.0.0.1"}}),
		slice("other", "other", nil, endpoint("bare", true)),
	}, service, pods, known)
	want := []string{
		`EndpointSlice "by-hand", which no controller wrote`, `Pod "bare"`, `Pod "evil-0" of StatefulSet "evil"`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	const more = `Service "web" sends requests to what is of no Release of Application "shop": a, b, c and 2 more. Take the labels ` +
		`shipper-app and shipper-release off its Pods and off what makes them, and remove EndpointSlices that were written by hand`
	if diff := cmp.Diff(more, foreignMessage("web", "shop", []string{"a", "b", "c", "d", "e"})); diff != "" {
		t.Error(diff)
	}
}

func TestOfAClusterThatCannotBeReadNoForeignEndpointsAreTold(t *testing.T) {
	tt := &shipper.TrafficTarget{}
	tt.Spec.Clusters = []shipper.ClusterTrafficTarget{{Name: "east", Weight: 50}}
	seen := Outcome{want: tt.Spec.Clusters[0], services: []string{"web"}, foreign: "one"}
	for _, s := range []Outcome{seen, {want: seen.want, err: errors.New("no answer")}} {
		tt.Status = status(tt, []Outcome{seen}, nil, time.Unix(1000, 0))
		tt.Status = status(tt, []Outcome{s}, nil, time.Unix(1001, 0))
		for _, list := range [][]shipper.Condition{tt.Status.Conditions, tt.Status.Clusters[0].Conditions} {
			if told := shipper.FindCondition(list, shipper.TargetEndpointsOwned) != nil; told != (s.err == nil) {
				t.Errorf("%v: it says %v", s.err, list)
			}
		}
	}
}

// TestForeignEndpointsAreAConditionAndAWarning goes through what a target says while others come and go.
func TestForeignEndpointsAreAConditionAndAWarning(t *testing.T) {
	tt := &shipper.TrafficTarget{ObjectMeta: metav1.ObjectMeta{Generation: 1}}
	tt.Spec.Clusters = []shipper.ClusterTrafficTarget{{Name: "east", Weight: 50}, {Name: "west", Weight: 50}}
	says := func(east string) []report.Event {
		was := tt.DeepCopy()
		tt.Status = status(was, []Outcome{
			{want: tt.Spec.Clusters[0], services: []string{"web"}, foreign: east}, {want: tt.Spec.Clusters[1], services: []string{"web"}},
		}, nil, time.Unix(1000, 0))
		return changes(was, tt)
	}
	check := func(east string, events []report.Event, want []report.Event) {
		t.Helper()
		if diff := cmp.Diff(want, events); diff != "" {
			t.Errorf("events: -want +got:\n%s", diff)
		}
		of := func(list []shipper.Condition) *shipper.Condition {
			return shipper.FindCondition(list, "EndpointsOwned")
		}
		for _, c := range tt.Status.Clusters {
			if owned := of(c.Conditions); (owned != nil) != (c.Name == "east" && east != "") || owned != nil && owned.Message != east {
				t.Errorf("of %s it says %+v", c.Name, owned)
			}
			if !shipper.ConditionTrue(c.Conditions, shipper.TargetReady) {
				t.Errorf("%s is not ready", c.Name)
			}
		}
		sum := of(tt.Status.Conditions)
		if (sum != nil) != (east != "") || sum != nil && (sum.Message != "east: "+east || sum.Status != "False") {
			t.Errorf("it says %+v", sum)
		}
	}
	warning := func(note string) []report.Event {
		return []report.Event{{Type: "Warning", Reason: "ForeignEndpoints", Action: "UpdateStatus", Note: `cluster "east": ` + note}}
	}
	check("", says(""), nil)
	check("one", says("one"), warning("one"))
	check("one", says("one"), nil)
	check("two", says("two"), warning("two"))
	check("", says(""), nil)
}
