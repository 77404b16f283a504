// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// RolloutBlock stops rollouts: in its own namespace, or in every namespace when it is in the global one
// (rollout-blocks-global by default). It stops all of them as long as it exists, unless its spec limits it.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=rolloutblocks,shortName=rb,categories={all,shipper}
// +kubebuilder:printcolumn:name="Active",type=boolean,JSONPath=`.status.active`
// +kubebuilder:printcolumn:name="Enforcement",type=string,priority=1,JSONPath=`.spec.enforcement`
// +kubebuilder:printcolumn:name="Next Start",type=string,JSONPath=`.status.nextStart`
// +kubebuilder:printcolumn:name="Next End",type=string,JSONPath=`.status.nextEnd`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.spec.message`
// +kubebuilder:printcolumn:name="Author Type",type=string,priority=1,JSONPath=`.spec.author.type`
// +kubebuilder:printcolumn:name="Author Name",type=string,JSONPath=`.spec.author.name`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Overriding Applications",type=string,priority=1,JSONPath=`.status.overrides.application`
// +kubebuilder:printcolumn:name="Overriding Releases",type=string,priority=1,JSONPath=`.status.overrides.release`
type RolloutBlock struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec says why rollouts are blocked and names the author. Optional fields limit the block in time, scope and enforcement.
	Spec RolloutBlockSpec `json:"spec"`

	// status says whether the block is in effect, and lists the overrides. Written by the reconciler.
	// +optional
	Status RolloutBlockStatus `json:"status,omitempty"`
}

// RolloutBlockSpec says why rollouts are blocked and names the author. The optional fields limit the block; without them it
// stops everything as long as it exists.
type RolloutBlockSpec struct {
	// message is the reason for the block. Refusals show it to users.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message"`

	// author is the user or service account responsible for the block. Absent: the webhook fills in the user of the request that
	// creates it. The annotation shipper.booking.com/rollout-block.created-by always names the user who created the block.
	// +optional
	Author RolloutBlockAuthor `json:"author"`

	// schedule says when the block is in effect. Absent: always.
	// +optional
	Schedule *RolloutBlockSchedule `json:"schedule,omitempty"`

	// expiresAt is the time from which the block is no longer in effect. The object stays. Absent: never.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Format=date-time
	// +kubebuilder:validation:Pattern=`^[0-9]{4}-[0-9]{2}-[0-9]{2}T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]+)?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$`
	ExpiresAt *metav1.Time `json:"expiresAt,omitempty"`

	// ttl is how long after its creation the block expires, for example 90m. Absent: never. When expiresAt is set, too, the earlier
	// of the two counts.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(h|m|s))+$`
	// +kubebuilder:validation:XValidation:rule="duration(self) > duration('0s')",message="must be more than nothing"
	TTL *metav1.Duration `json:"ttl,omitempty"`

	// scope limits what the block stops; all parts that are set must match. Absent: everything in the block's namespace or, of a
	// global block, in every namespace.
	// +optional
	Scope *RolloutBlockScope `json:"scope,omitempty"`

	// matchConditions are CEL expressions over object, oldObject and request (with request.userInfo), like those of webhooks. The
	// block stops a request when all are true. They are evaluated for writes of Applications and Releases by other accounts than
	// Shipper's; a change that was admitted is then rolled out. An expression that fails counts as true.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	MatchConditions []RolloutBlockMatchCondition `json:"matchConditions,omitempty"`

	// allow lists changes that pass nevertheless, so that users can remove a broken Release during a freeze: Abort (the newest
	// Release is deleted), Retreat (targetStep goes back) and Rollback (the template becomes that of an earlier complete Release).
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=3
	Allow []RolloutBlockChange `json:"allow,omitempty"`

	// enforcement is Deny, Warn (changes pass with a warning) or Audit (they pass, and the API server's audit log records them).
	// Absent: Deny.
	// +optional
	Enforcement RolloutBlockEnforcement `json:"enforcement,omitempty"`

	// overridePolicy says which users may override the block: Anyone with the right to write the object, those Authorized by the
	// verb override on this block, or Nobody. Absent: Authorized.
	// +optional
	OverridePolicy RolloutBlockOverridePolicy `json:"overridePolicy,omitempty"`

	// requireOverrideReason makes the webhook refuse overrides without the annotation
	// shipper.booking.com/rollout-block.override-reason. Absent means false.
	// +optional
	RequireOverrideReason bool `json:"requireOverrideReason,omitempty"`
}

// RolloutBlockSchedule says when a block is in effect: from start to end and, if it has windows, only during those.
//
// +kubebuilder:validation:XValidation:rule="!has(self.start) || !has(self.end) || self.start < self.end",message="start must be before end"
type RolloutBlockSchedule struct {
	// start is the time from which the block is in effect. Absent: at once.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Format=date-time
	// +kubebuilder:validation:Pattern=`^[0-9]{4}-[0-9]{2}-[0-9]{2}T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]+)?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$`
	Start *metav1.Time `json:"start,omitempty"`

	// end is the first moment at which the block is no longer in effect. Absent: never.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Format=date-time
	// +kubebuilder:validation:Pattern=`^[0-9]{4}-[0-9]{2}-[0-9]{2}T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]+)?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$`
	End *metav1.Time `json:"end,omitempty"`

	// windows are recurring times within start and end. Absent: the block is in effect from start to end without a gap.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	Windows []RolloutBlockWindow `json:"windows,omitempty"`
}

