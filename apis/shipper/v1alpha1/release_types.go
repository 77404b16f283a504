// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Release is one version of an Application as it was admitted: a chart pinned to a version and a digest, values, clusters
// and a strategy. Users move it between the steps of its strategy with spec.targetStep; the rest does not change.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=releases,shortName=rel,categories={all,shipper}
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Generation",type=string,JSONPath=`.metadata.annotations.shipper\.booking\.com/release\.generation`
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=`.spec.environment.chart.version`
// +kubebuilder:printcolumn:name="Outcome",type=string,JSONPath=`.status.summary.outcome`
// +kubebuilder:printcolumn:name="Achieved Step",type=string,JSONPath=`.status.achievedStep.name`
// +kubebuilder:printcolumn:name="Traffic",type=string,JSONPath=`.status.summary.traffic`
// +kubebuilder:printcolumn:name="Progress",type=string,JSONPath=`.status.conditions[?(@.type=="Advancing")].reason`
// +kubebuilder:printcolumn:name="Clusters",type=string,JSONPath=`.metadata.annotations.shipper\.booking\.com/release\.clusters`
// +kubebuilder:printcolumn:name="Waiting",type=string,JSONPath=`.status.summary.waiting`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.summary.message`
// +kubebuilder:printcolumn:name="Next Time",type=string,priority=1,JSONPath=`.status.progress.next.time`
// +kubebuilder:printcolumn:name="Duration",type=string,priority=1,JSONPath=`.status.summary.duration`
// +kubebuilder:printcolumn:name="Chart",type=string,priority=1,JSONPath=`.spec.environment.chart.name`
// +kubebuilder:printcolumn:name="Digest",type=string,priority=1,JSONPath=`.metadata.annotations.shipper\.booking\.com/release\.chart\.digest`
// +kubebuilder:printcolumn:name="Values Changed",type=string,priority=1,JSONPath=`.status.summary.valuesChanged`
// +kubebuilder:printcolumn:name="Requested By",type=string,priority=1,JSONPath=`.metadata.annotations.shipper\.booking\.com/release\.requested-by`
// +kubebuilder:printcolumn:name="Override Reason",type=string,priority=1,JSONPath=`.status.summary.overrideReason`
type Release struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the admitted environment and the target step.
	Spec ReleaseSpec `json:"spec"`

	// status is the progress of the rollout. Written by the reconciler.
	// +optional
	Status ReleaseStatus `json:"status,omitempty"`
}

// ReleaseSpec is an environment and the target step of its strategy.
// +kubebuilder:validation:XValidation:rule="has(self.overrides) == has(oldSelf.overrides)",message="the overrides of a Release must not be changed; edit the Application, the next Release copies the ResourceOverrides",fieldPath=".overrides",reason=FieldValueForbidden
// +kubebuilder:validation:XValidation:rule="!has(self.targetWave) || self.targetWave == 0 || has(self.environment.strategy.waves) && self.targetWave < size(self.environment.strategy.waves)",message="must be a wave of the strategy",fieldPath=".targetWave"
type ReleaseSpec struct {
	// targetStep is the index, from 0, of the strategy's step to move to. Raise it to advance, lower it to retreat; steps may be
	// skipped. It must be below the number of steps.
	// +kubebuilder:validation:Minimum=0
	TargetStep int32 `json:"targetStep"`

	// environment is the Application's template as it was admitted, with the chart's version resolved and, if not by Release, its
	// naming decided. It does not change.
	// +kubebuilder:validation:XValidation:rule="(has(self.chart) && has(self.chart.naming) ? self.chart.naming : '') == (has(oldSelf.chart) && has(oldSelf.chart.naming) ? oldSelf.chart.naming : '')",message="the Release environment must not be changed; edit the Application instead",fieldPath=".chart.naming",reason=FieldValueForbidden
	Environment ReleaseEnvironment `json:"environment"`

	// hold is why Shipper must not move targetStep by itself, up or back; users may. No cluster of a wave begins to change while it is set;
	// those that have got Pods or traffic for the step get the rest. Absent means that it may. A new Release is not held.
	// The original had no such field.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Hold string `json:"hold,omitempty"`

	// targetWave is the index, from 0, of the strategy's wave to move to. targetStep is a step of this wave: the clusters of waves before it
	// go to the last step, and those of waves after it keep the earlier Release. Raise it, with targetStep 0, to begin the next wave; lower it
	// to retreat. It must be below the number of waves. Once it is above 0, a write that leaves it out is refused: write 0 to go back to the
	// first wave. Default: 0. The original had no such field.
	// +optional
	// +kubebuilder:validation:Minimum=0
	TargetWave *int32 `json:"targetWave,omitempty"`

	// overrides are copies of the ResourceOverrides that bore on the Application when the Release was created, in the order in which they are
	// applied; 500 with 1,000 operations and 512 KiB together, of which 100, 250 and 128 KiB are for mandatory ones. A rollback copies those
	// of the Release that it restores, but the mandatory ones of its own time. Default: none. The original had no such field.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=500
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="the overrides of a Release must not be changed; edit the Application, the next Release copies the ResourceOverrides",reason=FieldValueForbidden
	Overrides []ReleaseOverride `json:"overrides,omitempty"`
}

