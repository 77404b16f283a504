// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// slowness is how long a container whose image has the tag "slow" takes to get ready.
const slowness = 4 * time.Second

// newPod makes a Pod from a template. The server's mutex is held.
func (s *Server) newPod(template corev1.PodTemplateSpec, namespace, name string, owner metav1.OwnerReference) *corev1.Pod {
	template = *template.DeepCopy()
	pod := &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
	pod.Namespace, pod.Name, pod.GenerateName = namespace, name+"-"+s.suffix(), name+"-"
	pod.OwnerReferences = []metav1.OwnerReference{owner}
	builtin.Default(pod)
	pod.Spec.NodeName = "node-0"
	pod.Status = corev1.PodStatus{Phase: corev1.PodPending, QOSClass: corev1.PodQOSBestEffort}
	pod.Status.Conditions = []corev1.PodCondition{condition(corev1.PodScheduled, corev1.ConditionTrue, "")}
	return pod
}

func condition(kind corev1.PodConditionType, status corev1.ConditionStatus, reason string) corev1.PodCondition {
	return corev1.PodCondition{Type: kind, Status: status, Reason: reason, LastTransitionTime: metav1.NewTime(time.Now())}
}

func setCondition(pod *corev1.Pod, c corev1.PodCondition) {
	for i, now := range pod.Status.Conditions {
		if now.Type == c.Type {
			if now.Status == c.Status {
				c.LastTransitionTime = now.LastTransitionTime
			}
			pod.Status.Conditions[i] = c
			return
		}
	}
	pod.Status.Conditions = append(pod.Status.Conditions, c)
}

// advance schedules what a Pod does next.
func (s *Server) advance(o *object) {
	pod := o.live.(*corev1.Pod)
	if pod.DeletionTimestamp != nil {
		return
	}
	again := func(in time.Duration) {
		s.later("pod "+o.uid, in, func() {
			if now := s.tables[pods].get(o.namespace, o.name); now != nil && now.uid == o.uid && deletionOf(now.live) == nil {
				s.play(now)
			}
		})
	}
	switch {
	case pending(pod) && s.options.PodLatency < 0:
		s.play(o)
	case pending(pod):
		s.later("start "+o.namespace+"/"+ownerOf(pod), s.options.PodLatency, func() { s.startAll(o.namespace, ownerOf(pod)) })
	case waits(pod) && pod.Annotations[pushed] == "pushed":
		again(reaction)
	case has(pod, "slow") && !ready(pod) && pod.Status.Phase == corev1.PodRunning:
		again(slowness)
	case ready(pod) && ends(pod) && pod.Status.Phase == corev1.PodRunning:
		again(s.options.JobLatency)
	}
}

func pending(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodPending && len(pod.Status.ContainerStatuses) == 0 && pod.DeletionTimestamp == nil
}

// ownerOf returns what controls a Pod, or the Pod itself.
func ownerOf(pod *corev1.Pod) string {
	if c := metav1.GetControllerOf(pod); c != nil {
		return string(c.UID)
	}
	return string(pod.UID)
}

// startAll starts the Pods of an owner that were created together, at one time: clients see none or all of them ready.
func (s *Server) startAll(namespace, owner string) {
	for _, o := range s.tables[pods].list(namespace, selector{}) {
		pod := o.live.(*corev1.Pod)
		if !pending(pod) || ownerOf(pod) != owner {
			continue
		}
		if left := s.options.PodLatency - time.Since(o.since); left > time.Millisecond {
			s.later("start "+namespace+"/"+owner, left, func() { s.startAll(namespace, owner) })
			continue
		}
		s.play(o)
	}
}

// pushed is the annotation of a Pod that says that its broken image can be pulled now, as in test/fleet.
const pushed = "fleet/image"

func waits(pod *corev1.Pod) bool {
	for _, c := range pod.Status.ContainerStatuses {
		if c.State.Waiting != nil && c.State.Waiting.Reason == "ImagePullBackOff" {
			return true
		}
	}
	return false
}

func has(pod *corev1.Pod, tag string) bool {
	for _, c := range pod.Spec.Containers {
		if strings.HasSuffix(c.Image, ":"+tag) {
			return true
		}
	}
	return false
}

