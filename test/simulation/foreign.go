// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

const (
	// foreignName begins the names of objects that Shipper did not create.
	foreignName = "foreign"
	// otherApp is an idle Application beside that of the story.
	otherApp = "other-server"
)

// foreign reports whether Shipper must not touch an object during the parts of a story.
func foreign(o *unstructured.Unstructured) bool {
	return strings.HasPrefix(o.GetName(), foreignName) || o.GetName() == otherApp || o.GetLabels()[shipper.AppLabel] == otherApp
}

// Bystand creates objects that Shipper must not touch: some without Shipper's labels, some with the labels of another application, and an
// idle Application.
func (f *Fixture) Bystand() {
	f.T.Helper()
	other := f.Application(otherApp, "0.0.1", 1, allIn())
	(*other.Spec.Template.Values)["nameOverride"] = otherApp
	f.Creates(other)
	f.Completes(f.ReleaseOf(otherApp, 0))
	for name, s := range f.Clusters {
		for object, labels := range map[string]map[string]string{
			foreignName: nil,
			foreignName + "-labelled": {
				shipper.AppLabel: "somebody", shipper.ReleaseLabel: "somebody-1", shipper.LBLabel: shipper.LBForProduction,
			},
		} {
			for kind, o := range strangers(object, labels) {
				group, resource, _ := strings.Cut(kind, "/")
				f.must("creating a foreign object in "+name, s.Create(group, resource, o))
			}
		}
	}
}

// strangers are a Deployment, a Service, a ConfigMap and a Pod, by their kinds.
func strangers(name string, labels map[string]string) map[string]client.Object {
	template := map[string]string{"name": foreignName}
	for key, value := range labels {
		template[key] = value
	}
	spec := corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "nginx:stable"}}}
	about := func() metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels} }
	return map[string]client.Object{
		"apps/deployments": &appsv1.Deployment{ObjectMeta: about(), Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To[int32](1), Selector: &metav1.LabelSelector{MatchLabels: template},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: template}, Spec: spec},
		}},
		services:   &corev1.Service{ObjectMeta: about(), Spec: corev1.ServiceSpec{Selector: template, Ports: []corev1.ServicePort{{Port: 80}}}},
		configMaps: &corev1.ConfigMap{ObjectMeta: about(), Data: map[string]string{"a": "b"}},
		pods:       &corev1.Pod{ObjectMeta: about(), Spec: spec},
	}
}

// untouched are the versions of all foreign objects. Where the idle Application reports faults of clusters, or blocks, the generations
// count in the management cluster.
func (f *Fixture) untouched() map[string]string {
	out := map[string]string{}
	for name, h := range f.hosts {
		for _, kind := range compared[name == management] {
			for _, o := range h.all(kind) {
				version := o.GetResourceVersion()
				if name == management && (f.story.Shared || len(f.plan.Faults) > 0) {
					version = fmt.Sprint("generation ", o.GetGeneration())
				}
				if foreign(o) && kind != endpoints {
					out[fmt.Sprint(name, " ", kind, " ", o.GetName())] = version
				}
			}
		}
	}
	return out
}
