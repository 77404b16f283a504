// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// HookPhase is the state of a run.
//
// +kubebuilder:validation:Enum=Pending;Running;Succeeded;Failed
type HookPhase string

// The phases of runs.
const (
	// HookPending is a hook that runs when the Application is deleted.
	HookPending   HookPhase = "Pending"
	HookRunning   HookPhase = "Running"
	HookSucceeded HookPhase = "Succeeded"
	HookHasFailed HookPhase = "Failed"
)

// The moments of hooks that run when the Application is deleted.
const (
	HookEventPreDelete  = "pre-delete"
	HookEventPostDelete = "post-delete"
)

// HookRun is the last run of a hook.
type HookRun struct {
	// event is the moment: pre-install, post-install, pre-upgrade, post-upgrade, pre-rollback, post-rollback, pre-delete, post-delete or
	// test.
	Event string `json:"event"`
	// kind of the hook's object.
	Kind string `json:"kind"`
	// name of the object.
	Name string `json:"name"`
	// uid of the object. Absent until it is created.
	// +optional
	UID types.UID `json:"uid,omitempty"`
	// phase is Running, Succeeded or Failed; Pending of hooks that run when the Application is deleted.
	Phase HookPhase `json:"phase"`
	// message says why it failed.
	// +optional
	Message string `json:"message,omitempty"`
	// startedAt is the start of the run and of its timeout; the time of the installation while phase is Pending.
	StartedAt metav1.Time `json:"startedAt"`
	// attempt counts the runs, from 1; 0 while phase is Pending.
	Attempt int32 `json:"attempt"`
	// request is the value of the annotation that requested the run: shipper.booking.com/release.hooks.retry or
	// shipper.booking.com/release.test. Absent when there was none.
	// +optional
	Request string `json:"request,omitempty"`
}

// TestRun is a run of a chart's tests in a cluster.
type TestRun struct {
	// request is the value of the annotation shipper.booking.com/release.test that requested the run or, for the run of a Check,
	// check/UID/RUN/NAME, with the UID of the CheckTarget.
	Request string `json:"request"`
	// phase is Running, Succeeded or Failed.
	Phase HookPhase `json:"phase"`
	// message says what failed, or what the run waits for.
	// +optional
	Message string `json:"message,omitempty"`
}
