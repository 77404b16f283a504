// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// HookPhase is the state of a run.
//
// +kubebuilder:validation:Enum=Running;Succeeded;Failed
type HookPhase string

// The phases of runs.
const (
	HookRunning   HookPhase = "Running"
	HookSucceeded HookPhase = "Succeeded"
	HookHasFailed HookPhase = "Failed"
)

// HookRun is the last run of a hook.
type HookRun struct {
	// event is the moment: pre-install, post-install, pre-upgrade, post-upgrade, pre-rollback, post-rollback or test.
	Event string `json:"event"`
	// kind of the hook's object.
	Kind string `json:"kind"`
	// name of the object.
	Name string `json:"name"`
	// uid of the object. Absent until it is created.
	// +optional
	UID types.UID `json:"uid,omitempty"`
	// phase is Running, Succeeded or Failed.
	Phase HookPhase `json:"phase"`
	// message says why it failed.
	// +optional
	Message string `json:"message,omitempty"`
	// startedAt is the start of the run and of its timeout.
	StartedAt metav1.Time `json:"startedAt"`
	// attempt counts the runs, from 1.
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