// ReleaseStatus is the progress of a Release.
type ReleaseStatus struct {
	// observedGeneration is the metadata.generation that this status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// achievedStep is the step completed last; absent until the first is complete.
	// +optional
	AchievedStep *AchievedStep `json:"achievedStep,omitempty"`

	// strategy says what the current step waits for.
	// +optional
	Strategy *ReleaseStrategyStatus `json:"strategy,omitempty"`

	// progress has the figures and times of a rollout that goes on, or fails, by itself. Absent where the strategy has none of after,
	// gate, checks, progressDeadline and onFailure, and for all Releases but the newest.
	// +optional
	Progress *ReleaseProgress `json:"progress,omitempty"`

	// placement says why the Release has its clusters. Absent where clusterRequirements have no placement.
	// +optional
	Placement *ReleasePlacement `json:"placement,omitempty"`

	// summary is one line of an Application's history. Absent until the reconciler has seen the Release.
	// +optional
	Summary *ReleaseSummary `json:"summary,omitempty"`

	// waves are the figures of each wave, in the order of the strategy. Absent where the strategy has no waves, and for all Releases but the
	// newest. The original had no such field.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=100
	Waves []ReleaseWave `json:"waves,omitempty"`

	// failedClusters are the clusters that have missed progressDeadline within maxFailures, sorted. The waves go on without them, and
	// nothing more is requested there. When one is ready again, as it was last requested, and it is its turn, it moves to recoveringClusters.
	// After a move back, one of which the position asks nothing, or that has what it asks, leaves, too. None is left when the Release
	// completes; one that a newer Release replaces before keeps them. Default: absent, none.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=100
	FailedClusters []string `json:"failedClusters,omitempty"`

	// conditions, sorted by type: Blocked, Complete, Healthy, Scheduled, StrategyExecuted; where there is progress also Advancing, and
	// with a progressDeadline Failed. Other programs may add conditions, for readinessGates for example; Shipper does not change those.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []Condition `json:"conditions,omitempty"`

	// recoveringClusters are clusters that were in failedClusters and were ready again, sorted by name. They move to the position within
	// maxConcurrency, each position waits for them, and its checks are made in them once they have caught up. They do not count against
	// maxFailures, and fail again when they miss progressDeadline. One that has caught up leaves when the position changes. Default: absent,
	// none. The original had no such field.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=100
	RecoveringClusters []RecoveringCluster `json:"recoveringClusters,omitempty"`
}

