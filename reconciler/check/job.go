// SPDX-License-Identifier: Apache-2.0

package check

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"shipper.dev/shipper/apis/rules/check"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/fleet"
)

const (
	// jobAnnotation on a Job in an application cluster is Release/check: the check that it is of.
	jobAnnotation = shipper.GroupName + "/check"
	// runAnnotation is the CheckTarget's UID and the run, so that no Job counts for another run.
	runAnnotation = shipper.GroupName + "/check-run"
	// maxJobName leaves room for what Kubernetes adds to the names of its Pods.
	maxJobName = 57
)

// job begins the Job of a check, or looks how far it is. Events of the Job bring the next pass.
func (r *Reconciler) job(ctx context.Context, c *one, member *fleet.Member) (outcome, error) {
	name := jobName(c)
	live, err := liveJob(ctx, member, client.ObjectKey{Namespace: c.key.Namespace, Name: name})
	switch {
	case err != nil:
		return outcome{message: err.Error(), again: retryLost}, nil
	case live == nil && c.state.jobSeen(c.key) == name:
		return outcome{verdict: shipper.VerdictError, message: "the Job was removed before its end was seen"}, nil
	case live == nil:
		return r.createJob(ctx, c, member)
	}
	switch ended, failed, message := endOf(live); {
	case live.Annotations[runAnnotation] != runOf(c):
		return outcome{verdict: shipper.VerdictError, message: fmt.Sprintf("there is another Job %s", name)}, nil
	case ended && failed:
		return outcome{verdict: shipper.VerdictFailed, message: message}, nil
	case ended:
		return outcome{verdict: shipper.VerdictPassed}, nil
	}
	c.state.noteJob(c.key, name)
	return outcome{message: "the Job runs"}, nil
}

// createJob makes a Job. What the cluster refuses is no verdict about the Release.
func (r *Reconciler) createJob(ctx context.Context, c *one, member *fleet.Member) (outcome, error) {
	job, err := r.jobOf(ctx, c, member)
	if err != nil {
		return outcome{message: err.Error(), again: retryLost}, nil
	}
	err = member.Client().Create(ctx, job, client.FieldOwner(shipper.FieldOwner))
	switch {
	case err == nil:
		c.state.noteJob(c.key, job.Name)
		return outcome{message: "the Job runs"}, nil
	case apierrors.IsAlreadyExists(err):
		return outcome{message: "the Job runs", again: time.Second}, nil
	case apierrors.IsInvalid(err), apierrors.IsForbidden(err), apierrors.IsBadRequest(err), apierrors.IsRequestEntityTooLargeError(err):
		return outcome{verdict: shipper.VerdictInconclusive, message: "the cluster refuses the Job: " + err.Error()}, nil
	}
	return outcome{message: "creating the Job: " + err.Error(), again: retryLost}, nil
}

// liveJob reads a Job; nil when there is none. It starts the watch of Jobs first, so that no event is missed.
func liveJob(ctx context.Context, member *fleet.Member, key client.ObjectKey) (*batchv1.Job, error) {
	if _, err := member.Metadata(ctx, batchv1.SchemeGroupVersion.WithKind("Job"), key); client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("watching Jobs: %w", err)
	}
	job := &batchv1.Job{}
	err := member.Live().Get(ctx, key, job)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading Job %s: %w", key, err)
	}
	return job, nil
}

// endOf reports whether a Job has ended, and why it failed.
func endOf(job *batchv1.Job) (ended, failed bool, message string) {
	for _, c := range job.Status.Conditions {
		switch {
		case c.Status != corev1.ConditionTrue:
		case c.Type == batchv1.JobComplete:
			return true, false, ""
		case c.Type == batchv1.JobFailed:
			return true, true, fmt.Sprintf("Job %s failed: %s: %s", job.Name, c.Reason, c.Message)
		}
	}
	return false, false, ""
}

// jobOf is the Job of a check in a cluster. Its Pods carry none of Shipper's labels, so that no Service selects them.
func (r *Reconciler) jobOf(ctx context.Context, c *one, member *fleet.Member) (*batchv1.Job, error) {
	var cluster shipper.Cluster
	if err := r.client.Get(ctx, client.ObjectKey{Name: c.key.Cluster}, &cluster); err != nil {
		return nil, fmt.Errorf("reading Cluster %q: %w", c.key.Cluster, err)
	}
	raw, err := check.SubstituteJSON(c.run.Check.Job.Raw, check.Arguments(c.target, c.run, &cluster, r.Clock.Now()))
	if err != nil {
		return nil, fmt.Errorf("job %w", err)
	}
	job := &batchv1.Job{}
	if err := json.Unmarshal(raw, &job.Spec); err != nil {
		return nil, fmt.Errorf("job is no JobSpec: %w", err)
	}
	if job.Spec.BackoffLimit == nil {
		job.Spec.BackoffLimit = ptr.To(int32(0))
	}
	if job.Spec.ActiveDeadlineSeconds == nil {
		job.Spec.ActiveDeadlineSeconds = ptr.To(int64(check.Timeout(&c.run.Check).Seconds()))
	}
	if job.Spec.Template.Spec.RestartPolicy == "" {
		job.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyNever
	}
	maps.DeleteFunc(job.Spec.Template.Labels, func(key, _ string) bool { return shipper.ReservedLabel(key) })
	maps.DeleteFunc(job.Spec.Template.Annotations, func(key, _ string) bool { return shipper.ReservedAnnotation(key) })
	anchor := &corev1.ConfigMap{}
	key := client.ObjectKey{Namespace: c.key.Namespace, Name: shipper.AnchorName(check.ReleaseOf(c.target))}
	if err := member.Client().Get(ctx, key, anchor); err != nil {
		return nil, fmt.Errorf("reading the anchor of the Release: %w", err)
	}
	job.ObjectMeta = metav1.ObjectMeta{
		Namespace: c.key.Namespace, Name: jobName(c), Labels: map[string]string{shipper.AppLabel: c.target.Labels[shipper.AppLabel]},
		Annotations:     map[string]string{jobAnnotation: c.key.Name + "/" + c.key.Check, runAnnotation: runOf(c)},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: anchor.Name, UID: anchor.UID}},
	}
	return job, nil
}

// runOf identifies the run that a Job is of.
func runOf(c *one) string { return fmt.Sprintf("%s/%d", c.target.UID, c.target.Spec.Run) }

// jobName is the name of the Job of a run. The errors are Jobs that were removed before their end was seen.
func jobName(c *one) string {
	number := strconv.FormatInt(c.target.Spec.Run, 10) + "-" + strconv.Itoa(int(c.state.get(c.key).Errors))
	name := c.key.Name + "-" + c.key.Check + "-" + number
	if len(name) <= maxJobName {
		return name
	}
	digest := fmt.Sprintf("-%x", sha256.Sum256([]byte(name)))[:9]
	return strings.TrimRight(name[:maxJobName-len(digest)], ".-") + digest
}
