// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	testfleet "shipper.dev/shipper/test/fleet"
)

// stolen are labels by which Pods would serve the requests of the Application "web".
const stolen = "app: evil, shipper-app: web, shipper-release: web-1, shipper-traffic-status: enabled"

// evil is a chart whose every kind of workload carries the labels of another Application.
var evil = map[string]string{
	"templates/set.yaml": `
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: evil-stateful, labels: {kind: stateful, ` + stolen + `}}
spec:
  serviceName: x
  selector: {matchLabels: {kind: stateful}}
  template: {metadata: {labels: {kind: stateful, ` + stolen + `}}, spec: {containers: [{name: e, image: "nginx:1"}]}}
`,
	"templates/replicas.yaml": `
apiVersion: apps/v1
kind: ReplicaSet
metadata: {name: evil-replicas, labels: {kind: replicas, ` + stolen + `}}
spec:
  selector: {matchLabels: {kind: replicas}}
  template: {metadata: {labels: {kind: replicas, ` + stolen + `}}, spec: {containers: [{name: e, image: "nginx:1"}]}}
`,
	"templates/pod.yaml": `
apiVersion: v1
kind: Pod
metadata: {name: evil-pod, labels: {` + stolen + `}}
spec: {containers: [{name: e, image: "nginx:1"}]}
`,
	"templates/service.yaml": `
apiVersion: v1
kind: Service
metadata: {name: evil, labels: {shipper-lb: production}}
spec: {selector: {app: web}, ports: [{port: 80}]}
`,
}

// TestPodsOfAnotherChartDoNotJoinAService lets a second Application install workloads with the labels of a first one, which has all
// traffic by its Release, and then by label.
func TestPodsOfAnotherChartDoNotJoinAService(t *testing.T) {
	t.Parallel()
	s := begin(t, west)
	served := s.follow(west)
	s.up("web-1", 2, 1)
	served.settles(byRelease("web-1"), map[string]int{"web-1": 2})

	attacker := *s
	attacker.app = "evil"
	attacker.publish("evil", evil)
	attacker.install("evil-1", "evil", "0.0.1", shipper.ChartValues{}, west)
	attacker.installed("evil-1")
	of := client.MatchingLabels{"app": "evil"}
	s.soon("the attacker's Pods do not run", func() string {
		var pods corev1.PodList
		s.must(world.clusters[west].List(s.ctx, &pods, client.InNamespace(s.namespace), of))
		ready := 0
		for i := range pods.Items {
			if testfleet.PodReady(&pods.Items[i]) {
				ready++
			}
		}
		if ready != 3 {
			return fmt.Sprint(ready, " of 3 are ready")
		}
		for _, pod := range pods.Items {
			of := pod.Labels
			if of[shipper.AppLabel] == s.app || of[shipper.ReleaseLabel] == "web-1" || of[shipper.TrafficStatusLabel] != "" {
				s.Errorf("Pod %s has the labels %v", pod.Name, pod.Labels)
			}
		}
		return ""
	})
	served.only("web-1", "web-2")
	s.up("web-2", 2, 1)
	served.serves(byLabel(), map[string]int{"web-1": 2, "web-2": 2}, func() {})
}

// intrude makes Pods that carry the labels of web-1, as an operator would that Shipper's guard does not hold. They get the labels when they
// are ready: others lose the label for traffic, and the Service its selector of the Release, before they are endpoints.
func (s *fixture) intrude(cluster string) {
	s.Helper()
	labels := map[string]string{
		"app": "evil", shipper.AppLabel: s.app, shipper.ReleaseLabel: "web-1", shipper.TrafficStatusLabel: shipper.TrafficEnabled,
	}
	meta := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: s.namespace, Name: name, Labels: labels}
	}
	evil := client.MatchingLabels{"app": "evil"}
	spec := corev1.PodSpec{Containers: []corev1.Container{{Name: "e", Image: "nginx:1"}}}
	of := func(kind string) (*metav1.LabelSelector, corev1.PodTemplateSpec) {
		selector := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "evil", "kind": kind}}
		return selector, corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: selector.MatchLabels}, Spec: spec}
	}
	stateful, replicas := &appsv1.StatefulSet{ObjectMeta: meta("evil-stateful")}, &appsv1.ReplicaSet{ObjectMeta: meta("evil-replicas")}
	deployment := &appsv1.Deployment{ObjectMeta: meta("evil-deployment")}
	stateful.Spec.Selector, stateful.Spec.Template = of("stateful")
	replicas.Spec.Selector, replicas.Spec.Template = of("replicas")
	deployment.Spec.Selector, deployment.Spec.Template = of("deployment")
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "evil-pod", Labels: evil}, Spec: spec}
	for _, o := range []client.Object{stateful, replicas, deployment, pod} {
		s.must(world.clusters[cluster].Create(s.ctx, o))
	}
	var pods corev1.PodList
	s.soon("the intruders do not run", func() string {
		s.must(world.clusters[cluster].List(s.ctx, &pods, client.InNamespace(s.namespace), evil))
		unready := slices.DeleteFunc(slices.Clone(pods.Items), func(pod corev1.Pod) bool { return testfleet.PodReady(&pod) })
		if len(pods.Items) != 4 || len(unready) > 0 {
			return fmt.Sprintf("of %d Pods %d are not ready", len(pods.Items), len(unready))
		}
		return ""
	})
	for i := range pods.Items {
		was := pods.Items[i].DeepCopy()
		maps.Copy(pods.Items[i].Labels, labels)
		s.must(world.clusters[cluster].Patch(s.ctx, &pods.Items[i], client.MergeFrom(was)))
	}
}

