// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"maps"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// Labels that make a Pod pass for Shipper's, in production traffic.
var (
	forged    = map[string]string{shipper.AppLabel: appName, shipper.TrafficStatusLabel: shipper.TrafficEnabled}
	theirs    = map[string]string{"app": "theirs"}
	inTraffic = map[string]string{shipper.TrafficStatusLabel: shipper.TrafficEnabled}
)

// probes are refused by every policy of the guard that can refuse an object of its own.
func probes() []client.Object {
	return []client.Object{
		aDeployment("default", forged, theirs), aPod("default", forged), aPod("default", inTraffic), aService("default", forged),
		aDeployment("default", nil, forged), anEndpointSlice("default", aProductionService("default").Name),
	}
}

// named is the metadata of an object that Shipper does not make.
func named(namespace string, labels map[string]string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: "theirs", Labels: labels}
}

// podSpec is that of a Pod that does nothing.
var podSpec = corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "nginx:1"}}}

// template is that of Pods with these labels, and with those of theirs, which selectors need.
func template(labels map[string]string) corev1.PodTemplateSpec {
	all := maps.Clone(labels)
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, theirs)
	return corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: all}, Spec: podSpec}
}

func aPod(namespace string, labels map[string]string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: named(namespace, labels), Spec: podSpec}
}

func aService(namespace string, labels map[string]string) *corev1.Service {
	// It may select Shipper's Pods: only its own labels name its Service.
	return &corev1.Service{ObjectMeta: named(namespace, labels), Spec: corev1.ServiceSpec{
		Selector: forged, Ports: []corev1.ServicePort{{Port: 80}},
	}}
}

// aProductionService passes for the Service that Shipper shifts traffic on.
func aProductionService(namespace string) *corev1.Service {
	service := aService(namespace, map[string]string{shipper.AppLabel: appName, shipper.LBLabel: shipper.LBForProduction})
	service.Name = "production"
	return service
}

// anEndpointSlice sends requests to the Service of this name to an address; of no Service when the name is empty.
func anEndpointSlice(namespace, service string) *discoveryv1.EndpointSlice {
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta: named(namespace, map[string]string{discoveryv1.LabelManagedBy: "somebody"}), AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"10.1.2.3"}}},
	}
	if service != "" {
		slice.Labels[discoveryv1.LabelServiceName] = service
	}
	return slice
}

func aDeployment(namespace string, labels, pods map[string]string) *appsv1.Deployment {
	return &appsv1.Deployment{ObjectMeta: named(namespace, labels), Spec: appsv1.DeploymentSpec{
		Replicas: ptr.To[int32](0), Selector: &metav1.LabelSelector{MatchLabels: theirs}, Template: template(pods),
	}}
}

// workloads are all kinds that make Pods, with Pods of these labels.
func workloads(namespace string, pods map[string]string) []client.Object {
	selector, none := &metav1.LabelSelector{MatchLabels: theirs}, ptr.To[int32](0)
	meta := named(namespace, nil)
	once := template(pods)
	once.Spec.RestartPolicy = corev1.RestartPolicyNever
	job := batchv1.JobSpec{Template: once, Suspend: ptr.To(true)}
	return []client.Object{
		aDeployment(namespace, nil, pods),
		&appsv1.ReplicaSet{ObjectMeta: meta,
			Spec: appsv1.ReplicaSetSpec{Replicas: none, Selector: selector, Template: template(pods)}},
		&appsv1.StatefulSet{ObjectMeta: meta,
			Spec: appsv1.StatefulSetSpec{Replicas: none, Selector: selector, Template: template(pods)}},
		&appsv1.DaemonSet{ObjectMeta: meta, Spec: appsv1.DaemonSetSpec{Selector: selector, Template: template(pods)}},
		&corev1.ReplicationController{ObjectMeta: meta,
			Spec: corev1.ReplicationControllerSpec{Replicas: none, Selector: theirs, Template: ptr.To(template(pods))}},
		&batchv1.Job{ObjectMeta: meta, Spec: job},
		&batchv1.CronJob{ObjectMeta: meta,
			Spec: batchv1.CronJobSpec{Schedule: "0 0 1 1 *", JobTemplate: batchv1.JobTemplateSpec{Spec: job}}},
	}
}
