// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// addDefaults sets the defaults of the kinds that rollouts write. Kubernetes keeps its own in k8s.io/kubernetes, which is no library;
// the differential test holds these against it.
func addDefaults(s *runtime.Scheme) {
	s.AddTypeDefaultingFunc(&appsv1.Deployment{}, func(o any) { defaultDeployment(o.(*appsv1.Deployment)) })
	s.AddTypeDefaultingFunc(&appsv1.StatefulSet{}, func(o any) { defaultStatefulSet(o.(*appsv1.StatefulSet)) })
	s.AddTypeDefaultingFunc(&appsv1.DaemonSet{}, func(o any) { defaultDaemonSet(o.(*appsv1.DaemonSet)) })
	s.AddTypeDefaultingFunc(&batchv1.Job{}, func(o any) { defaultJob(o.(*batchv1.Job)) })
	s.AddTypeDefaultingFunc(&corev1.Service{}, func(o any) { defaultService(o.(*corev1.Service)) })
	s.AddTypeDefaultingFunc(&corev1.Pod{}, func(o any) {
		pod := o.(*corev1.Pod)
		or(&pod.Spec.EnableServiceLinks, true)
		defaultPodSpec(&pod.Spec)
	})
	s.AddTypeDefaultingFunc(&corev1.Namespace{}, func(o any) {
		ns := o.(*corev1.Namespace)
		if ns.Name != "" {
			if ns.Labels == nil {
				ns.Labels = map[string]string{}
			}
			ns.Labels[corev1.LabelMetadataName] = ns.Name
		}
		set(&ns.Status.Phase, corev1.NamespaceActive)
	})
	s.AddTypeDefaultingFunc(&corev1.Secret{}, func(o any) {
		secret := o.(*corev1.Secret)
		set(&secret.Type, corev1.SecretTypeOpaque)
		for k, v := range secret.StringData {
			if secret.Data == nil {
				secret.Data = map[string][]byte{}
			}
			secret.Data[k] = []byte(v)
		}
		secret.StringData = nil
	})
	s.AddTypeDefaultingFunc(&batchv1.CronJob{}, func(o any) {
		job := o.(*batchv1.CronJob)
		set(&job.Spec.ConcurrencyPolicy, batchv1.AllowConcurrent)
		or(&job.Spec.Suspend, false)
		or(&job.Spec.SuccessfulJobsHistoryLimit, 3)
		or(&job.Spec.FailedJobsHistoryLimit, 1)
		defaultPodSpec(&job.Spec.JobTemplate.Spec.Template.Spec)
	})
	s.AddTypeDefaultingFunc(&corev1.ConfigMap{}, func(o any) {
		if cm := o.(*corev1.ConfigMap); cm.Data == nil {
			cm.Data = map[string]string{}
		}
	})
	s.AddTypeDefaultingFunc(&discoveryv1.EndpointSlice{}, func(o any) {
		slice := o.(*discoveryv1.EndpointSlice)
		for i := range slice.Ports {
			port := &slice.Ports[i]
			or(&port.Name, "")
			or(&port.Protocol, corev1.ProtocolTCP)
		}
	})
}

// set sets a field that is empty, or one that is nil.
func set[T comparable](to *T, value T) {
	if *to == *new(T) {
		*to = value
	}
}

func or[T any](to **T, value T) {
	if *to == nil {
		*to = &value
	}
}

func defaultDeployment(d *appsv1.Deployment) {
	or(&d.Spec.Replicas, 1)
	set(&d.Spec.Strategy.Type, appsv1.RollingUpdateDeploymentStrategyType)
	if d.Spec.Strategy.Type == appsv1.RollingUpdateDeploymentStrategyType {
		or(&d.Spec.Strategy.RollingUpdate, appsv1.RollingUpdateDeployment{})
		or(&d.Spec.Strategy.RollingUpdate.MaxUnavailable, intstr.FromString("25%"))
		or(&d.Spec.Strategy.RollingUpdate.MaxSurge, intstr.FromString("25%"))
	}
	or(&d.Spec.RevisionHistoryLimit, 10)
	or(&d.Spec.ProgressDeadlineSeconds, 600)
	defaultPodSpec(&d.Spec.Template.Spec)
}

func defaultStatefulSet(of *appsv1.StatefulSet) {
	spec := &of.Spec
	or(&spec.Replicas, 1)
	or(&spec.RevisionHistoryLimit, 10)
	set(&spec.PodManagementPolicy, appsv1.OrderedReadyPodManagement)
	set(&spec.UpdateStrategy.Type, appsv1.RollingUpdateStatefulSetStrategyType)
	if spec.UpdateStrategy.Type == appsv1.RollingUpdateStatefulSetStrategyType {
		or(&spec.UpdateStrategy.RollingUpdate, appsv1.RollingUpdateStatefulSetStrategy{})
		or(&spec.UpdateStrategy.RollingUpdate.Partition, 0)
		or(&spec.UpdateStrategy.RollingUpdate.MaxUnavailable, intstr.FromInt32(1))
	}
	or(&spec.PersistentVolumeClaimRetentionPolicy, appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy{
		WhenDeleted: appsv1.RetainPersistentVolumeClaimRetentionPolicyType, WhenScaled: appsv1.RetainPersistentVolumeClaimRetentionPolicyType,
	})
	defaultPodSpec(&spec.Template.Spec)
}

