// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ReleaseProgress are the figures and times of a step that Shipper may end by itself. Times are whole seconds, rounded up.
type ReleaseProgress struct {
	// step is the targetStep that the figures are about.
	Step int32 `json:"step"`

	// move is the number of times that targetStep had been changed when the step was requested.
	// +optional
	Move int64 `json:"move,omitempty"`

	// movedBack is true when targetStep was lowered last. Nothing goes up by itself until a user raises it.
	// +optional
	MovedBack bool `json:"movedBack,omitempty"`

	// requestedTime is when the step was requested, as far as the reconciler knows.
	RequestedTime metav1.Time `json:"requestedTime"`

	// convergedTime is when contender and incumbent first had what the step wants. Absent until then.
	// +optional
	ConvergedTime *metav1.Time `json:"convergedTime,omitempty"`

	// next is the move that Shipper will make by itself. Absent when it will make none.
	// +optional
	Next *ReleaseNextStep `json:"next,omitempty"`

	// deadlineTime is when the rollout fails, unless the step has what it wants, or more Pods are available than before. Absent while the
	// clock of progressDeadline stands.
	// +optional
	DeadlineTime *metav1.Time `json:"deadlineTime,omitempty"`

	// deadlineRemaining is what is left of progressDeadline while its clock stands.
	// +optional
	DeadlineRemaining string `json:"deadlineRemaining,omitempty"`

	// availablePods is the largest number of the contender's Pods that were available since the step was requested.
	// +optional
	AvailablePods int32 `json:"availablePods,omitempty"`

	// approvals are those that the step's gate asks for. Absent where it asks for none.
	// +optional
	Approvals *ReleaseApprovals `json:"approvals,omitempty"`

	// checks of the step, in the order of the strategy. Absent where there are none, or none was made yet.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=20
	Checks []ReleaseCheck `json:"checks,omitempty"`

	// failure is why the rollout has failed. Absent when it has not, and again when a user raises targetStep or, where nothing was done
	// about it, when the step has what it wants.
	// +optional
	Failure *ReleaseFailure `json:"failure,omitempty"`

	// wave is the targetWave that the figures are about.
	// +optional
	Wave int32 `json:"wave,omitempty"`

	// waitEndTime is when the wait of the wave's beforeTasks is over or, once its clusters are done, that of its afterTasks. Absent where
	// there is none, and between the two.
	// +optional
	WaitEndTime *metav1.Time `json:"waitEndTime,omitempty"`

	// beforeApprovals are those that the wave's beforeTasks ask for. Absent where they ask for none.
	// +optional
	BeforeApprovals *ReleaseApprovals `json:"beforeApprovals,omitempty"`

	// enteredTime is when the wave's beforeTasks had passed: its clusters change from then on. Absent until then, and where there are none.
	// +optional
	EnteredTime *metav1.Time `json:"enteredTime,omitempty"`
}

// ReleaseNextStep is a step that Shipper will move a Release to.
type ReleaseNextStep struct {
	// step is its index, from 0.
	Step int32 `json:"step"`
	// time is when the step is due. It is requested then if no RolloutBlock and no hold stop it.
	Time metav1.Time `json:"time"`
	// wave is the index, from 0, of the wave whose step it is.
	// +optional
	Wave int32 `json:"wave,omitempty"`
}

// ReleaseCheck is how far a check is over all clusters.
type ReleaseCheck struct {
	// name in the step.
	Name string `json:"name"`
	// phase is that of the cluster in which it is worst: Failed, Undecided, Pending, Running or Passed.
	Phase CheckPhase `json:"phase"`
	// cluster is that cluster. Absent for a check over the fleet.
	// +optional
	Cluster string `json:"cluster,omitempty"`
	// measured is the number of measurements there that gave a result, and count how many are needed.
	// +optional
	Measured int32 `json:"measured,omitempty"`
	// +optional
	Count int32 `json:"count,omitempty"`
	// value is the last one measured there, at most 64 characters.
	// +optional
	Value string `json:"value,omitempty"`
	// dryRun is true for a check that does not count.
	// +optional
	DryRun bool `json:"dryRun,omitempty"`
}

// ReleaseApprovals are the approvals of a step.
type ReleaseApprovals struct {
	// required is how many are needed.
	Required int32 `json:"required"`
	// users have approved the step, sorted.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10
	Users []string `json:"users,omitempty"`
	// rejectedBy is a user who has rejected the step or the wave. Default: absent, none has.
	// +optional
	RejectedBy string `json:"rejectedBy,omitempty"`
}

// Enough reports whether so many users have approved the step and none has rejected it; a may be nil.
func (a *ReleaseApprovals) Enough(required int32) bool {
	return required == 0 || a != nil && a.RejectedBy == "" && len(a.Users) >= int(required)
}

// ReleaseFailure is why a rollout has failed, and what is done about it.
type ReleaseFailure struct {
	// step is the index, from 0, of the step that failed.
	Step int32 `json:"step"`
	// cluster is one in which it failed. Absent when it is not known in which.
	// +optional
	Cluster string `json:"cluster,omitempty"`
	// reason is ProgressDeadlineExceeded or CheckFailed. There may be others in future.
	Reason string `json:"reason"`
	// check is the name of the check that failed. Absent for other reasons.
	// +optional
	Check string `json:"check,omitempty"`
	// run is the run of the checks that failed. Absent for other reasons.
	// +optional
	Run int64 `json:"run,omitempty"`
	// message says what was awaited, at most 1024 characters.
	// +optional
	Message string `json:"message,omitempty"`
	// action is what is done about it, by the strategy's onFailure. Hold also when there is nothing to go back to.
	Action FailurePolicy `json:"action"`
	// time of the failure.
	Time metav1.Time `json:"time"`
	// wave is the index, from 0, of the wave that failed.
	// +optional
	Wave int32 `json:"wave,omitempty"`
}

// ReleaseMove is the last change of a Release's targetStep or targetWave, in the annotation shipper.booking.com/release.moved as JSON.
// +kubebuilder:object:generate=false
type ReleaseMove struct {
	// By is the user.
	By string `json:"by"`
	// Time of the request.
	Time metav1.Time `json:"time"`
	// From and To are targetStep before and after.
	From int32 `json:"from"`
	To   int32 `json:"to"`
	// FromWave and ToWave are targetWave before and after; absent when it is 0.
	FromWave int32 `json:"fromWave,omitempty"`
	ToWave   int32 `json:"toWave,omitempty"`
	// Count of the changes of targetStep or targetWave, this one included.
	Count int64 `json:"count"`
	// Why the reconciler moved it; absent when a user did.
	Why string `json:"why,omitempty"`
}

// FailedEnvironment is an environment that failed and was aborted, in the annotation shipper.booking.com/app.failed as JSON.
// +kubebuilder:object:generate=false
type FailedEnvironment struct {
	// Digest is the SHA-256 (hexadecimal) of the environment.
	Digest string `json:"digest"`
	// Release is the name of the Release that failed.
	Release string `json:"release"`
	// Step, Cluster, Reason and Time are those of its failure.
	Step    int32       `json:"step"`
	Cluster string      `json:"cluster,omitempty"`
	Reason  string      `json:"reason"`
	Check   string      `json:"check,omitempty"`
	Time    metav1.Time `json:"time"`
}
