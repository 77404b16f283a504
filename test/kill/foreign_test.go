// SPDX-License-Identifier: Apache-2.0

package kill

import (
	"fmt"
	"strings"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/fleet"
)

const (
	// foreign is the name of objects that Shipper did not create.
	foreign = "foreign"
	// otherApp is an idle Application beside that of the test.
	otherApp = "other-server"
)

// bystand creates objects that Shipper must not touch: some without Shipper's labels, some with the labels of another
// application, and an idle Application.
func (s *fixture) bystand() {
	s.Helper()
	other := s.application(otherApp, "0.0.1", 1, allIn)
	(*other.Spec.Template.Values)["nameOverride"] = otherApp
	s.Must("creating the other application", world.Management.Create(s.Ctx, other))
	s.Completes(s.ReleaseOf(otherApp, 0))
	for _, c := range world.Clusters {
		for name, labels := range map[string]map[string]string{
			foreign:               nil,
			foreign + "-labelled": {shipper.AppLabel: "somebody", shipper.ReleaseLabel: "somebody-1", shipper.LBLabel: shipper.LBForProduction},
		} {
			for _, o := range strangers(name, labels) {
				o.SetNamespace(s.Namespace)
				s.Must("creating a foreign object", c.Create(s.Ctx, o))
			}
		}
	}
	for cluster, c := range world.Clusters {
		s.Eventually("ready foreign pods in "+cluster, "4", func() (string, error) {
			pods := &corev1.PodList{}
			err := c.List(s.Ctx, pods, client.InNamespace(s.Namespace))
			ready := 0
			for i := range pods.Items {
				if strings.HasPrefix(pods.Items[i].Name, foreign) && fleet.PodReady(&pods.Items[i]) {
					ready++
				}
			}
			return fmt.Sprint(ready), err
		})
		s.Eventually("available foreign deployments in "+cluster, "2", func() (string, error) {
			list := &appsv1.DeploymentList{}
			err := c.List(s.Ctx, list, client.InNamespace(s.Namespace))
			available := 0
			for _, d := range list.Items {
				if strings.HasPrefix(d.Name, foreign) && d.Status.AvailableReplicas == 1 && d.Status.ObservedGeneration == d.Generation {
					available++
				}
			}
			return fmt.Sprint(available), err
		})
	}
}

// strangers returns a Deployment, a Service, a ConfigMap and a Pod.
func strangers(name string, labels map[string]string) []client.Object {
	template := map[string]string{"name": foreign}
	for key, value := range labels {
		template[key] = value
	}
	pod := corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "nginx:stable"}}}
	about := func() metav1.ObjectMeta { return metav1.ObjectMeta{Name: name, Labels: labels} }
	return []client.Object{
		&appsv1.Deployment{ObjectMeta: about(), Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To[int32](1), Selector: &metav1.LabelSelector{MatchLabels: template},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: template}, Spec: pod},
		}},
		&corev1.Service{ObjectMeta: about(), Spec: corev1.ServiceSpec{Selector: template, Ports: []corev1.ServicePort{{Port: 80}}}},
		&corev1.ConfigMap{ObjectMeta: about(), Data: map[string]string{"a": "b"}},
		&corev1.Pod{ObjectMeta: about(), Spec: pod},
	}
}

// othersVersions returns the resource versions of all objects in the namespace that are not the Application's, by cluster.
func (s *fixture) othersVersions() map[string]map[string]string {
	s.Helper()
	out := map[string]map[string]string{}
	others := func(o client.Object) bool {
		_, ofJob := o.GetLabels()["batch.kubernetes.io/job-name"] // of a check, without Shipper's labels
		return o.GetName() != appName && o.GetLabels()[shipper.AppLabel] != appName && o.GetName() != "kube-root-ca.crt" && !ofJob
	}
	var err error
	out["management"], err = versions(s.Ctx, world.Management, s.Namespace, others, &shipper.ApplicationList{},
		&shipper.ReleaseList{}, &shipper.InstallationTargetList{}, &shipper.CapacityTargetList{}, &shipper.TrafficTargetList{})
	s.Must("reading versions", err)
	for name, c := range world.Clusters {
		out[name], err = versions(s.Ctx, c, s.Namespace, others, &appsv1.DeploymentList{}, &appsv1.ReplicaSetList{},
			&corev1.ServiceList{}, &corev1.ConfigMapList{}, &corev1.PodList{})
		s.Must("reading versions", err)
	}
	return out
}

// leftAlone fails if a foreign object has changed since the test began, or if a request would have written one.
func (s *fixture) leftAlone(writes []string) {
	s.Helper()
	if diff := cmp.Diff(s.bystanders, s.othersVersions()); diff != "" {
		s.Errorf("foreign objects were written (-before +after):\n%s", diff)
	}
	for _, w := range writes {
		if strings.Contains(w, "/"+foreign) || strings.Contains(w, otherApp) {
			s.Errorf("the reconciler wrote something foreign: %s", w)
		}
	}
}