// RecoveringCluster is a cluster that had failed within maxFailures and was ready again.
type RecoveringCluster struct {
	// name of the cluster.
	Name string `json:"name"`
	// caughtUp is true once the cluster has had all that the position asks for. Default: false.
	// +optional
	CaughtUp bool `json:"caughtUp,omitempty"`
	// deadlineTime is when the cluster fails again, unless more of its Pods are available by then. Absent while it has all, cannot be reached
	// or waits for its turn, and while the rollout is held.
	// +optional
	DeadlineTime *metav1.Time `json:"deadlineTime,omitempty"`
	// availablePods is the largest number of Pods of the Release that were available in the cluster since it was ready again. Default: 0.
	// +optional
	AvailablePods int32 `json:"availablePods,omitempty"`
}

// ReleaseWave is how far a wave is.
type ReleaseWave struct {
	// name of the wave.
	Name string `json:"name"`
	// clusters is how many clusters are in the wave.
	Clusters int32 `json:"clusters"`
	// achieved is how many of them have all that the Release wants there now. Before the wave begins, that is nothing.
	// +optional
	Achieved int32 `json:"achieved,omitempty"`
	// moving is how many of them are changing to what targetStep asks for, or have changed and are not ready. Each takes a slot of
	// maxConcurrency, unless no earlier Release serves there. Those in failed are not counted. Default: 0.
	// +optional
	Moving int32 `json:"moving,omitempty"`
	// movingClusters names them, at most 10, sorted.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10
	MovingClusters []string `json:"movingClusters,omitempty"`
	// blocked is how many of them are held by RolloutBlocks that name clusters. Shipper makes no new requests there, and continues in the
	// other clusters. Default: 0.
	// +optional
	Blocked int32 `json:"blocked,omitempty"`
	// blockedClusters names the blocked clusters, at most 10, sorted. Example: [eu-1].
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10
	BlockedClusters []string `json:"blockedClusters,omitempty"`
	// failed is how many of them have failed within maxFailures, and still lack what the Release wants there. They do not count against
	// maxConcurrency. Default: absent, none.
	// +optional
	Failed int32 `json:"failed,omitempty"`
	// failedClusters names them, at most 10: those with the fewest available Pods first. Example: [eu-3].
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10
	FailedClusters []string `json:"failedClusters,omitempty"`
}

// ReleaseSummary is one line of an Application's history.
type ReleaseSummary struct {
	// outcome is InProgress for the newest Release until it completes; Failed instead while its condition Failed is True; Complete; RolledBack, when it was complete and the next
	// Release is a rollback to another environment; or Superseded, when a newer Release exists and it never completed.
	Outcome ReleaseOutcome `json:"outcome"`

	// duration is the time from the Release's creation until it completed, in hours, minutes and whole seconds, as 1h4m10s.
	// Absent until then, and when it is unknown because the Release was restored from a backup without it.
	// +optional
	Duration string `json:"duration,omitempty"`

	// valuesChanged lists the keys of values that differ from the Release before, comma-separated, nested keys joined by dots. It
	// has no values. When the list would be longer than 256 characters, it ends with the number of omitted keys. Absent: none
	// differ, or there is no Release before.
	// +optional
	ValuesChanged string `json:"valuesChanged,omitempty"`

	// override lists the RolloutBlocks that the Release overrides or has overridden: `namespace/name`, comma-separated. A block that
	// is deleted disappears from the annotation, but not from this list. Absent: it never overrode any.
	// +optional
	Override string `json:"override,omitempty"`

	// overrideReason is the reason given for the override, at most 256 characters of it. Absent: no reason was given.
	// +optional
	OverrideReason string `json:"overrideReason,omitempty"`

	// traffic is the percentage of requests that the Release was assigned at the last achieved step: 0 % to 100 %, or LOWEST-HIGHEST % where
	// clusters differ. Default: absent, before the first step and where there is no traffic to share, as with resources.
	// +optional
	Traffic string `json:"traffic,omitempty"`

	// waiting is what the Release waits for: Scheduled; the type of the first False one of status.strategy.conditions; else the reason of a
	// False condition Advancing, as HeldByUser, HeldByBlock, HeldAfterGoingBack, CheckUndecided or Failed; or AwaitingCommand, also where the
	// strategy has no such condition, while you have to raise targetStep. Default: absent, it waits for nothing.
	// +optional
	Waiting string `json:"waiting,omitempty"`

	// message is the message of that condition, or the step that is next, at most 1024 characters. Absent: the Release waits for nothing.
	// +optional
	Message string `json:"message,omitempty"`
}