func defaultDaemonSet(d *appsv1.DaemonSet) {
	or(&d.Spec.RevisionHistoryLimit, 10)
	set(&d.Spec.UpdateStrategy.Type, appsv1.RollingUpdateDaemonSetStrategyType)
	if d.Spec.UpdateStrategy.Type == appsv1.RollingUpdateDaemonSetStrategyType {
		or(&d.Spec.UpdateStrategy.RollingUpdate, appsv1.RollingUpdateDaemonSet{})
		or(&d.Spec.UpdateStrategy.RollingUpdate.MaxUnavailable, intstr.FromInt32(1))
		or(&d.Spec.UpdateStrategy.RollingUpdate.MaxSurge, intstr.FromInt32(0))
	}
	defaultPodSpec(&d.Spec.Template.Spec)
}

func defaultJob(j *batchv1.Job) {
	if j.Spec.Parallelism == nil {
		or(&j.Spec.Completions, 1)
	}
	or(&j.Spec.Parallelism, 1)
	or(&j.Spec.BackoffLimit, 6)
	if len(j.Labels) == 0 {
		j.Labels = j.Spec.Template.Labels
	}
	or(&j.Spec.CompletionMode, batchv1.NonIndexedCompletion)
	or(&j.Spec.Suspend, false)
	policy := batchv1.TerminatingOrFailed
	if j.Spec.PodFailurePolicy != nil {
		policy = batchv1.Failed
	}
	or(&j.Spec.PodReplacementPolicy, policy)
	or(&j.Spec.ManualSelector, false)
	defaultPodSpec(&j.Spec.Template.Spec)
}

func defaultService(s *corev1.Service) {
	set(&s.Spec.SessionAffinity, corev1.ServiceAffinityNone)
	set(&s.Spec.Type, corev1.ServiceTypeClusterIP)
	for i := range s.Spec.Ports {
		p := &s.Spec.Ports[i]
		set(&p.Protocol, corev1.ProtocolTCP)
		if p.TargetPort == intstr.FromInt32(0) || p.TargetPort == intstr.FromString("") {
			p.TargetPort = intstr.FromInt32(p.Port)
		}
	}
	outside := s.Spec.Type == corev1.ServiceTypeLoadBalancer || s.Spec.Type == corev1.ServiceTypeNodePort
	if outside {
		set(&s.Spec.ExternalTrafficPolicy, corev1.ServiceExternalTrafficPolicyCluster)
	}
	if outside || s.Spec.Type == corev1.ServiceTypeClusterIP {
		or(&s.Spec.InternalTrafficPolicy, corev1.ServiceInternalTrafficPolicyCluster)
	}
	if s.Spec.Type == corev1.ServiceTypeLoadBalancer {
		or(&s.Spec.AllocateLoadBalancerNodePorts, true)
	}
}

func defaultPodSpec(s *corev1.PodSpec) {
	if s.ServiceAccountName == "" {
		s.ServiceAccountName = s.DeprecatedServiceAccount
	}
	s.DeprecatedServiceAccount = s.ServiceAccountName
	set(&s.DNSPolicy, corev1.DNSClusterFirst)
	set(&s.RestartPolicy, corev1.RestartPolicyAlways)
	or(&s.SecurityContext, corev1.PodSecurityContext{})
	or(&s.TerminationGracePeriodSeconds, corev1.DefaultTerminationGracePeriodSeconds)
	set(&s.SchedulerName, corev1.DefaultSchedulerName)
	for i := range s.InitContainers {
		defaultContainer(&s.InitContainers[i])
	}
	for i := range s.Containers {
		defaultContainer(&s.Containers[i])
	}
	for i := range s.Volumes {
		defaultVolume(&s.Volumes[i])
	}
}

func defaultContainer(c *corev1.Container) {
	policy := corev1.PullIfNotPresent
	if tag := tagOf(c.Image); tag == "latest" {
		policy = corev1.PullAlways
	}
	set(&c.ImagePullPolicy, policy)
	set(&c.TerminationMessagePath, corev1.TerminationMessagePathDefault)
	set(&c.TerminationMessagePolicy, corev1.TerminationMessageReadFile)
	for i := range c.Ports {
		set(&c.Ports[i].Protocol, corev1.ProtocolTCP)
	}
	for i := range c.Env {
		if from := c.Env[i].ValueFrom; from != nil && from.FieldRef != nil {
			set(&from.FieldRef.APIVersion, "v1")
		}
	}
	for _, p := range []*corev1.Probe{c.LivenessProbe, c.ReadinessProbe, c.StartupProbe} {
		if p == nil {
			continue
		}
		set(&p.TimeoutSeconds, 1)
		set(&p.PeriodSeconds, 10)
		set(&p.SuccessThreshold, 1)
		set(&p.FailureThreshold, 3)
		if p.HTTPGet != nil {
			set(&p.HTTPGet.Path, "/")
			set(&p.HTTPGet.Scheme, corev1.URISchemeHTTP)
		}
	}
}

// tagOf returns the tag of an image: latest, if it has neither tag nor digest.
func tagOf(image string) string {
	name, _, digested := strings.Cut(image, "@")
	if i := strings.LastIndex(name, ":"); i > strings.LastIndex(name, "/") {
		return name[i+1:]
	}
	if digested {
		return ""
	}
	return "latest"
}

func defaultVolume(v *corev1.Volume) {
	switch s := &v.VolumeSource; {
	case *s == corev1.VolumeSource{}:
		s.EmptyDir = &corev1.EmptyDirVolumeSource{}
	case s.ConfigMap != nil:
		or(&s.ConfigMap.DefaultMode, corev1.ConfigMapVolumeSourceDefaultMode)
	case s.Secret != nil:
		or(&s.Secret.DefaultMode, corev1.SecretVolumeSourceDefaultMode)
	case s.Projected != nil:
		or(&s.Projected.DefaultMode, corev1.ProjectedVolumeSourceDefaultMode)
	case s.DownwardAPI != nil:
		or(&s.DownwardAPI.DefaultMode, corev1.DownwardAPIVolumeSourceDefaultMode)
	}
}
