// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// RolloutStrategy is a list of steps. The last one completes the release.
// +kubebuilder:validation:XValidation:rule="!has(self.waves) || !has(self.rolling) || !has(self.rolling.maxUnavailable)",message="not with waves: maxConcurrency of each wave bounds how many of its clusters change at the same time",fieldPath=".rolling.maxUnavailable",reason=FieldValueForbidden
// +kubebuilder:validation:XValidation:rule="!has(self.advance) || has(self.waves)",message="only with waves",fieldPath=".advance",reason=FieldValueForbidden
// +kubebuilder:validation:XValidation:rule="!has(self.maxFailures) || has(self.waves)",message="only with waves",fieldPath=".maxFailures",reason=FieldValueForbidden
type RolloutStrategy struct {
	// steps in the order of the rollout; users move between them with a Release's targetStep. Required with a chart; resources have none.
	// +optional
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	// +listType=atomic
	Steps []RolloutStrategyStep `json:"steps,omitempty"`

	// previewWhenIdle says which Pods the preview Service selects while no rollout is under way. Active: those of the Release that serves.
	// None: no Pods. Absent means Active. The original had no such field.
	// +optional
	PreviewWhenIdle PreviewWhenIdle `json:"previewWhenIdle,omitempty"`

	// firstRelease says where the first Release of an Application begins. Immediate: at its last step, for there is nothing yet that it
	// could replace. Steps: at its first step, like every other. Absent means Steps. The original had no such field.
	// +optional
	FirstRelease FirstRelease `json:"firstRelease,omitempty"`

	// progressDeadline is how long a step may lack installation, capacity or traffic before the rollout has failed, at least 30s. The
	// clock stops while RolloutBlocks or spec.hold stop the rollout and while only clusters that cannot be reached are awaited; it begins
	// again when a step is requested and when more Pods are available than before. With waves it bounds each step of each wave, stops also
	// while a wave waits for clusters of waves before it, and maxFailures lets some clusters miss it. Absent means that nothing fails by
	// time. The original had no such field.
	// +optional
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('30s')",message="must be at least 30s"
	ProgressDeadline Duration `json:"progressDeadline,omitempty"`

	// onFailure says what happens when the rollout has failed. Hold: nothing, until a person acts. Retreat: targetStep becomes the last
	// step before it in which the contender has no traffic. With waves, Retreat moves the clusters of the wave alone; from a wave without
	// such a step, to the last step of the wave before. Abort: the Release is deleted, and the template becomes that of the Release before;
	// the same template is refused until it changes or is confirmed. Absent means Hold. The original had no such field.
	// +optional
	OnFailure FailurePolicy `json:"onFailure,omitempty"`

	// checks are made at every step but the last in which the contender has traffic, besides the step's own. At the last step the Release
	// that they could compare with is gone. A step where they count has a gate. Absent means none. The original had no such field.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10
	Checks []StepCheck `json:"checks,omitempty"`

	// rolling bounds how many clusters a Release with resources changes at the same time. Absent means 25% and 25%. Not with steps, and
	// maxUnavailable not with waves. The original had no such field.
	// +optional
	Rolling *RollingClusters `json:"rolling,omitempty"`

	// unavailablePeriod is how long after Shipper has written it an object counts as not ready, if nothing says how such objects are.
	// Absent means 60s. Only with resources. The original had no such field.
	// +optional
	UnavailablePeriod Duration `json:"unavailablePeriod,omitempty"`

	// waves are groups of clusters that a rollout changes one after another: each wave goes through all steps before the next begins; waves
	// of resources have no steps. Default: none, all clusters go through the steps together. The original had no such field.
	// +optional
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	// +listType=map
	// +listMapKey=name
	Waves []Wave `json:"waves,omitempty"`

	// advance says what begins the next wave once a wave is done. Automatic: Shipper does, and a step without after has after: 0s. Manual: you
	// do, by targetWave. Default: Manual, and Automatic with resources. Only with waves. The original had no such field.
	// +optional
	Advance AdvancePolicy `json:"advance,omitempty"`

	// maxFailures is how many clusters of all waves together may miss progressDeadline before the rollout has failed: a number from 0 to 100,
	// or a percentage of the Release's clusters from 0% to 100%, rounded down, at most 100 clusters. The rollout goes on without them, and
	// does not complete before they are ready. A cluster that cannot be reached does not count. Default: no bound besides those of the waves.
	// Only with waves and progressDeadline. The original had no such field.
	// +optional
	MaxFailures *intstr.IntOrString `json:"maxFailures,omitempty"`

	// from names a Strategy to take all of this from: an Application that has it has no other field beside. Shipper takes the Strategy when
	// the template is edited, or when the Application's annotation shipper.booking.com/app.strategy.refresh gets another value. A Release
	// has the fields that were taken, and from beside them. Default: none. The original had no such field.
	// +optional
	From *StrategyReference `json:"from,omitempty"`
}

