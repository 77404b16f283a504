// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// RolloutBlock stops rollouts: in its own namespace, or in every namespace when it is in the global one
// (rollout-blocks-global by default). It does so while it exists, unless its spec says when, what and how hard.
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

	// spec is why rollouts are blocked, and by whom; when, what and how hard.
	Spec RolloutBlockSpec `json:"spec"`

	// status is whether the block is in effect, and who overrides it. Written by the reconciler.
	// +optional
	Status RolloutBlockStatus `json:"status,omitempty"`
}

// RolloutBlockSpec is why rollouts are blocked, and by whom. The optional fields narrow it; without them everything is
// stopped for as long as the block exists.
type RolloutBlockSpec struct {
	// message tells the users who are refused why.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message"`

	// author is who put the block in place. Absent: stamped from the request when it is created. Who really created it is
	// in the annotation shipper.booking.com/rollout-block.created-by in any case.
	// +optional
	Author RolloutBlockAuthor `json:"author"`

	// schedule says when the block is in effect. Absent: always.
	// +optional
	Schedule *RolloutBlockSchedule `json:"schedule,omitempty"`

	// expiresAt is when the block lifts itself for good. Absent: never. The object stays, and is not in effect.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Format=date-time
	// +kubebuilder:validation:Pattern=`^[0-9]{4}-[0-9]{2}-[0-9]{2}T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]+)?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$`
	ExpiresAt *metav1.Time `json:"expiresAt,omitempty"`

	// ttl is how long after its creation the block lifts itself for good, for example 90m. Absent: never. With expiresAt
	// too, the earlier counts.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(h|m|s))+$`
	// +kubebuilder:validation:XValidation:rule="duration(self) > duration('0s')",message="must be more than nothing"
	TTL *metav1.Duration `json:"ttl,omitempty"`

	// scope says what the block stops. Absent: everything in its reach. Of the parts that are given, all must match.
	// +optional
	Scope *RolloutBlockScope `json:"scope,omitempty"`

	// matchConditions are CEL expressions over object, oldObject and request (with request.userInfo), as those of webhooks:
	// all must be true for the block to stop a request. They are asked of writes of Applications and Releases by anybody
	// but Shipper; what was admitted is then rolled out. An expression that fails counts as true.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	MatchConditions []RolloutBlockMatchCondition `json:"matchConditions,omitempty"`

	// allow lists changes that pass all the same, so that a freeze traps no broken Release: Abort (the newest Release is
	// deleted), Retreat (targetStep goes back) and Rollback (the template becomes that of an earlier complete Release).
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=3
	Allow []RolloutBlockChange `json:"allow,omitempty"`

	// enforcement is Deny, Warn (changes pass with a warning) or Audit (they pass, and the API server's audit log says so).
	// Absent: Deny.
	// +optional
	Enforcement RolloutBlockEnforcement `json:"enforcement,omitempty"`

	// overridePolicy is who may override the block: Anyone who may write the object, those Authorized by the verb override
	// on this block, or Nobody. Absent: Authorized.
	// +optional
	OverridePolicy RolloutBlockOverridePolicy `json:"overridePolicy,omitempty"`

	// requireOverrideReason refuses overrides without the annotation shipper.booking.com/rollout-block.override-reason.
	// +optional
	RequireOverrideReason bool `json:"requireOverrideReason,omitempty"`
}

// RolloutBlockSchedule is when a block is in effect: from start to end, and in that time during its windows, if it has any.
//
// +kubebuilder:validation:XValidation:rule="!has(self.start) || !has(self.end) || self.start < self.end",message="start must be before end"
type RolloutBlockSchedule struct {
	// start is when it begins. Absent: at once.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Format=date-time
	// +kubebuilder:validation:Pattern=`^[0-9]{4}-[0-9]{2}-[0-9]{2}T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]+)?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$`
	Start *metav1.Time `json:"start,omitempty"`

	// end is when it ends; the block is not in effect at that moment any more. Absent: never.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Format=date-time
	// +kubebuilder:validation:Pattern=`^[0-9]{4}-[0-9]{2}-[0-9]{2}T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]+)?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$`
	End *metav1.Time `json:"end,omitempty"`

	// windows recur. Absent: from start to end without a gap.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	Windows []RolloutBlockWindow `json:"windows,omitempty"`
}

