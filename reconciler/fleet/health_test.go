// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// thing is an object of an unknown kind.
func thing(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	raw, err := yaml.YAMLToJSON([]byte("apiVersion: example.com/v1\nkind: Thing\n" + text))
	if err != nil {
		t.Fatal(err)
	}
	if err := u.UnmarshalJSON(raw); err != nil {
		t.Fatal(err)
	}
	return u
}

func TestHealth(t *testing.T) {
	deployment := func(available int32) *appsv1.Deployment {
		n := int32(3)
		return &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Generation: 1}, Spec: appsv1.DeploymentSpec{Replicas: &n},
			Status: appsv1.DeploymentStatus{
				ObservedGeneration: 1, Replicas: 3, UpdatedReplicas: 3, ReadyReplicas: available, AvailableReplicas: available,
				Conditions: []appsv1.DeploymentCondition{
					{Type: "Available", Status: "True"}, {Type: "Progressing", Status: "True", Reason: "NewReplicaSetAvailable"},
				},
			},
		}
	}
	paused := deployment(0)
	paused.Spec.Paused = true
	balanced := func(class *string, annotations map[string]string, at ...corev1.LoadBalancerIngress) *corev1.Service {
		return &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Name: "web", Annotations: annotations},
			Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer, ClusterIP: "10.0.0.1", LoadBalancerClass: class},
			Status:     corev1.ServiceStatus{LoadBalancer: corev1.LoadBalancerStatus{Ingress: at}},
		}
	}
	awaited := func(by string) Health {
		return Health{Status: "InProgress", Reason: "AddressAwaited", Message: "is of type LoadBalancer and has no address yet; where no " + by +
			` gives one, use type ClusterIP or NodePort, or annotate it with shipper.booking.com/await-address: "false"`}
	}
	class := "example.com/nobody"
	now := metav1.Now()
	for sentence, tc := range map[string]struct {
		object client.Object
		want   Health
	}{
		"a Deployment that has all Pods":          {deployment(3), Health{Status: "Current"}},
		"one that has few":                        {deployment(1), Health{Status: "InProgress", Reason: "LessAvailable"}},
		"one that has some more":                  {deployment(2), Health{Status: "InProgress", Reason: "LessAvailable"}},
		"one that is paused":                      {paused, Health{Status: "InProgress", Reason: "Paused"}},
		"a kind that has nothing but to be there": {&metav1.PartialObjectMetadata{}, Health{Status: "Current"}},
		"one of these that goes": {
			&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &now}}, Health{Status: "Terminating"},
		},
		"a Service of type LoadBalancer without an address": {balanced(nil, nil), awaited("controller")},
		"one with an entry that has no address":             {balanced(nil, nil, corev1.LoadBalancerIngress{}), awaited("controller")},
		"one of a class":                                    {balanced(&class, nil), awaited(`controller of class "example.com/nobody"`)},
		"one with an address": {
			balanced(nil, nil, corev1.LoadBalancerIngress{IP: "192.0.2.1"}), Health{Status: "Current"},
		},
		"one with a host name": {
			balanced(nil, nil, corev1.LoadBalancerIngress{Hostname: "web.example.com"}), Health{Status: "Current"},
		},
		"one whose annotation says that it needs no address": {
			balanced(nil, map[string]string{"shipper.booking.com/await-address": "false"}), Health{Status: "Current"},
		},
		"a Service of type ClusterIP": {&corev1.Service{Spec: corev1.ServiceSpec{ClusterIP: "10.0.0.1"}}, Health{Status: "Current"}},
		"a Service of type ExternalName": {
			&corev1.Service{Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName}}, Health{Status: "Current"},
		},
		"a thing without a status": {thing(t, "metadata: {generation: 2}"), Health{Status: "Current", Unreadable: true}},
		"a thing that is not ready": {
			thing(t, `status: {conditions: [{type: Ready, status: "False", reason: Warming, message: 3 of 7}]}`),
			Health{Status: "InProgress", Reason: "Warming"},
		},
		"a thing that is ready": {thing(t, `status: {conditions: [{type: Ready, status: "True", reason: Fine}]}`), Health{Status: "Current"}},
		"a thing that has failed": {
			thing(t, `status: {conditions: [{type: Stalled, status: "True", reason: Broken, message: no such disk}]}`),
			Health{Status: "Failed", Reason: "Broken", Message: "no such disk"},
		},
		"a thing whose controller is late": {
			thing(t, "metadata: {generation: 2}\nstatus: {observedGeneration: 1}"),
			Health{Status: "InProgress", Reason: "LatestGenerationNotObserved"},
		},
		"a thing of an unknown form": {thing(t, "status: {conditions: none}"), Health{Status: "Unknown", Reason: "NotUnderstood"}},
	} {
		t.Run(sentence, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, HealthOf(tc.object)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if u, ok := tc.object.(*unstructured.Unstructured); ok {
				if diff := cmp.Diff(tc.want, HealthOf(judged(u))); diff != "" {
					t.Errorf("from a cache: -want +got:\n%s", diff)
				}
			}
		})
	}
}

func TestCachesKeepOfAThingItsMetadataAndItsHealth(t *testing.T) {
	got := judged(thing(t, `
metadata:
  name: x
  labels: {a: b}
  annotations: {keep: me, kubectl.kubernetes.io/last-applied-configuration: much}
  managedFields: [{manager: m}]
spec: {much: more}
status: {conditions: [{type: Ready, status: "True"}]}
`))
	want := thing(t, `
metadata: {name: x, labels: {a: b}, annotations: {keep: me}}
health: {status: Current, reason: "", message: ""}
`)
	if diff := cmp.Diff(want.Object, got.Object); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