// AdvancePolicy says what begins the next wave.
// +kubebuilder:validation:Enum=Manual;Automatic
type AdvancePolicy string

// The values of AdvancePolicy.
const (
	AdvanceManual    AdvancePolicy = "Manual"
	AdvanceAutomatic AdvancePolicy = "Automatic"
)

// Wave is a group of clusters.
// +kubebuilder:validation:XValidation:rule="!has(self.beforeTasks) || !has(self.beforeTasks.checks)",message="not before a wave: nothing of the Release runs in its clusters that a check could measure",fieldPath=".beforeTasks.checks",reason=FieldValueForbidden
type Wave struct {
	// name of the wave, a DNS label: canary, production.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([a-z0-9-]*[a-z0-9])?$`
	Name string `json:"name"`

	// clusterSelector selects clusters by their labels, by shipper.booking.com/cluster (the name) and by shipper.booking.com/region. A cluster
	// that several waves select is in the first of them, and stays in its wave when its labels change. At most 20 labels and expressions, with
	// 100 values each. Default: all clusters that no other wave selects; one wave of a strategy may leave it out.
	// +optional
	ClusterSelector *metav1.LabelSelector `json:"clusterSelector,omitempty"`

	// maxConcurrency is how many clusters of the wave may be changing, or not ready, at the same time: a number from 1 to 1000, or a
	// percentage of the wave from 1% to 100%, rounded up. Clusters without an earlier Release, moves back and immediate rollbacks are not
	// bounded. Default: 1.
	// +optional
	MaxConcurrency *intstr.IntOrString `json:"maxConcurrency,omitempty"`

	// afterTasks are what a wave waits for at its end, besides its clusters, before it is done and the next wave may begin. All have to
	// pass. Users with the verb skip on the Release may begin the next wave all the same. Default: none. Not on the last wave.
	// +optional
	AfterTasks *WaveTasks `json:"afterTasks,omitempty"`

	// maxFailures is how many clusters of the wave may miss progressDeadline before the rollout has failed: a number from 0 to 100, or a
	// percentage of the wave from 0% to 100%, rounded down, at most 100 clusters. The rollout goes on without them. It fails all the same
	// when every cluster of the wave has failed. Example: 10%. Default: that of the strategy; else 0. Only with progressDeadline.
	// +optional
	MaxFailures *intstr.IntOrString `json:"maxFailures,omitempty"`

	// beforeTasks are what a wave waits for at its first step, once the wave before it is done, before anything of the Release is written to
	// its clusters. All have to pass. With them the first step has a gate; users with the verb skip on the Release may pass it all the same.
	// Without checks. Moves back, immediate rollbacks and a first Release that begins at its last step do not wait. Default: none.
	// +optional
	BeforeTasks *WaveTasks `json:"beforeTasks,omitempty"`
}