// RolloutBlockWindow is a recurring time.
type RolloutBlockWindow struct {
	// cron says when the window opens: minute, hour, day of month, month and day of week, for example "0 18 * * FRI". When clocks
	// skip that time in spring, the window opens right after the gap; when they show it twice in autumn, at the first.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Cron string `json:"cron"`

	// duration is how long the window stays open, in elapsed time, for example 62h. From 1m to 8784h, a leap year.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(h|m|s))+$`
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1m') && duration(self) <= duration('8784h')",message="must be from 1m to 8784h"
	Duration metav1.Duration `json:"duration"`

	// timeZone of cron: an IANA name like Europe/Amsterdam. Absent: UTC.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	TimeZone string `json:"timeZone,omitempty"`
}

// RolloutBlockScope limits what a block stops. Absent parts match everything.
type RolloutBlockScope struct {
	// applications selects Applications by their labels; labels from before a change match as well as those after it.
	// +optional
	Applications *metav1.LabelSelector `json:"applications,omitempty"`

	// regions matches objects that require one of these regions.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	Regions []string `json:"regions,omitempty"`

	// clusters matches objects that run, or would be placed, in one of these clusters. A rollout with waves goes on in its other clusters.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	Clusters []string `json:"clusters,omitempty"`

	// charts matches objects whose chart has one of these names.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	Charts []string `json:"charts,omitempty"`
}

// RolloutBlockMatchCondition is a CEL expression with a name.
type RolloutBlockMatchCondition struct {
	// name is unique among the conditions of a block.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// expression is true for requests that the block stops.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	Expression string `json:"expression"`
}

// RolloutBlockChange is a change that a block may let through.
//
// +kubebuilder:validation:Enum=Abort;Retreat;Rollback
type RolloutBlockChange string

// The changes a block may let through.
const (
	// RolloutBlockAbort is the deletion of the newest Release, and the restoration of the one before it.
	RolloutBlockAbort RolloutBlockChange = "Abort"
	// RolloutBlockRetreat is a change of targetStep to an earlier step.
	RolloutBlockRetreat RolloutBlockChange = "Retreat"
	// RolloutBlockRollback is a change of the template to that of an earlier complete Release, and the rollout of it.
	RolloutBlockRollback RolloutBlockChange = "Rollback"
)

// RolloutBlockEnforcement is what a block does with a change that it matches.
//
// +kubebuilder:validation:Enum=Deny;Warn;Audit
type RolloutBlockEnforcement string

// The enforcements.
const (
	RolloutBlockDeny  RolloutBlockEnforcement = "Deny"
	RolloutBlockWarn  RolloutBlockEnforcement = "Warn"
	RolloutBlockAudit RolloutBlockEnforcement = "Audit"
)

// RolloutBlockOverridePolicy says which users may override a block.
//
// +kubebuilder:validation:Enum=Anyone;Authorized;Nobody
type RolloutBlockOverridePolicy string

// The override policies.
const (
	RolloutBlockAnyone     RolloutBlockOverridePolicy = "Anyone"
	RolloutBlockAuthorized RolloutBlockOverridePolicy = "Authorized"
	RolloutBlockNobody     RolloutBlockOverridePolicy = "Nobody"
)

// RolloutBlockAuthor is the user or service account responsible for a block.
type RolloutBlockAuthor struct {
	// type of the author, for example user or serviceaccount.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Type string `json:"type"`

	// name of the author.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Name string `json:"name"`
}

// RolloutBlockStatus says whether a block is in effect, and lists its overrides.
type RolloutBlockStatus struct {
	// observedGeneration is the metadata.generation that this status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// active is true while the block is in effect. Absent: the reconciler has not seen the block yet; its spec decides.
	// +optional
	Active *bool `json:"active,omitempty"`

	// nextStart is the next time at which the block comes into effect. Absent: it will not.
	// +optional
	NextStart *metav1.Time `json:"nextStart,omitempty"`

	// nextEnd is the time at which the block, which is in effect, ends. Absent: it is not in effect, or has no known end.
	// +optional
	NextEnd *metav1.Time `json:"nextEnd,omitempty"`

	// message says what is wrong with the block's schedule. A block whose schedule cannot be read is in effect.
	// +optional
	Message string `json:"message,omitempty"`

	// overrides lists the objects that override this block and are not being deleted.
	// +optional
	Overrides RolloutBlockOverrides `json:"overrides"`
}

// RolloutBlockOverrides lists objects as `namespace/name`, sorted, comma-separated.
type RolloutBlockOverrides struct {
	// release lists the Releases that override the block.
	// +optional
	Release string `json:"release"`

	// application lists the Applications that override the block.
	// +optional
	Application string `json:"application"`

	// records have the user, time and reason of each override in the lists, where they are known. Applications come first.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=100
	Records []RolloutBlockOverrideRecord `json:"records,omitempty"`
}

// RolloutBlockOverrideRecord is one override.
type RolloutBlockOverrideRecord struct {
	// kind of the object that overrides: Application or Release.
	Kind string `json:"kind"`

	// name of the object, as `namespace/name`.
	Name string `json:"name"`

	// user who overrode.
	User string `json:"user"`

	// time of the override.
	Time metav1.Time `json:"time"`

	// reason given; may be empty.
	// +optional
	Reason string `json:"reason,omitempty"`
}

// RolloutBlockList is a list of RolloutBlocks.
//
// +kubebuilder:object:root=true
type RolloutBlockList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []RolloutBlock `json:"items"`
}
