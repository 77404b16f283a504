// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Shipyard describes how versions of services go through stages: which sequences of tasks each stage has, and what triggers them. Its spec
// is that of Keptn's shipyard 0.2, with fields that Keptn lacks; a file of Keptn can be pasted.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=shipyards,shortName=sy,categories={shipper}
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Shipyard struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what runs do. A change bears on later runs only: each run has its own copy.
	Spec ShipyardSpec `json:"spec"`
}

// ShipyardSpec is the spec of a shipyard.
type ShipyardSpec struct {
	// stages in the order in which they are shown. The order triggers nothing. At least 1, at most 30, 64 KiB together.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=30
	Stages []Stage `json:"stages"`

	// services that may be delivered. Absent: any. Required with one service only if runs are to leave it out.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=200
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:items:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Services []string `json:"services,omitempty"`

	// serviceAccountName is the ServiceAccount of this namespace with whose rights runs write. Absent means shipper-runner. Its owner binds
	// it to Shipper by a RoleBinding of Shipper's account to shipper-runner-impersonator.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*)?$`
	ServiceAccountName string `json:"serviceAccountName,omitempty"`

	// history says which finished runs are kept.
	// +optional
	History RunHistory `json:"history,omitzero"`
}

// RunHistory bounds the finished runs that are kept. The newest run that passed is kept in any case.
type RunHistory struct {
	// limit is the number of runs for each stage and service. Absent means 20.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=200
	Limit *int32 `json:"limit,omitempty"`

	// maxAge of a run since it finished, 24h to 8784h. Absent means 720h.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('24h') && duration(self) <= duration('8784h')",message="must be from 24h to 8784h"
	MaxAge *metav1.Duration `json:"maxAge,omitempty"`
}

// Stage is a part of the environment through which versions go.
type Stage struct {
	// name is unique in the Shipyard. The right to start runs in the stage is the verb promote on the subresource of this name.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +kubebuilder:validation:XValidation:rule="!(self in ['status', 'scale', 'finalizers'])",message="is the name of a subresource of Kubernetes"
	Name string `json:"name"`

	// namespace of the Applications of this stage. Absent: that of the Shipyard.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?)?$`
	Namespace string `json:"namespace,omitempty"`

	// application is the name of the Application, in which {service}, {stage} and {shipyard} are replaced. Absent: {service} with a
	// namespace, else {service}-{stage}.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[-.a-z0-9{}]*$`
	Application string `json:"application,omitempty"`

	// sequences that runs of this stage may be of. Every stage has evaluation, a sequence of that one task, beside them.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=20
	Sequences []Sequence `json:"sequences,omitempty"`

	// requires are what a version must have passed before a run may deploy it here. Absent: nothing.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10
	Requires []StageRequirement `json:"requires,omitempty"`

	// maxConcurrency is the number of runs of this stage that are under way at the same time, over all services. Absent: no bound.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	MaxConcurrency *int32 `json:"maxConcurrency,omitempty"`
}

// StageRequirement is what a version must have passed.
type StageRequirement struct {
	// stage in which a run has to have passed.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Stage string `json:"stage"`

	// sequence of that run. Absent: any that deploys.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Sequence string `json:"sequence,omitempty"`

	// soak is how long ago it must have passed. Absent means 0s.
	// +optional
	Soak Duration `json:"soak,omitempty"`
}

// Sequence is a list of tasks that a run does in order.
type Sequence struct {
	// name is unique in the stage.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9]([-_A-Za-z0-9]*[A-Za-z0-9])?$`
	Name string `json:"name"`

	// triggeredOn are the events that start a run. Absent: users start it.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=20
	TriggeredOn []Trigger `json:"triggeredOn,omitempty"`

	// tasks in the order in which they are done. Names may repeat.
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=50
	Tasks []Task `json:"tasks"`

	// whenBusy says what a new run does while another of the same stage and service is under way. Absent means Queue.
	// +optional
	WhenBusy WhenBusy `json:"whenBusy,omitempty"`

	// timeout of a run, 1m to 720h. It does not count while the run is held, blocked or waits for an approval. Absent means 24h.
	// +optional
	Timeout Duration `json:"timeout,omitempty"`
}

// WhenBusy says what a new run does while another one of its stage and service is under way.
// +kubebuilder:validation:Enum=Queue;Supersede;Preempt
type WhenBusy string

// The values of WhenBusy.
const (
	// WhenBusyQueue waits for the runs before it.
	WhenBusyQueue WhenBusy = "Queue"
	// WhenBusySupersede ends the queued runs of the same sequence, and waits for the one under way.
	WhenBusySupersede WhenBusy = "Supersede"
	// WhenBusyPreempt aborts the run under way, and begins.
	WhenBusyPreempt WhenBusy = "Preempt"
)

// Trigger is an event that starts a run.
type Trigger struct {
	// event is STAGE.SEQUENCE.finished, STAGE.TASK.finished for the last task of that name, or an event of the users' own domain.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=200
	Event string `json:"event"`

	// selector narrows the event. Absent: result pass.
	// +optional
	Selector *TriggerSelector `json:"selector,omitempty"`
}

// TriggerSelector narrows an event to runs with these values.
type TriggerSelector struct {
	// match has values that all must be equal: result, status, service, TASK.result and TASK.status.
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=10
	Match map[string]string `json:"match"`
}

// Task is the smallest part of a sequence.
type Task struct {
	// name says what is done. approval, deployment, evaluation (also evaluate), release, rollback and test are done by Shipper.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9]([-_A-Za-z0-9]*[A-Za-z0-9])?$`
	Name string `json:"name"`

	// properties of the task, at most 16 KiB. They begin the space of the task in the data of a run.
	// +optional
	// +mapType=atomic
	Properties FreeForm `json:"properties,omitempty"`

	// triggeredAfter is how long the task waits after the one before it, at most 168h. Absent means 0s.
	// +optional
	TriggeredAfter Duration `json:"triggeredAfter,omitempty"`

	// when says which results of all tasks before it in the sequence it is for. Absent means Passed.
	// +optional
	When TaskCondition `json:"when,omitempty"`

	// timeout of the task, 1s to 168h. It does not count while the run is held, blocked or waits for an approval. Absent means 1h.
	// +optional
	Timeout Duration `json:"timeout,omitempty"`
}

// TaskCondition says which results of the tasks before it a task is for.
// +kubebuilder:validation:Enum=Passed;Always;Failed
type TaskCondition string

// The values of TaskCondition.
const (
	TaskWhenPassed TaskCondition = "Passed"
	TaskAlways     TaskCondition = "Always"
	TaskWhenFailed TaskCondition = "Failed"
)

// FreeForm is a JSON object of any form.
// +kubebuilder:validation:Type=object
// +kubebuilder:pruning:PreserveUnknownFields
// +kubebuilder:object:generate=false
type FreeForm map[string]any

// DeepCopyInto copies the object, nested maps and lists included, into out.
func (in FreeForm) DeepCopyInto(out *FreeForm) { *out = FreeForm(ChartValues(in).DeepCopy()) }

// DeepCopy returns a copy that shares nothing with in; nil stays nil.
func (in FreeForm) DeepCopy() FreeForm {
	var out FreeForm
	in.DeepCopyInto(&out)
	return out
}

// MarshalJSON writes the object as a plain map. Schema generators treat a type with this method as free-form.
func (in FreeForm) MarshalJSON() ([]byte, error) { return json.Marshal(map[string]any(in)) }

// ShipyardList is a list of Shipyards.
//
// +kubebuilder:object:root=true
type ShipyardList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Shipyard `json:"items"`
}
