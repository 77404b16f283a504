// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Notification sends a message to a server for each change of a Release that it names: in its own namespace, or in every namespace
// when it is in Shipper's (shipper-system). A rollout does not wait for a message. The original Shipper had none.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=notifications,shortName=ntf,categories={shipper}
// +kubebuilder:printcolumn:name="Format",type=string,JSONPath=`.spec.format`
// +kubebuilder:printcolumn:name="Delivering",type=string,JSONPath=`.status.conditions[?(@.type=="Delivering")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Delivering")].reason`
// +kubebuilder:printcolumn:name="Failures",type=integer,JSONPath=`.status.consecutiveFailures`
// +kubebuilder:printcolumn:name="Last Delivery",type=date,JSONPath=`.status.lastDeliveryTime`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Delivering")].message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Notification struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec says where messages go, of which changes, and what they contain.
	Spec NotificationSpec `json:"spec"`

	// status says whether messages arrive. Written by the reconciler.
	// +optional
	Status NotificationStatus `json:"status,omitempty"`
}

// NotificationSpec says where messages go, of which changes, and what they contain.
type NotificationSpec struct {
	// to is the server that gets the messages.
	To NotificationReceiver `json:"to"`

	// format of a message: CloudEvents (version 1.0, as JSON) or Slack ({"text": …}).
	// +optional
	// +kubebuilder:default=CloudEvents
	Format NotificationFormat `json:"format,omitempty"`

	// events are the changes that cause a message. Absent: Waiting, Failed, WentBack, Aborted and Completed.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=10
	Events []NotificationEvent `json:"events,omitempty"`

	// applications selects Applications by their labels. Absent: all of the namespace or, in Shipper's own, of every namespace.
	// +optional
	Applications *metav1.LabelSelector `json:"applications,omitempty"`

	// body is a CEL expression over event that gives the content of a message, a map or a string. With CloudEvents it replaces data;
	// with Slack a string replaces the text, and a map the whole message. Absent: the fields of event; with Slack one sentence. event
	// has id, type, source, subject, time, event, application, namespace, release, step, stepName, reason, message and user.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	Body string `json:"body,omitempty"`
}

// NotificationReceiver is a server that gets messages.
type NotificationReceiver struct {
	// secretName is the Secret of the Notification's namespace with the keys url and, optionally, token (sent as a bearer token) and
	// ca.crt (authorities to trust besides the system's). A user who changes any field of the Notification must be allowed to get it. The
	// flag --outgoing-urls of the reconciler must list the URL.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	SecretName string `json:"secretName"`
}

// NotificationFormat is the format of messages.
//
// +kubebuilder:validation:Enum=CloudEvents;Slack
type NotificationFormat string

// The formats.
const (
	NotificationCloudEvents NotificationFormat = "CloudEvents"
	NotificationSlack       NotificationFormat = "Slack"
)

// NotificationEvent is a change of a Release that may cause a message.
//
// +kubebuilder:validation:Enum=Started;StepAchieved;Waiting;Failed;WentBack;Aborted;RolledBack;Completed;Blocked;Unblocked
type NotificationEvent string

// The changes.
const (
	// NotificationStarted is the creation of a Release.
	NotificationStarted NotificationEvent = "Started"
	// NotificationStepAchieved is that a Release has achieved a step, the last one too.
	NotificationStepAchieved NotificationEvent = "StepAchieved"
	// NotificationWaiting is that a user has to raise targetStep or to approve the step, or that a check is undecided.
	NotificationWaiting NotificationEvent = "Waiting"
	// NotificationFailed is that the condition Failed has become True.
	NotificationFailed NotificationEvent = "Failed"
	// NotificationWentBack is that targetStep was lowered, by Shipper or by a user.
	NotificationWentBack NotificationEvent = "WentBack"
	// NotificationAborted is the deletion of the newest Release before it was complete.
	NotificationAborted NotificationEvent = "Aborted"
	// NotificationRolledBack is that a rollback has replaced a complete Release.
	NotificationRolledBack NotificationEvent = "RolledBack"
	// NotificationCompleted is that the condition Complete has become True.
	NotificationCompleted NotificationEvent = "Completed"
	// NotificationBlocked is that RolloutBlocks have stopped a rollout that is under way.
	NotificationBlocked NotificationEvent = "Blocked"
	// NotificationUnblocked is that they no longer do.
	NotificationUnblocked NotificationEvent = "Unblocked"
)

// DefaultNotificationEvents are the changes that cause a message if a Notification names none.
func DefaultNotificationEvents() []NotificationEvent {
	return []NotificationEvent{
		NotificationWaiting, NotificationFailed, NotificationWentBack, NotificationAborted, NotificationCompleted,
	}
}

// NotificationStatus says whether messages arrive.
type NotificationStatus struct {
	// observedGeneration is the metadata.generation that this status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// lastDeliveryTime is when the server last accepted a message.
	// +optional
	LastDeliveryTime *metav1.Time `json:"lastDeliveryTime,omitempty"`

	// consecutiveFailures is the number of attempts that failed since the server last accepted a message.
	// +optional
	ConsecutiveFailures int32 `json:"consecutiveFailures,omitempty"`

	// deliveredUpToTime is the time up to which changes were delivered, or given up after an hour; it is not later than a change that is
	// queued. A reconciler that begins to lead sends the changes from that time on again, as far as the Releases still show them. Absent:
	// from the creation of the Notification.
	// +optional
	DeliveredUpToTime *metav1.Time `json:"deliveredUpToTime,omitempty"`

	// test is the result of the last test message. Absent until a user asks for one by the annotation notification.test.
	// +optional
	Test *NotificationTest `json:"test,omitempty"`

	// conditions: Delivering.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []Condition `json:"conditions,omitempty"`
}

// NotificationTest is the result of a test message.
type NotificationTest struct {
	// request is the value of the annotation, cut to 64 bytes.
	Request string `json:"request"`

	// accepted is true when the server accepted the message.
	// +optional
	Accepted bool `json:"accepted,omitempty"`

	// message says why it did not; at most 1024 bytes.
	// +optional
	Message string `json:"message,omitempty"`
}

// NotificationList is a list of Notifications.
//
// +kubebuilder:object:root=true
type NotificationList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Notification `json:"items"`
}