// WaveTasks are what a wave waits for.
// +kubebuilder:validation:XValidation:rule="has(self.approvals) || has(self.conditions) || has(self.wait) || has(self.checks)",message="name approvals, conditions, a wait or checks: without them there is nothing to wait for"
type WaveTasks struct {
	// approvals is how many users have to approve the last step of the wave or, in beforeTasks, its beginning, by Approvals. The user who
	// asked for the Release does not count. Approvals from before the last move of the Release do not count. From 1 to 10. Default: none.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10
	Approvals int32 `json:"approvals,omitempty"`

	// allowServiceAccounts lets the wave be approved although a ServiceAccount of the Application's namespace requested the Release, and lets
	// such a ServiceAccount approve. A user with the role edit may act as it: with the verb approve, they could approve their own change.
	// Default: false.
	// +optional
	AllowServiceAccounts bool `json:"allowServiceAccounts,omitempty"`

	// conditions are types of conditions, for example example.com/Verified, that programs other than Shipper write to the Release's
	// status.conditions. All must be True, as with readinessGates of steps. At most 10. Default: none.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=10
	// +kubebuilder:validation:items:MaxLength=317
	Conditions []string `json:"conditions,omitempty"`

	// wait is how long the wave waits after its clusters have what the last step asks for or, in beforeTasks, after its turn has come, at
	// least 1s, for example 1h. The other tasks go on meanwhile. After a move back to the end of the wave nothing is waited for. Default: no
	// wait.
	// +optional
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1s')",message="must be at least 1s"
	Wait Duration `json:"wait,omitempty"`

	// checks measure how the Release does in the clusters of the wave once they have what the last step asks for, besides the checks of that
	// step. All have to pass; one that fails fails the rollout, and onFailure says what happens. The Release before has no Pods left there to
	// be compared with, if the last step leaves it none. A wave without clusters is not checked. At most 10. Not in beforeTasks. Default:
	// none.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10
	Checks []StepCheck `json:"checks,omitempty"`
}

// Duration is a time in hours, minutes and seconds, such as 10m or 1h30m, at most 720h. It is a text because a template keeps the form
// in which it was written. The format is that of the Gateway API (GEP-2257).
// +kubebuilder:validation:Pattern=`^([0-9]{1,5}(h|m|s)){1,4}$`
// +kubebuilder:validation:XValidation:rule="duration(self) <= duration('720h')",message="must be at most 720h"
// +kubebuilder:validation:MaxLength=24
type Duration string

// Value is the time that d means; 0 when it is absent or not one.
func (d Duration) Value() time.Duration {
	value, err := time.ParseDuration(string(d))
	if err != nil {
		return 0
	}
	return value
}

// PreviewWhenIdle says which Pods the preview Service selects while no rollout is under way.
// +kubebuilder:validation:Enum=Active;None
type PreviewWhenIdle string

// The values of PreviewWhenIdle.
const (
	PreviewWhenIdleActive PreviewWhenIdle = "Active"
	PreviewWhenIdleNone   PreviewWhenIdle = "None"
)

// FirstRelease says where the first Release of an Application begins.
// +kubebuilder:validation:Enum=Steps;Immediate
type FirstRelease string

// The values of FirstRelease.
const (
	FirstReleaseSteps     FirstRelease = "Steps"
	FirstReleaseImmediate FirstRelease = "Immediate"
)

// FailurePolicy says what happens when a rollout has failed.
// +kubebuilder:validation:Enum=Hold;Retreat;Abort
type FailurePolicy string

// The values of FailurePolicy.
const (
	OnFailureHold    FailurePolicy = "Hold"
	OnFailureRetreat FailurePolicy = "Retreat"
	OnFailureAbort   FailurePolicy = "Abort"
)

