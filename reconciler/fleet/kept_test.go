// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// whole is metadata with all that it may have, and with what caches keep of it.
const (
	whole = `
  name: x
  namespace: team
  generation: 3
  resourceVersion: "7"
  labels: {shipper-app: web, shipper-release: web-1}
  annotations: {keep: me, kubectl.kubernetes.io/last-applied-configuration: much}
  managedFields: [{manager: m}]
  ownerReferences: [{kind: ReplicaSet, name: rs, uid: u}]
`
	kept = `
  name: x
  namespace: team
  generation: 3
  resourceVersion: "7"
  labels: {shipper-app: web, shipper-release: web-1}
  annotations: {keep: me}
  ownerReferences: [{kind: ReplicaSet, name: rs, uid: u}]
`
)

// read is an object as an API server would send it.
func read[T any](t *testing.T, text string) *T {
	t.Helper()
	out := new(T)
	if err := yaml.UnmarshalStrict([]byte(text), out); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestCachesKeepOfObjects(t *testing.T) {
	podStatus := `
status:
  phase: Pending
  message: it waits
  reason: Unschedulable
  conditions: [{type: PodScheduled, status: "False", reason: Unschedulable}, {type: Ready, status: "False"}]
  initContainerStatuses: [{name: init, ready: false, state: {terminated: {exitCode: 1, reason: Error}}}]
  containerStatuses: [{name: app, image: nginx, imageID: i, ready: false, restartCount: 2, state: {waiting: {reason: CrashLoopBackOff}},
    lastState: {terminated: {exitCode: 137, reason: OOMKilled}}}]
`
	// All that a kubelet says of a Pod that runs.
	runs := `
status:
  observedGeneration: 3
  phase: Running
  hostIP: 10.1.0.1
  hostIPs: [{ip: 10.1.0.1}]
  podIP: 10.0.0.1
  podIPs: [{ip: 10.0.0.1}]
  startTime: "2026-01-01T00:00:00Z"
  qosClass: Burstable
  conditions: [{type: PodScheduled, status: "True"}, {type: Ready, status: %q, reason: r, message: m}]
  initContainerStatuses: [{name: init, ready: true, image: i, imageID: i, restartCount: 0,
    state: {terminated: {exitCode: 0, reason: Completed}}}]
  containerStatuses: [{name: app, image: nginx, imageID: sha, containerID: c, ready: true, started: true, restartCount: 2,
    allocatedResources: {cpu: "1"}, resources: {limits: {cpu: "1"}}, volumeMounts: [{name: v, mountPath: /v}],
    state: {running: {}}, lastState: {terminated: {exitCode: 137, reason: OOMKilled}}}]
`
	// The fields kept of an unhealthy Pod, and of a healthy one.
	wrong := `
status:
  observedGeneration: 3
  phase: Running
  qosClass: Burstable
  conditions: [{type: PodScheduled, status: "True"}, {type: Ready, status: "False", reason: r, message: m}]
  initContainerStatuses: [{name: init, ready: true, image: i, imageID: i, restartCount: 0,
    state: {terminated: {exitCode: 0, reason: Completed}}}]
  containerStatuses: [{name: app, image: nginx, imageID: sha, containerID: c, ready: true, started: true, restartCount: 2,
    allocatedResources: {cpu: "1"}, resources: {limits: {cpu: "1"}}, volumeMounts: [{name: v, mountPath: /v}],
    state: {running: {}}, lastState: {terminated: {exitCode: 137, reason: OOMKilled}}}]
`
	well := `
status:
  observedGeneration: 3
  phase: Running
  qosClass: Burstable
  conditions: [{type: PodScheduled, status: "True"}, {type: Ready, status: "True", reason: r, message: m}]
  containerStatuses: [{name: app, image: "", imageID: "", ready: true, restartCount: 2,
    state: {running: {}}, lastState: {terminated: {exitCode: 137, reason: OOMKilled}}}]
`
	deployment := `
spec: {replicas: 3, progressDeadlineSeconds: 600, paused: true, selector: {matchLabels: {a: b}}%s}
status: {observedGeneration: 3, replicas: 3, conditions: [{type: Available, status: "True"}]}
`
	service := `
spec: {type: LoadBalancer, clusterIP: 10.0.0.1, selector: {a: b}, ports: [{port: 80}]}
status: {loadBalancer: {ingress: [{ip: 10.0.0.2}]}}
`
	for sentence, tc := range map[string]struct{ in, want client.Object }{
		"of a Pod how it fares, not what it is made of": {
			read[corev1.Pod](t, "metadata:"+whole+"spec: {nodeName: n, containers: [{name: app, image: nginx}]}"+podStatus),
			read[corev1.Pod](t, "metadata:"+kept+podStatus),
		},
		"of a Pod with which something is wrong all of its containers, for its CapacityTarget to show": {
			read[corev1.Pod](t, "metadata:"+whole+fmt.Sprintf(runs, "False")), read[corev1.Pod](t, "metadata:"+kept+wrong),
		},
		"of a Pod with which nothing is wrong how its containers run and ended, not what they are made of": {
			read[corev1.Pod](t, "metadata:"+whole+fmt.Sprintf(runs, "True")), read[corev1.Pod](t, "metadata:"+kept+well),
		},
		"of a Deployment how many Pods it is to have and has, and whose they are, not what they are made of": {
			read[appsv1.Deployment](t, "metadata:"+whole+fmt.Sprintf(deployment, ", template: {spec: {containers: [{name: app}]}}")),
			read[appsv1.Deployment](t, "metadata:"+kept+fmt.Sprintf(deployment, "")),
		},
		"of an EndpointSlice which Pods serve, and how, not where": {
			read[discoveryv1.EndpointSlice](t, "metadata:"+whole+`
ports: [{port: 80}]
endpoints: [{addresses: [10.0.0.1], nodeName: n, zone: z, targetRef: {kind: Pod, name: p, uid: u},
  conditions: {ready: true, serving: true, terminating: false}}]`),
			read[discoveryv1.EndpointSlice](t, "metadata:"+kept+`
endpoints: [{targetRef: {kind: Pod, name: p, uid: u}, conditions: {ready: true, serving: true, terminating: false}}]`),
		},
		"all of a Service": {
			read[corev1.Service](t, "metadata:"+whole+service), read[corev1.Service](t, "metadata:"+kept+service),
		},
		"all of an anchor": {
			read[corev1.ConfigMap](t, "metadata:"+whole+"data: {"+shipper.AnchorTargetUIDKey+": u, more: data}"),
			read[corev1.ConfigMap](t, "metadata:"+kept+"data: {"+shipper.AnchorTargetUIDKey+": u, more: data}"),
		},
		"of a ConfigMap that a chart brought nothing but metadata": {
			read[corev1.ConfigMap](t, "metadata:"+whole+"data: {more: data}\nbinaryData: {more: YQ==}"),
			read[corev1.ConfigMap](t, "metadata:"+kept),
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			before := HealthOf(tc.in)
			got, err := stripObject(tc.in)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(any(tc.want), got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if diff := cmp.Diff(before, HealthOf(tc.in)); diff != "" {
				t.Errorf("how it is: -whole +kept:\n%s", diff)
			}
		})
	}
}

func TestOfADeploymentsTemplateTheServicesItsPodsAreMadeForAreKept(t *testing.T) {
	backs := map[string]string{shipper.BackendLabel("web"): "true"}
	made := func(labels map[string]string) *appsv1.Deployment {
		d := &appsv1.Deployment{}
		d.Spec.Template.Labels = labels
		d.Spec.Template.Spec.NodeName = "a"
		return d
	}
	for sentence, tc := range map[string]struct{ given, want map[string]string }{
		"some are":  {map[string]string{"app": "web", shipper.AppLabel: "web", shipper.BackendLabel("web"): "true"}, backs},
		"none is":   {map[string]string{"app": "web"}, nil},
		"no labels": {nil, nil},
	} {
		kept, err := stripObject(made(tc.given))
		want := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: tc.want}}
		if diff := cmp.Diff(want, kept.(*appsv1.Deployment).Spec.Template); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", sentence, err, diff)
		}
	}
}