// RolloutBlockWindow is a time that recurs.
type RolloutBlockWindow struct {
	// cron says when the window opens: minute, hour, day of month, month and day of week, for example "0 18 * * FRI".
	// A time that a clock skips in spring is the moment after it; one that a clock shows twice in autumn is the first.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Cron string `json:"cron"`

	// duration is how long it stays open, in elapsed time, for example 62h. From 1m to 8784h, a leap year.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(h|m|s))+$`
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1m') && duration(self) <= duration('8784h')",message="must be from 1m to 8784h"
	Duration metav1.Duration `json:"duration"`

	// timeZone of cron, an IANA name like Europe/Amsterdam. Absent: UTC.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	TimeZone string `json:"timeZone,omitempty"`
}

// RolloutBlockScope is what a block stops. Absent parts match everything.
type RolloutBlockScope struct {
	// applications selects by the labels of Applications, as they were before a change and as they are after it.
	// +optional
	Applications *metav1.LabelSelector `json:"applications,omitempty"`

	// regions matches what wants one of these regions.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	Regions []string `json:"regions,omitempty"`

	// clusters matches what runs, or would be placed, in one of these clusters.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	Clusters []string `json:"clusters,omitempty"`

	// charts matches what is made of a chart of one of these names.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	Charts []string `json:"charts,omitempty"`
}

// RolloutBlockMatchCondition is a CEL expression with a name.
type RolloutBlockMatchCondition struct {
	// name tells the conditions of a block apart.
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
	// RolloutBlockAbort is the deletion of the newest Release, with all that brings the one before it back.
	RolloutBlockAbort RolloutBlockChange = "Abort"
	// RolloutBlockRetreat is a targetStep that goes back.
	RolloutBlockRetreat RolloutBlockChange = "Retreat"
	// RolloutBlockRollback is a template that becomes that of an earlier complete Release, and its rollout.
	RolloutBlockRollback RolloutBlockChange = "Rollback"
)

// RolloutBlockEnforcement is what a block does to what it stops.
//
// +kubebuilder:validation:Enum=Deny;Warn;Audit
type RolloutBlockEnforcement string

// The enforcements.
const (
	RolloutBlockDeny  RolloutBlockEnforcement = "Deny"
	RolloutBlockWarn  RolloutBlockEnforcement = "Warn"
	RolloutBlockAudit RolloutBlockEnforcement = "Audit"
)

// RolloutBlockOverridePolicy is who may override a block.
//
// +kubebuilder:validation:Enum=Anyone;Authorized;Nobody
type RolloutBlockOverridePolicy string

// The override policies.
const (
	RolloutBlockAnyone     RolloutBlockOverridePolicy = "Anyone"
	RolloutBlockAuthorized RolloutBlockOverridePolicy = "Authorized"
	RolloutBlockNobody     RolloutBlockOverridePolicy = "Nobody"
)

// RolloutBlockAuthor is who put a block in place.
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

// RolloutBlockStatus is whether a block is in effect, and who overrides it.
type RolloutBlockStatus struct {
	// observedGeneration is the metadata.generation this status speaks of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// active tells whether the block is in effect now. Absent: the reconciler has not seen it yet; then it goes by spec.
	// +optional
	Active *bool `json:"active,omitempty"`

	// nextStart is when the block will next come into effect. Absent: never again.
	// +optional
	NextStart *metav1.Time `json:"nextStart,omitempty"`

	// nextEnd is when the block, which is in effect, will cease to be. Absent: it is not in effect, or no end is known.
	// +optional
	NextEnd *metav1.Time `json:"nextEnd,omitempty"`

	// message says what is wrong with the block's schedule. A block whose schedule cannot be read is in effect.
	// +optional
	Message string `json:"message,omitempty"`

	// overrides lists the living objects that override this block.
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

	// records say who overrode, when and why, for the objects listed: as far as that is known, Applications first.
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