func ready(pod *corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

func ownedByJob(pod *corev1.Pod) bool {
	c := metav1.GetControllerOf(pod)
	return c != nil && c.Kind == "Job"
}

// ends reports whether a Pod does its work and ends: that of a Job, and a test or another hook of a chart.
func ends(pod *corev1.Pod) bool {
	_, hook := pod.Annotations["helm.sh/hook"]
	return ownedByJob(pod) || hook && pod.Spec.RestartPolicy != corev1.RestartPolicyAlways && pod.Spec.RestartPolicy != ""
}

// play advances a Pod: the tags of its images say how, as in test/fleet/stages. The server's mutex is held.
func (s *Server) play(o *object) {
	pod := o.live.DeepCopyObject().(*corev1.Pod)
	now := metav1.NewTime(time.Now())
	if pod.Status.PodIP == "" {
		s.addresses++
		pod.Status.PodIP = fmt.Sprintf("10.%d.%d.%d", 1+s.addresses/62500, s.addresses/250%250, s.addresses%250+1)
		pod.Status.PodIPs = []corev1.PodIP{{IP: pod.Status.PodIP}}
		pod.Status.HostIP, pod.Status.StartTime = "10.0.0.1", &now
		pod.Status.HostIPs = []corev1.HostIP{{IP: "10.0.0.1"}}
		for _, kind := range []corev1.PodConditionType{corev1.PodReadyToStartContainers, corev1.PodInitialized} {
			setCondition(pod, condition(kind, corev1.ConditionTrue, ""))
		}
	}
	broken := has(pod, "broken") && pod.Annotations[pushed] != "pushed"
	switch {
	case ownedByJob(pod) && (broken || has(pod, "crash")):
		s.end(pod, corev1.PodFailed)
	case ready(pod) && ends(pod):
		s.end(pod, corev1.PodSucceeded)
	case broken:
		s.contain(pod, "broken", &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: "Back-off pulling image"})
	case has(pod, "crash"):
		pod.Status.Phase = corev1.PodRunning
		s.contain(pod, "crash", &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff", Message: "back-off 10s restarting failed container"})
	case has(pod, "slow") && pod.Status.Phase == corev1.PodPending:
		pod.Status.Phase = corev1.PodRunning
		s.contain(pod, "slow", nil)
	default:
		pod.Status.Phase = corev1.PodRunning
		s.contain(pod, "", nil)
	}
	s.put(s.tables[pods], pod)
}

// contain sets the state of the containers: those whose image has a tag are not ready; they wait, or run.
func (s *Server) contain(pod *corev1.Pod, tag string, waiting *corev1.ContainerStateWaiting) {
	pod.Status.ContainerStatuses = nil
	now := metav1.NewTime(time.Now())
	var unready []string
	for _, c := range pod.Spec.Containers {
		status := corev1.ContainerStatus{Name: c.Name, Image: c.Image, ImageID: "simulated://" + c.Image, Ready: true, Started: ptr.To(true)}
		status.State.Running = &corev1.ContainerStateRunning{StartedAt: now}
		if tag != "" && strings.HasSuffix(c.Image, ":"+tag) {
			unready = append(unready, c.Name)
			status.Ready = false
			if waiting != nil {
				status.Started, status.State = ptr.To(false), corev1.ContainerState{Waiting: waiting.DeepCopy()}
			}
			if tag == "crash" {
				status.RestartCount = 1
				status.LastTerminationState.Terminated = &corev1.ContainerStateTerminated{
					ExitCode: 1, Reason: "Error", StartedAt: now, FinishedAt: now,
				}
			}
		}
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, status)
	}
	for _, kind := range []corev1.PodConditionType{corev1.ContainersReady, corev1.PodReady} {
		c := condition(kind, corev1.ConditionTrue, "")
		if len(unready) > 0 {
			c = condition(kind, corev1.ConditionFalse, "ContainersNotReady")
			c.Message = "containers with unready status: [" + strings.Join(unready, " ") + "]"
		}
		setCondition(pod, c)
	}
	for _, gate := range pod.Spec.ReadinessGates {
		setCondition(pod, condition(gate.ConditionType, corev1.ConditionTrue, ""))
	}
}

// end ends the containers of a Job's Pod.
func (s *Server) end(pod *corev1.Pod, phase corev1.PodPhase) {
	code, reason := int32(0), "Completed"
	if phase == corev1.PodFailed {
		code, reason = 1, "Error"
	}
	pod.Status.Phase, pod.Status.ContainerStatuses = phase, nil
	now := metav1.NewTime(time.Now())
	for _, c := range pod.Spec.Containers {
		status := corev1.ContainerStatus{Name: c.Name, Image: c.Image, ImageID: "simulated://" + c.Image, Started: ptr.To(false)}
		status.State.Terminated = &corev1.ContainerStateTerminated{ExitCode: code, Reason: reason, StartedAt: now, FinishedAt: now}
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, status)
	}
	for _, kind := range []corev1.PodConditionType{corev1.ContainersReady, corev1.PodReady} {
		setCondition(pod, condition(kind, corev1.ConditionFalse, "PodCompleted"))
	}
}
