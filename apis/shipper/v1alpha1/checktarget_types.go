// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// CheckTarget has the checks of a Release's step, and what came of them in each cluster. It has its Release's name. Only the reconciler
// writes it. There is none where no step has checks.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=checktargets,shortName=ckt,categories={shipper}
// +kubebuilder:printcolumn:name="Step",type=integer,JSONPath=`.spec.step`
// +kubebuilder:printcolumn:name="Run",type=integer,JSONPath=`.spec.run`
// +kubebuilder:printcolumn:name="Operational",type=string,JSONPath=`.status.conditions[?(@.type=="Operational")].status`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.status=="False")].message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type CheckTarget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is one run of the checks of a step.
	Spec CheckTargetSpec `json:"spec"`

	// status is what came of that run.
	// +optional
	Status CheckTargetStatus `json:"status,omitempty"`
}

// CheckTargetSpec is one run of the checks of a step. A run begins when the step has what it wants.
type CheckTargetSpec struct {
	// run counts the runs of the Release, from 1.
	Run int64 `json:"run"`
	// step is the index, from 0, of the step.
	Step int32 `json:"step"`
	// move is the number of times that targetStep had been changed when the step was requested.
	// +optional
	Move int64 `json:"move,omitempty"`
	// retry is the value of the Release's annotation shipper.booking.com/release.checks.retry when the run began.
	// +optional
	Retry string `json:"retry,omitempty"`
	// startTime is when the run began.
	StartTime metav1.Time `json:"startTime"`
	// incumbent is the Release that the contender is compared with. Absent when there is none.
	// +optional
	Incumbent string `json:"incumbent,omitempty"`
	// clusters in which the checks are made.
	// +listType=set
	// +kubebuilder:validation:MaxItems=10000
	Clusters []string `json:"clusters"`
	// checks are copies: a change of a Check bears on the next run.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=20
	Checks []CheckRun `json:"checks"`
}

// CheckRun is a Check as one run makes it.
type CheckRun struct {
	// name in the step.
	Name string `json:"name"`
	// from is the namespace and the name of the Check that was copied.
	From string `json:"from"`
	// args are the values of all declared arguments.
	// +optional
	Args map[string]string `json:"args,omitempty"`
	// count is the number of measurements that give a result.
	Count int32 `json:"count"`
	// dryRun is true for a check that is reported and does not count.
	// +optional
	DryRun bool `json:"dryRun,omitempty"`
	// check is the copy of the Check's spec.
	Check CheckSpec `json:"check"`
}

// CheckTargetStatus is what came of a run.
type CheckTargetStatus struct {
	// observedGeneration is the metadata.generation that this status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// run is the run that results are of.
	// +optional
	Run int64 `json:"run,omitempty"`

	// results have one entry for each check and cluster, sorted by both; of a check over the fleet there is one, with an empty cluster.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=2000
	Results []CheckResult `json:"results,omitempty"`

	// conditions, sorted by type: Operational, Ready.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []Condition `json:"conditions,omitempty"`
}

// CheckResult is what came of a check in a cluster, or over the fleet.
type CheckResult struct {
	// name of the check in the step.
	Name string `json:"name"`
	// cluster is absent for a check over the fleet.
	// +optional
	Cluster string `json:"cluster,omitempty"`
	// phase is Pending until the first measurement, Running until the check is decided, and then Passed, Failed or Undecided.
	Phase CheckPhase `json:"phase"`
	// passed, failed, inconclusive and errors are the numbers of measurements by their result.
	// +optional
	Passed int32 `json:"passed,omitempty"`
	// +optional
	Failed int32 `json:"failed,omitempty"`
	// +optional
	Inconclusive int32 `json:"inconclusive,omitempty"`
	// +optional
	Errors int32 `json:"errors,omitempty"`
	// consecutiveErrors is the number of errors since the last measurement that was none.
	// +optional
	ConsecutiveErrors int32 `json:"consecutiveErrors,omitempty"`
	// lastTime is when it was last measured. Absent until then.
	// +optional
	LastTime *metav1.Time `json:"lastTime,omitempty"`
	// measurements are the last three, the newest last. With more than 200 results there are none.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=3
	Measurements []CheckMeasurement `json:"measurements,omitempty"`
	// message says why the check has failed or is undecided, or why a measurement gave no value; at most 256 bytes. With more than 200
	// results, the first 20 that have failed or are undecided have one.
	// +optional
	Message string `json:"message,omitempty"`
}

// CheckPhase is how far a check is.
// +kubebuilder:validation:Enum=Pending;Running;Passed;Failed;Undecided
type CheckPhase string

// The values of CheckPhase.
const (
	CheckPending   CheckPhase = "Pending"
	CheckRunning   CheckPhase = "Running"
	CheckPassed    CheckPhase = "Passed"
	CheckHasFailed CheckPhase = "Failed"
	CheckUndecided CheckPhase = "Undecided"
)

// Decided reports whether no more measurements are made.
func (p CheckPhase) Decided() bool {
	return p == CheckPassed || p == CheckHasFailed || p == CheckUndecided
}

// CheckMeasurement is one measurement.
type CheckMeasurement struct {
	// time of the measurement.
	Time metav1.Time `json:"time"`
	// result is Passed, Failed, Inconclusive or Error.
	Result CheckVerdict `json:"result"`
	// value that was measured, for people: new = 0.041, old = 0.003. At most 256 characters.
	// +optional
	Value string `json:"value,omitempty"`
}

// CheckVerdict is the result of one measurement.
// +kubebuilder:validation:Enum=Passed;Failed;Inconclusive;Error
type CheckVerdict string

// The values of CheckVerdict.
const (
	VerdictPassed       CheckVerdict = "Passed"
	VerdictFailed       CheckVerdict = "Failed"
	VerdictInconclusive CheckVerdict = "Inconclusive"
	VerdictError        CheckVerdict = "Error"
)

// CheckTargetList is a list of CheckTargets.
//
// +kubebuilder:object:root=true
type CheckTargetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []CheckTarget `json:"items"`
}