// ReleaseOutcome is the result of a Release's rollout.
// +kubebuilder:validation:Enum=InProgress;Failed;Complete;RolledBack;Superseded
type ReleaseOutcome string

// The outcomes of Releases.
const (
	ReleaseInProgress ReleaseOutcome = "InProgress"
	ReleaseHasFailed  ReleaseOutcome = "Failed"
	ReleaseCompleted  ReleaseOutcome = "Complete"
	ReleaseRolledBack ReleaseOutcome = "RolledBack"
	ReleaseSuperseded ReleaseOutcome = "Superseded"
)

// AchievedStep is a step that a Release has completed.
type AchievedStep struct {
	// step is the index of the step, from 0.
	Step int32 `json:"step"`
	// name is the step's name.
	Name string `json:"name"`
	// wave is the index, from 0, of the wave that achieved it. Default: 0. The original had no such field.
	// +optional
	Wave int32 `json:"wave,omitempty"`
}

// ReleaseStrategyStatus is the state of the step a Release is moving to.
type ReleaseStrategyStatus struct {
	// state sums up the conditions: what the step waits for now.
	// +optional
	State ReleaseStrategyState `json:"state,omitempty"`

	// conditions, sorted by type, say whether contender and incumbent have what the step requires.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []ReleaseStrategyCondition `json:"conditions,omitempty"`
}

// ReleaseStrategyState says what a rollout waits for: "True", "False" or "Unknown" each.
type ReleaseStrategyState struct {
	// waitingForInstallation is True while the chart is not installed in every cluster.
	WaitingForInstallation StrategyState `json:"waitingForInstallation"`
	// waitingForCapacity is True while contender or incumbent does not have the step's number of available Pods.
	WaitingForCapacity StrategyState `json:"waitingForCapacity"`
	// waitingForTraffic is True while contender or incumbent does not have the step's share of traffic.
	WaitingForTraffic StrategyState `json:"waitingForTraffic"`
	// waitingForCommand is True when the step is achieved and is not the last: the Release waits until targetStep is raised.
	WaitingForCommand StrategyState `json:"waitingForCommand"`
	// waitingForReadiness is True while everything else of the step is achieved, but a condition that its readinessGates name is not
	// True, and while one that the wave's beforeTasks name is not. Absent where there are none. The original had no such field.
	// +optional
	WaitingForReadiness StrategyState `json:"waitingForReadiness,omitempty"`
	// waitingForApproval is True while everything else of the step is achieved, but its gate asks for more approvals, and while the wave's
	// beforeTasks do. Absent where neither asks for any. The original had no such field.
	// +optional
	WaitingForApproval StrategyState `json:"waitingForApproval,omitempty"`
	// waitingForChecks is True while the step's checks have not all passed. Absent where the step has none.
	// +optional
	WaitingForChecks StrategyState `json:"waitingForChecks,omitempty"`
	// waitingForTime is True while the wait of the wave's beforeTasks or afterTasks is not over. Absent where there is none. The original had
	// no such field.
	// +optional
	WaitingForTime StrategyState `json:"waitingForTime,omitempty"`
}

// StrategyState is "True", "False" or "Unknown".
type StrategyState string

// The values of StrategyState.
const (
	StrategyStateTrue    StrategyState = "True"
	StrategyStateFalse   StrategyState = "False"
	StrategyStateUnknown StrategyState = "Unknown"
)

// ReleaseStrategyCondition is a Condition of one step.
type ReleaseStrategyCondition struct {
	Condition `json:",inline"`

	// step is the index of the step that this condition describes.
	// +optional
	Step int32 `json:"step,omitempty"`
}

// ReleaseList is a list of Releases.
//
// +kubebuilder:object:root=true
type ReleaseList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Release `json:"items"`
}