// RolloutStrategyStep is one stage of a rollout.
type RolloutStrategyStep struct {
	// name of the step, to be read by people: staging, canary, full on.
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// capacity is the percentage of the chart's replicas that contender and incumbent have at this step.
	// +kubebuilder:validation:XValidation:rule="self.incumbent <= 100 && self.contender <= 100",message="capacity is a percentage: use a number from 0 to 100"
	Capacity RolloutStrategyStepValue `json:"capacity"`

	// traffic is the weights of contender and incumbent at this step, relative to each other; they need not sum to 100.
	Traffic RolloutStrategyStepValue `json:"traffic"`

	// readinessGates are types of conditions, for example example.com/Verified, that programs other than Shipper write to the
	// Release's status.conditions. All must be True before this step counts as achieved. Once the step is achieved they no longer
	// matter, and no retreat, abort or rollback waits for them. Absent means none. The original had no such field.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=10
	// +kubebuilder:validation:items:MaxLength=317
	ReadinessGates []string `json:"readinessGates,omitempty"`

	// after makes the rollout go on by itself: targetStep is raised this long after contender and incumbent have what the step wants and
	// as soon as the step is achieved. 0s means at once. Absent means that the rollout waits until targetStep is raised. Not on the last
	// step. The original had no such field.
	// +optional
	After Duration `json:"after,omitempty"`

	// gate keeps targetStep from passing this step before it is achieved, and may ask for approvals; users with the verb skip on the Release may pass it all the
	// same. Absent means that steps may be skipped. Not on the last step. The original had no such field.
	// +optional
	Gate *StepGate `json:"gate,omitempty"`

	// checks measure how the Release does at this step, once it has what the step wants. All have to pass before the step counts as achieved;
	// one that fails fails the rollout. A step with checks that count has a gate. Absent means none. The original had no such field.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10
	Checks []StepCheck `json:"checks,omitempty"`
}

// StepCheck is a Check that a step or a strategy uses.
type StepCheck struct {
	// check is the name of a Check of this namespace, or shipper-checks/NAME of one that all namespaces share.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	Check string `json:"check"`

	// name of this use in statuses. No two checks of a step, with those of the strategy, have the same. Absent means the name of the Check.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$`
	Name string `json:"name,omitempty"`

	// args are values for the arguments that the Check declares. Absent means their defaults.
	// +optional
	// +kubebuilder:validation:MaxProperties=20
	Args map[string]string `json:"args,omitempty"`

	// dryRun is true for a check that is made and reported, and does not count. Absent means false.
	// +optional
	DryRun bool `json:"dryRun,omitempty"`
}

// StepGate is what passing a step takes.
type StepGate struct {
	// approvals is how many users have to approve the step, by Approvals, before it counts as achieved. The user who asked for the Release
	// does not count. Absent means none.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10
	Approvals int32 `json:"approvals,omitempty"`

	// allowServiceAccounts lets a step be approved although a ServiceAccount of the Application's namespace requested the Release, and lets
	// such a ServiceAccount approve. A user with the role edit may act as it: with the verb approve, they could approve their own change.
	// Default: false.
	// +optional
	AllowServiceAccounts bool `json:"allowServiceAccounts,omitempty"`
}

// GateAllowServiceAccounts is the field of a step by which messages name StepGate.AllowServiceAccounts.
const GateAllowServiceAccounts = "gate.allowServiceAccounts"

// AllowsServiceAccounts reports whether ServiceAccounts of the Application's namespace may ask for what they or others approve.
func (s RolloutStrategyStep) AllowsServiceAccounts() bool {
	return s.Gate != nil && s.Gate.AllowServiceAccounts
}

// RequiredApprovals is how many users have to approve the step before it counts as achieved.
func (s RolloutStrategyStep) RequiredApprovals() int32 {
	if s.Gate == nil {
		return 0
	}
	return s.Gate.Approvals
}

// LastStep is the index of the last step; 0 when there are none.
func (s *RolloutStrategy) LastStep() int32 {
	if s == nil {
		return 0
	}
	return max(int32(len(s.Steps))-1, 0)
}

// RolloutStrategyStepValue is a number for the incumbent and one for the contender.
type RolloutStrategyStepValue struct {
	// incumbent is the value for the Release that is being replaced.
	// +kubebuilder:validation:Minimum=0
	Incumbent int32 `json:"incumbent"`

	// contender is the value for the Release that is being rolled out.
	// +kubebuilder:validation:Minimum=0
	Contender int32 `json:"contender"`
}
