// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// runJob makes a step of a Job: one Pod at a time, as many as it has to complete. A Pod whose image has the tag "broken" or "crash"
// fails, and the Job fails after its back-off limit.
func (s *Server) runJob(namespace, name string) {
	t := s.tables[jobs]
	o := t.get(namespace, name)
	if o == nil || deletionOf(o.live) != nil {
		return
	}
	job := o.live.DeepCopyObject().(*batchv1.Job)
	if ended(job) || job.Spec.Suspend != nil && *job.Spec.Suspend {
		return
	}
	now := metav1.NewTime(time.Now())
	if job.Status.StartTime == nil {
		job.Status.StartTime = &now
	}
	var active, succeeded, failed int32
	all := s.owned(o.uid, pods)
	for _, p := range all {
		switch p.live.(*corev1.Pod).Status.Phase {
		case corev1.PodSucceeded:
			succeeded++
		case corev1.PodFailed:
			failed++
		default:
			active++
		}
	}
	wanted := int32(1)
	if job.Spec.Completions != nil {
		wanted = *job.Spec.Completions
	}
	switch {
	case succeeded >= wanted:
		finishJob(job, batchv1.JobComplete, "CompletionsReached", "Reached expected number of succeeded pods")
		job.Status.CompletionTime = &now
	case failed > *job.Spec.BackoffLimit:
		finishJob(job, batchv1.JobFailed, "BackoffLimitExceeded", "Job has reached the specified backoff limit")
	case s.late(job):
		for _, p := range all {
			s.erase(s.tables[pods], p)
		}
		active = 0
		finishJob(job, batchv1.JobFailed, "DeadlineExceeded", "Job was active longer than specified deadline")
	case active == 0:
		owner := *metav1.NewControllerRef(job, batchv1.SchemeGroupVersion.WithKind("Job"))
		s.add(s.tables[pods], s.newPod(job.Spec.Template, namespace, name, owner))
		active = 1
	}
	ready := int32(0)
	job.Status.Active, job.Status.Succeeded, job.Status.Failed, job.Status.Ready = active, succeeded, failed, &ready
	job.Status.UncountedTerminatedPods, job.Status.Terminating = &batchv1.UncountedTerminatedPods{}, &ready
	if string(t.kind.encode(job)) != string(o.raw) {
		s.put(t, job)
	}
}

func ended(job *batchv1.Job) bool {
	for _, c := range job.Status.Conditions {
		if (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) && c.Status == corev1.ConditionTrue {
			return true
		}
	}
	return false
}

func finishJob(job *batchv1.Job, kind batchv1.JobConditionType, reason, message string) {
	now := metav1.NewTime(time.Now())
	before := batchv1.JobSuccessCriteriaMet
	if kind == batchv1.JobFailed {
		before = batchv1.JobFailureTarget
	}
	for _, kind := range []batchv1.JobConditionType{before, kind} {
		job.Status.Conditions = append(job.Status.Conditions, batchv1.JobCondition{
			Type: kind, Status: corev1.ConditionTrue, Reason: reason, Message: message, LastProbeTime: now, LastTransitionTime: now,
		})
	}
}

// late says whether a Job has run longer than it may, and has it looked at when it will have.
func (s *Server) late(job *batchv1.Job) bool {
	if job.Spec.ActiveDeadlineSeconds == nil {
		return false
	}
	left := time.Until(job.Status.StartTime.Add(time.Duration(*job.Spec.ActiveDeadlineSeconds) * time.Second))
	if left <= 0 {
		return true
	}
	namespace, name := job.Namespace, job.Name
	s.later(fmt.Sprintf("late %s", job.UID), left+time.Second, func() { s.runJob(namespace, name) })
	return false
}