// TestPodsThatOnlyCarryLabelsAreReportedAndLoseTraffic makes them past Shipper. The Service selects by Release before, and by label
// until they are gone. Shipper's own Pods serve all the time.
func TestPodsThatOnlyCarryLabelsAreReportedAndLoseTraffic(t *testing.T) {
	t.Parallel()
	s := begin(t, west)
	s.up("web-1", 2, 1)
	s.weighed("web-1")
	s.intrude(west)
	s.warned("web-1", `Service "test-nginx-prod" sends requests to what is of no Release of Application "web": `, "evil-")
	s.soon("they serve still", func() string {
		service := &corev1.Service{}
		s.find(west, "test-nginx-prod", service)
		endpoints := s.endpoints(west, "test-nginx-prod")
		own := 0
		for _, pod := range s.pods(west, "web-1") {
			in := pod.Labels[shipper.TrafficStatusLabel] == shipper.TrafficEnabled
			if mine := strings.HasPrefix(pod.Name, "web-1-test-nginx-"); mine && in {
				own++
			} else if in {
				return pod.Name + " has the label"
			}
		}
		if own != 2 || endpoints["web-1"] != 2 || service.Spec.Selector[shipper.ReleaseLabel] != "" {
			return fmt.Sprint(own, endpoints, service.Spec.Selector)
		}
		return ""
	})
	s.owned("web-1", west, "")
	s.weighed("web-1")

	for _, o := range []client.Object{&appsv1.Deployment{}, &appsv1.StatefulSet{}, &appsv1.ReplicaSet{}, &corev1.Pod{}} {
		of := client.MatchingLabels{"app": "evil"}
		s.must(world.clusters[west].DeleteAllOf(s.ctx, o, client.InNamespace(s.namespace), of))
	}
	s.soon("the Service does not select by Release again", func() string {
		service := &corev1.Service{}
		s.find(west, "test-nginx-prod", service)
		if service.Spec.Selector[shipper.ReleaseLabel] == "web-1" {
			return ""
		}
		return fmt.Sprint(service.Spec.Selector)
	})
}

// TestAnEndpointSliceWrittenByHandIsReported writes one with the labels by which Shipper knows it.
func TestAnEndpointSliceWrittenByHandIsReported(t *testing.T) {
	t.Parallel()
	s := begin(t, west)
	s.up("web-1", 1, 1)
	s.weighed("web-1")
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "by-hand", Labels: map[string]string{
			shipper.AppLabel: s.app, discoveryv1.LabelServiceName: "test-nginx-prod", discoveryv1.LabelManagedBy: "somebody",
		}},
		AddressType: discoveryv1.AddressTypeIPv4, Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"10.1.2.3"}}},
	}
	s.must(world.clusters[west].Create(s.ctx, slice))
	const what = `Service "test-nginx-prod" sends requests to what is of no Release of Application "web": EndpointSlice "by-hand", ` +
		`which no controller wrote. Take the labels shipper-app and shipper-release off its Pods and off what makes them, and remove ` +
		`EndpointSlices that were written by hand`
	s.owned("web-1", west, what)
	s.warned("web-1", what)
	s.must(world.clusters[west].Delete(s.ctx, slice))
	s.owned("web-1", west, "")
}

// owned waits until a TrafficTarget says of a cluster that something serves which is of no Release, or, when what is empty, nothing.
func (s *fixture) owned(name, cluster, what string) {
	s.Helper()
	s.soon("what is said of endpoints", func() string {
		var tt shipper.TrafficTarget
		s.must(s.management.Get(s.ctx, s.key(name), &tt))
		got := ""
		for _, c := range tt.Status.Clusters {
			if owned := shipper.FindCondition(c.Conditions, shipper.TargetEndpointsOwned); c.Name == cluster && owned != nil {
				got = owned.Message
			}
		}
		if got != what {
			return got + "\nwant:\n" + what
		}
		return ""
	})
}

// warned waits for a Warning event about a TrafficTarget that has all these parts.
func (s *fixture) warned(name string, parts ...string) {
	s.Helper()
	s.soon("there is no warning", func() string {
		var all eventsv1.EventList
		s.must(s.management.List(s.ctx, &all, client.InNamespace(s.namespace)))
		var notes []string
		for i := range all.Items {
			e := &all.Items[i]
			has := e.Type == corev1.EventTypeWarning && e.Reason == shipper.ForeignEndpoints && e.Regarding.Name == name
			for _, part := range parts {
				has = has && strings.Contains(e.Note, part)
			}
			if has {
				return ""
			}
			notes = append(notes, e.Reason+": "+e.Note)
		}
		return strings.Join(notes, "\n")
	})
}
