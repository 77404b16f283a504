// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// begin sets what kube-apiserver sets in a new object of a kind.
func begin(ctx context.Context, o runtime.Object) {
	s := requestOf(ctx).server
	s.mu.Lock()
	defer s.mu.Unlock()
	if m, ok := o.(metav1.Object); ok {
		m.SetUID(s.id())
	}
	switch o := o.(type) {
	case *corev1.Namespace:
		o.Spec.Finalizers = append([]corev1.FinalizerName{corev1.FinalizerKubernetes}, o.Spec.Finalizers...)
		o.Status.Phase = corev1.NamespaceActive
	case *corev1.Pod:
		o.Status = corev1.PodStatus{Phase: corev1.PodPending, QOSClass: corev1.PodQOSBestEffort}
	case *corev1.Service:
		s.address(o)
	case *batchv1.Job:
		own(o)
	case *discoveryv1.EndpointSlice:
		if len(o.Endpoints) == 0 {
			o.Endpoints = nil
		}
	}
}

// named checks the name of an object of a kind of Kubernetes. Roles may have any name that fits into a path.
func (k Kind) named(o runtime.Object) field.ErrorList {
	check := apivalidation.NameIsDNSSubdomain
	switch k.Kind {
	case "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding":
		return nil
	case "Namespace":
		check = apivalidation.ValidateNamespaceName
	case "Service":
		check = apivalidation.NameIsDNS1035Label
	}
	return apivalidation.ValidateObjectMetaAccessor(o.(metav1.Object), !k.Cluster, check, field.NewPath("metadata"))
}

// address gives a Service a cluster IP.
func (s *Server) address(o *corev1.Service) {
	if o.Spec.Type == corev1.ServiceTypeExternalName {
		return
	}
	if o.Spec.ClusterIP == "" {
		s.addresses++
		o.Spec.ClusterIP = fmt.Sprintf("10.96.%d.%d", s.addresses/250, s.addresses%250+1)
	}
	o.Spec.ClusterIPs = []string{o.Spec.ClusterIP}
	or(&o.Spec.IPFamilyPolicy, corev1.IPFamilyPolicySingleStack)
	if len(o.Spec.IPFamilies) == 0 {
		o.Spec.IPFamilies = []corev1.IPFamily{corev1.IPv4Protocol}
	}
}

// own has a Job select its own Pods.
func own(o *batchv1.Job) {
	if o.Spec.ManualSelector != nil && *o.Spec.ManualSelector {
		return
	}
	labels := map[string]string{}
	for k, v := range o.Spec.Template.Labels {
		labels[k] = v
	}
	for _, key := range []string{batchv1.ControllerUidLabel, "controller-uid"} {
		labels[key] = string(o.UID)
	}
	for _, key := range []string{batchv1.JobNameLabel, "job-name"} {
		labels[key] = o.Name
	}
	o.Spec.Template.Labels = labels
	o.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{batchv1.ControllerUidLabel: string(o.UID)}}
}

// keep takes what an update cannot change from the stored object.
func keep(o, old runtime.Object) {
	switch o := o.(type) {
	case *corev1.Namespace:
		o.Spec.Finalizers = old.(*corev1.Namespace).Spec.Finalizers
	case *corev1.Service:
		before := old.(*corev1.Service)
		if o.Spec.Type == corev1.ServiceTypeExternalName || before.Spec.Type == corev1.ServiceTypeExternalName {
			return
		}
		if o.Spec.ClusterIP == "" {
			o.Spec.ClusterIP, o.Spec.ClusterIPs = before.Spec.ClusterIP, before.Spec.ClusterIPs
		}
		or(&o.Spec.IPFamilyPolicy, *before.Spec.IPFamilyPolicy)
		if len(o.Spec.IPFamilies) == 0 {
			o.Spec.IPFamilies = before.Spec.IPFamilies
		}
	}
}

// immutable refuses changes of fields that cannot be changed.
func immutable(o, old runtime.Object) field.ErrorList {
	switch o := o.(type) {
	case *appsv1.Deployment:
		return apivalidation.ValidateImmutableField(o.Spec.Selector, old.(*appsv1.Deployment).Spec.Selector, field.NewPath("spec", "selector"))
	case *appsv1.StatefulSet:
		now, before := o.Spec.DeepCopy(), old.(*appsv1.StatefulSet).Spec
		now.Replicas, now.Template, now.UpdateStrategy = before.Replicas, before.Template, before.UpdateStrategy
		now.Ordinals, now.MinReadySeconds, now.RevisionHistoryLimit = before.Ordinals, before.MinReadySeconds, before.RevisionHistoryLimit
		now.PersistentVolumeClaimRetentionPolicy = before.PersistentVolumeClaimRetentionPolicy
		if !equality.Semantic.DeepEqual(*now, before) {
			return field.ErrorList{field.Forbidden(field.NewPath("spec"), "updates to statefulset spec for fields other than 'replicas', "+
				"'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' "+
				"are forbidden")}
		}
	case *appsv1.DaemonSet:
		return apivalidation.ValidateImmutableField(o.Spec.Selector, old.(*appsv1.DaemonSet).Spec.Selector, field.NewPath("spec", "selector"))
	case *batchv1.Job:
		errs := apivalidation.ValidateImmutableField(o.Spec.Selector, old.(*batchv1.Job).Spec.Selector, field.NewPath("spec", "selector"))
		template := old.(*batchv1.Job).Spec.Template
		return append(errs, apivalidation.ValidateImmutableField(o.Spec.Template, template, field.NewPath("spec", "template"))...)
	case *corev1.Secret:
		before := old.(*corev1.Secret)
		errs := apivalidation.ValidateImmutableField(o.Type, before.Type, field.NewPath("type"))
		if before.Immutable != nil && *before.Immutable && !equality.Semantic.DeepEqual(o.Data, before.Data) {
			errs = append(errs, field.Forbidden(field.NewPath("data"), "field is immutable when `immutable` is set"))
		}
		return errs
	case *corev1.ConfigMap:
		before := old.(*corev1.ConfigMap)
		if before.Immutable != nil && *before.Immutable && !equality.Semantic.DeepEqual(o.Data, before.Data) {
			return field.ErrorList{field.Forbidden(field.NewPath("data"), "field is immutable when `immutable` is set")}
		}
	}
	return nil
}
