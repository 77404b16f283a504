// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"sort"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Condition is one observation of an object. It has the fields that all condition types of the original Shipper have.
type Condition struct {
	// type of the condition, unique in its list.
	Type string `json:"type"`
	// status is True, False or Unknown.
	Status corev1.ConditionStatus `json:"status"`
	// lastTransitionTime is when status last changed; reason and message do not move it.
	// +optional
	LastTransitionTime metav1.Time `json:"lastTransitionTime,omitempty"`
	// reason is one word for machines; empty in the expected case.
	// +optional
	Reason string `json:"reason,omitempty"`
	// message says in a sentence what is wrong and how to change that; empty in the expected case.
	// +optional
	Message string `json:"message,omitempty"`
}

// Condition types of Applications.
const (
	// ApplicationAborting is True while the template is being restored because the newest Release was deleted.
	ApplicationAborting = "Aborting"
	// ApplicationBlocked is True while RolloutBlocks stop this Application. Reason: RolloutsBlocked.
	ApplicationBlocked = "Blocked"
	// ApplicationDeleting is True while the deletion waits for pre-delete and post-delete hooks of the chart. Reason: InProgress, or
	// HookFailed; the message says which hook, and how to delete the Application without it.
	ApplicationDeleting = "Deleting"
	// ApplicationFailed is True while the newest Release has failed, by its progressDeadline or a check, and after one that failed was
	// aborted, until another environment completes. Reason: that of the failure; the message names the Release. Absent until the first.
	ApplicationFailed = "Failed"
	// ApplicationReleaseSynced is True when the newest Release has the template's environment. False: CreateReleaseFailed, RolloutsBlocked,
	// ChartVersionResolutionFailed, ValuesFetchFailure, StrategyFetchFailure or a reason of ValidHistory; before the first Release, the
	// reason of its chart's error; with resources, SelectionPending while their content is taken, and the reasons of ResourcesSelected when it
	// cannot be.
	ApplicationReleaseSynced = "ReleaseSynced"
	// ApplicationResourcesSelected is True when the content of template.resources was taken as it is now; the message says what it is.
	// False: SelectionNotAllowed, SelectionTooLarge, SelectionNotReadable, SelectionInvalid, SelectionEmpty, RolloutsBlocked; the last Release
	// stays. Absent without resources.
	ApplicationResourcesSelected = "ResourcesSelected"
	// ApplicationRollingOut is True until the newest Release has achieved its last step. False also where no Release could be made, with
	// the reason of ReleaseSynced: SelectionPending and others. Unknown while there is no Release.
	ApplicationRollingOut = "RollingOut"
	// ApplicationRolledBack is True while spec.rollbackTo made the newest Release; the message names the Release that was rolled back
	// to. Absent until the first rollback.
	ApplicationRolledBack = "RolledBack"
	// ApplicationValidHistory is False when the reconciler cannot determine the order of the Releases.
	// False: BrokenReleaseGeneration, BrokenApplicationObservedGeneration, ReleasesMissing.
	ApplicationValidHistory = "ValidHistory"
)

// Condition types of Releases.
const (
	// ReleaseBlocked is True while RolloutBlocks stop this Release or, with waves, some of its clusters. Reason: RolloutsBlocked.
	ReleaseBlocked = "Blocked"
	// ReleaseComplete is True when the last step is achieved and targetStep is still the last step.
	ReleaseComplete = "Complete"
	// ReleaseAdvancing is True while the Release goes on without a user, or is on its way to a step; its reason says what is awaited.
	// Absent where the strategy has none of after, gate, checks, progressDeadline and onFailure.
	ReleaseAdvancing = "Advancing"
	// ReleaseFailed is True when the rollout has failed, by its progressDeadline or a check, and no user has raised targetStep since. Absent
	// where the strategy has neither a progressDeadline nor checks.
	ReleaseFailed = "Failed"
	// ReleaseHealthy is True when kstatus reports all installed objects as healthy in all clusters. A workload that kstatus reports as in
	// progress counts as healthy when its CapacityTarget is Ready. False: ObjectsInProgress, ObjectsNotHealthy. Unknown: ObjectsNotKnown,
	// ObjectsNotHealthy.
	ReleaseHealthy = "Healthy"
	// ReleaseScheduled is True when clusters are chosen and the three targets exist.
	ReleaseScheduled = "Scheduled"
	// ReleaseStrategyExecuted is True when the step in targetStep is achieved.
	// False: StrategyInProgress until it is achieved, StrategyExecutionFailed when it cannot be executed.
	ReleaseStrategyExecuted = "StrategyExecuted"
)

// Condition types in a Release's status.strategy.
const (
	// StrategyContenderAchievedInstallation is True when the contender's chart is installed in every cluster.
	StrategyContenderAchievedInstallation = "ContenderAchievedInstallation"
	// StrategyContenderAchievedCapacity is True when the contender has the step's number of available Pods in every cluster.
	StrategyContenderAchievedCapacity = "ContenderAchievedCapacity"
	// StrategyContenderAchievedTraffic is True when the contender has the step's share of traffic in every cluster.
	StrategyContenderAchievedTraffic = "ContenderAchievedTraffic"
	// StrategyContenderAchievedReadiness is True when all conditions that the step's readinessGates name are True in the Release.
	// Absent where the step has no readinessGates.
	StrategyContenderAchievedReadiness = "ContenderAchievedReadiness"
	// StrategyContenderAchievedApprovals is True when as many users have approved the step as its gate asks for, and none has rejected it.
	// Absent where the gate asks for none.
	StrategyContenderAchievedApprovals = "ContenderAchievedApprovals"
	// StrategyContenderAchievedChecks is True when all checks of the step have passed. Absent where the step has none.
	StrategyContenderAchievedChecks = "ContenderAchievedChecks"
	// StrategyIncumbentAchievedCapacity is True when the incumbent has the step's number of Pods in every cluster.
	StrategyIncumbentAchievedCapacity = "IncumbentAchievedCapacity"
	// StrategyIncumbentAchievedTraffic is True when the incumbent has the step's share of traffic in every cluster.
	StrategyIncumbentAchievedTraffic = "IncumbentAchievedTraffic"
)

// Condition types of Notifications.
const (
	// NotificationDelivering is True when the last message was accepted. Unknown: NotDelivered. False: DeliveryFailed, SecretMissing,
	// SecretForbidden, SecretInvalid, URLNotAllowed.
	NotificationDelivering = "Delivering"
)

// Condition types of the three targets, of each of their clusters, and of Clusters.
const (
	// TargetOperational is True when the clusters can be reached and worked with.
	TargetOperational = "Operational"
	// TargetReady is True when the clusters match the target's spec. In a cluster with resources also: False with NotTakenOver,
	// ApplyConflict or KindNotServed; True with DriftFound, DiffReported or SupersededByNewer.
	TargetReady = "Ready"
	// TargetEndpointsOwned of a TrafficTarget is False while a production Service has ready endpoints that are not Pods of the
	// Application's Releases. Absent otherwise. No step waits for it.
	TargetEndpointsOwned = "EndpointsOwned"
	// TargetAddressed of a cluster of a TrafficTarget is True while each production Service of type LoadBalancer has an address. False:
	// AddressAwaited, AddressMissing. Absent where there is no such Service.
	TargetAddressed = "Addressed"
	// ClusterReady is True while Shipper can reach the cluster with the credentials it has.
	ClusterReady = "Ready"
	// ClusterJoined is True once the cluster has been ready: its account, rights and identity were good then. It stays True when the
	// cluster is lost later.
	ClusterJoined = "Joined"
	// ClusterLeaving is True while a deleted Cluster with onLeave: Remove waits until Shipper has removed what it placed there; the
	// message names the Releases. Reason: InProgress. Absent otherwise.
	ClusterLeaving = "Leaving"
	// ClusterPropertiesKnown is True while Shipper watches the cluster's Nodes and the ConfigMaps with its properties; the message names
	// properties that were left out. False: PropertiesNotReadable. Unknown in place of False while the cluster is not Ready.
	ClusterPropertiesKnown = "PropertiesKnown"
	// ClusterCredentialsValid is False when a cluster's credentials have expired, or expire soon and Shipper does not renew them;
	// otherwise True. Absent: they never expire, or Shipper does not know when.
	ClusterCredentialsValid = "CredentialsValid"
)

// Reasons of conditions. Empty in the expected case.
const (
	// RolloutsBlocked means that RolloutBlocks are in effect; the message lists them.
	RolloutsBlocked = "RolloutsBlocked"
	// CreateReleaseFailed means that the Release for the template could not be created.
	CreateReleaseFailed = "CreateReleaseFailed"
	// ChartVersionResolutionFailed means that the template's chart constraint was admitted unresolved and still is.
	ChartVersionResolutionFailed = "ChartVersionResolutionFailed"
	// BrokenReleaseGeneration means that a Release has no valid generation annotation.
	BrokenReleaseGeneration = "BrokenReleaseGeneration"
	// BrokenApplicationObservedGeneration means that the Application's highestObservedGeneration is not a number.
	BrokenApplicationObservedGeneration = "BrokenApplicationObservedGeneration"
	// ReleasesMissing means that the Application was restored from a backup, but its newest Release was not, yet.
	ReleasesMissing = "ReleasesMissing"

	// NoWaveForClusters means that no wave of the strategy selects some of the chosen clusters; the message names them.
	NoWaveForClusters = "NoWaveForClusters"
	// NoRegionsSpecified means that clusterRequirements.regions is empty.
	NoRegionsSpecified = "NoRegionsSpecified"
	// SelectionNotAllowed means that the user who chose the resources lacks a right to place them.
	SelectionNotAllowed = "SelectionNotAllowed"
	// SelectionTooLarge means that the selected objects are more, or have more bytes, than a Release may have.
	SelectionTooLarge = "SelectionTooLarge"
	// SelectionNotReadable means that Shipper may not read what is selected, or that it cannot be read now.
	SelectionNotReadable = "SelectionNotReadable"
	// SelectionInvalid means that the selected objects cannot be placed together: an Envelope is wrong, or two sources have one object.
	SelectionInvalid = "SelectionInvalid"
	// SelectionEmpty means that no object is selected. Shipper places no empty content, since that would remove everything.
	SelectionEmpty = "SelectionEmpty"
	// SelectionPending means that the content of resources is being taken.
	SelectionPending = "SelectionPending"
	// NotTakenOver means that an object was there already and takeOver leaves it alone.
	NotTakenOver = "NotTakenOver"
	// DriftFound means that an object was changed and driftPolicy is Halt.
	DriftFound = "DriftFound"
	// DiffReported means that objects were compared and not written.
	DiffReported = "DiffReported"
	// ApplyConflict means that another field manager owns a field of an object, and apply.forceConflicts is false.
	ApplyConflict = "ApplyConflict"
	// KindNotServed means that the cluster does not serve the kind of an object.
	KindNotServed = "KindNotServed"
	// SupersededByNewer means that a newer Release of the Application writes the objects in the cluster.
	SupersededByNewer = "SupersededByNewer"
	// NotGranted means that Shipper's account in the cluster lacks rights; the message has them, and how to give them.
	NotGranted = "NotGranted"
	// PlacementUnfulfilled means that fewer clusters fit a placement than it wants. The Release uses those that do.
	PlacementUnfulfilled = "PlacementUnfulfilled"
	// PropertiesNotReadable means that Shipper's account may not list Nodes, or ConfigMaps in shipper-system, of the cluster.
	PropertiesNotReadable = "PropertiesNotReadable"
	// NotEnoughClustersInRegion means that a region has fewer schedulable clusters than wanted.
	NotEnoughClustersInRegion = "NotEnoughClustersInRegion"
	// NotEnoughCapableClustersInRegion means that too few of a region's clusters offer the capabilities.
	NotEnoughCapableClustersInRegion = "NotEnoughCapableClustersInRegion"
	// DuplicateCapabilityRequirement means that a capability is required twice.
	DuplicateCapabilityRequirement = "DuplicateCapabilityRequirement"
	// ChartFetchFailure means that the chart's archive or the index could not be downloaded; Shipper tries again.
	ChartFetchFailure = "ChartFetchFailure"
	// StrategyFetchFailure means that Shipper cannot read the Strategy that strategy.from names as it was when the template was admitted.
	StrategyFetchFailure = "StrategyFetchFailure"
	// ValuesFetchFailure means that Shipper cannot read the content that valuesFrom had when the Release was admitted, or cannot keep it
	// for the Release; Shipper tries again.
	ValuesFetchFailure = "ValuesFetchFailure"
	// BrokenChartSpec means that the chart does not exist or is not a chart; Shipper tries again only when the spec changes.
	BrokenChartSpec = "BrokenChartSpec"
	// ChartNotVerified means that chart.verify demands a signature that the chart's archive does not have; Shipper looks for it again.
	ChartNotVerified = "ChartNotVerified"
	// WrongChartDeployments means that a chart whose objects are named by Release renders to something without exactly one
	// apps/v1 Deployment.
	WrongChartDeployments = "WrongChartDeployments"
	// TargetsFailed means that the Release's targets could not be created or updated.
	TargetsFailed = "FailedAPICall"

	// StrategyInProgress means that the step's conditions are not all met yet.
	StrategyInProgress = "StrategyInProgress"
	// StrategyExecutionFailed means that the step cannot be executed.
	StrategyExecutionFailed = "StrategyExecutionFailed"
	// StrategyNotComplete means that the achieved step or targetStep is not the last step.
	StrategyNotComplete = "StrategyNotComplete"
	// NoLongerComplete means that the Release was complete, and that the achieved step or targetStep is not the last step any more.
	NoLongerComplete = "NoLongerComplete"

	// AdvancingMoving means that the step is requested and does not have what it wants yet.
	AdvancingMoving = "Moving"
	// AdvancingChecking means that the step has what it wants, that its checks have not all passed yet, or that its readinessGates are not
	// all True; or that conditions of the wave's beforeTasks are not.
	AdvancingChecking = "Checking"
	// AdvancingAwaitingApproval means that everything else of the step is achieved, and that more users have to approve it, or that more users
	// have to approve that its wave begins.
	AdvancingAwaitingApproval = "AwaitingApproval"
	// AdvancingSoaking means that the step is achieved and goes on at the time in status.progress.next.
	AdvancingSoaking = "Soaking"
	// AdvancingAwaitingCommand means that the step is achieved and that a user has to raise targetStep.
	AdvancingAwaitingCommand = "AwaitingCommand"
	// AdvancingHeldByUser means that spec.hold keeps the Release at its step.
	AdvancingHeldByUser = "HeldByUser"
	// AdvancingHeldByBlock means that RolloutBlocks keep the Release at its step; the message names them.
	AdvancingHeldByBlock = "HeldByBlock"
	// AdvancingHeldAfterGoingBack means that targetStep was lowered last, by a user or by a failure: a user has to raise it, or to abort.
	AdvancingHeldAfterGoingBack = "HeldAfterGoingBack"
	// AdvancingGoingBack means that targetStep was lowered and that the step does not have what it wants yet.
	AdvancingGoingBack = "GoingBack"
	// AdvancingFailed means that the rollout has failed; the message says what is done about it.
	AdvancingFailed = "Failed"
	// AdvancingCheckUndecided means that a check can say neither that the Release is good nor that it is bad; the message says why.
	// Annotate the Release with shipper.booking.com/release.checks.retry to have the checks made again.
	AdvancingCheckUndecided = "CheckUndecided"
	// AdvancingComplete means that the last step is achieved.
	AdvancingComplete = "Complete"
	// ProgressDeadlineExceeded means that a step lacked installation, capacity or traffic for longer than the strategy's
	// progressDeadline; the message says where and what.
	ProgressDeadlineExceeded = "ProgressDeadlineExceeded"

	// ClustersNotReady means that clusters do not match the spec yet; the message names them.
	ClustersNotReady = "ClustersNotReady"
	// ClustersNotOperational means that Shipper cannot work with clusters; the message names them.
	ClustersNotOperational = "ClustersNotOperational"
	// ChartError means that the chart could not be rendered, breaks a rule, or has an object that a cluster refuses as invalid.
	ChartError = "ChartError"
	// HookFailed means that a hook of the chart failed or did not end in time; the message says which and how to try again.
	HookFailed = "HookFailed"
	// InternalError means that an API call failed.
	InternalError = "InternalError"
	// TargetClusterClientError means that there is no working connection to the cluster.
	TargetClusterClientError = "TargetClusterClientError"
	// ObjectConflict means that an object to be installed, or the whole Application in that cluster, has another owner, or that fields of
	// an object that is there cannot change.
	ObjectConflict = "ObjectConflict"
	// ObjectRefused means that a cluster refuses an object: by a policy or a quota, and an object of resources also for what is in it.
	ObjectRefused = "ObjectRefused"
	// NamespaceMissing means that the application cluster does not have the namespace; Shipper never creates it.
	NamespaceMissing = "NamespaceMissing"
	// ObjectsInProgress means that controllers in the clusters still work on objects, as on every object just installed, and that no
	// object is known to have failed; the message names some.
	ObjectsInProgress = "ObjectsInProgress"
	// ObjectsNotHealthy means that objects are not healthy; the message names some.
	ObjectsNotHealthy = "ObjectsNotHealthy"
	// ObjectsNotKnown means that some cluster has not reported the health of its objects yet.
	ObjectsNotKnown = "ObjectsNotKnown"
	// CheckFailed means that a check of the step has failed; the message has the cluster and the value.
	CheckFailed = "CheckFailed"
	// ChecksNotPassed means that checks of the step have not passed yet, or are undecided.
	ChecksNotPassed = "ChecksNotPassed"
	// ApprovalsNeeded means that the step's gate asks for more approvals, or that a user has rejected the step; the message says who.
	ApprovalsNeeded = "ApprovalsNeeded"
	// GatesNotReady means that conditions named by the step's readinessGates are not True.
	GatesNotReady = "GatesNotReady"
	// InProgress means that the change was requested and is not complete.
	InProgress = "InProgress"
	// PodsNotReady means that Pods do not become ready; the message says which and why.
	PodsNotReady = "PodsNotReady"
	// PodsNotInEndpoints means that Pods labelled for traffic are not yet in the Service's EndpointSlices.
	PodsNotInEndpoints = "PodsNotInEndpoints"
	// PreviewNotReady means that the preview Service does not have the ready Pods of the Release yet, or that there are several preview
	// Services.
	PreviewNotReady = "PreviewNotReady"
	// ForeignEndpoints means that a production Service has endpoints that belong to no Release; the message names them.
	ForeignEndpoints = "ForeignEndpoints"
	// ServiceWithoutEndpoints means that a production Service has no ready endpoints, although the Release should serve in the cluster.
	ServiceWithoutEndpoints = "ServiceWithoutEndpoints"
	// AddressAwaited means that a Service of type LoadBalancer has no address in status.loadBalancer.ingress yet, so that it counts as not
	// ready; the message names what to do where no controller gives addresses.
	AddressAwaited = "AddressAwaited"
	// AddressMissing means that a production Service of type LoadBalancer has no address, and that no step waits for it: the Application
	// served in the cluster before.
	AddressMissing = "AddressMissing"
	// DeploymentStuck means that the Deployment's own controller reports a failure.
	DeploymentStuck = "DeploymentStuck"
	// MissingDeployment means that the Release's Deployment or, by Application, one of its Deployments is not in the cluster.
	MissingDeployment = "MissingDeployment"
	// MissingService means that there is not exactly one LB Service in the cluster or, by Application, that one is missing.
	MissingService = "MissingService"

	// NotDelivered means that nothing was to be sent yet.
	NotDelivered = "NotDelivered"
	// Delivered means that the server has accepted the last message.
	Delivered = "Delivered"
	// DeliveryFailed means that messages do not arrive; the message says why.
	DeliveryFailed = "DeliveryFailed"
	// URLNotAllowed means that --outgoing-urls does not list the URL of the Notification, or that it leads to an address that Shipper does
	// not connect to.
	URLNotAllowed = "URLNotAllowed"

	// SecretMissing means that the Secret of the cluster or of the Notification does not exist.
	SecretMissing = "SecretMissing"
	// SecretForbidden means that Shipper may not read the Secret of the Notification; the message has the command that lets it.
	SecretForbidden = "SecretForbidden"
	// SecretInvalid means that the cluster's Secret does not hold usable credentials, or that the Notification's Secret has no usable URL
	// or authorities; the message says which.
	SecretInvalid = "SecretInvalid"
	// ClusterUnreachable means that the cluster's API server does not answer.
	ClusterUnreachable = "ClusterUnreachable"
	// CredentialsRefused means that the cluster's API server does not accept the credentials.
	CredentialsRefused = "CredentialsRefused"
	// CredentialsRevoked means that shipperctl revoked the cluster's token.
	CredentialsRevoked = "CredentialsRevoked"
	// CredentialsEnded means that the cluster's token or client certificate has expired.
	CredentialsEnded = "CredentialsEnded"
	// CredentialsEndSoon means that the cluster's token or client certificate expires soon, and that Shipper does not renew it.
	CredentialsEndSoon = "CredentialsEndSoon"
	// RenewalFailed means that Shipper could not renew the cluster's token.
	RenewalFailed = "RenewalFailed"
)

// FindCondition returns a copy of the condition of that type, or nil.
func FindCondition(conditions []Condition, conditionType string) *Condition {
	for i := range conditions {
		if conditions[i].Type == conditionType {
			c := conditions[i]
			return &c
		}
	}
	return nil
}

// ConditionTrue reports whether the condition of that type is present and True.
func ConditionTrue(conditions []Condition, conditionType string) bool {
	c := FindCondition(conditions, conditionType)
	return c != nil && c.Status == corev1.ConditionTrue
}

// SetCondition returns a copy of conditions with c in place, sorted by type. lastTransitionTime becomes now when the status changes
// or the condition is new, and is kept otherwise; the time in c is ignored.
func SetCondition(conditions []Condition, c Condition, now metav1.Time) []Condition {
	out := append(make([]Condition, 0, len(conditions)+1), conditions...)
	c.LastTransitionTime = now
	for i := range out {
		if out[i].Type == c.Type {
			if out[i].Status == c.Status {
				c.LastTransitionTime = out[i].LastTransitionTime
			}
			out[i] = c
			return out
		}
	}
	out = append(out, c)
	sort.SliceStable(out, func(i, j int) bool { return out[i].Type < out[j].Type })
	return out
}

// SetStrategyCondition is SetCondition for the conditions of a step. A condition that moves to another step keeps its
// lastTransitionTime unless its status changes too.
func SetStrategyCondition(
	conditions []ReleaseStrategyCondition, c ReleaseStrategyCondition, now metav1.Time,
) []ReleaseStrategyCondition {
	out := append(make([]ReleaseStrategyCondition, 0, len(conditions)+1), conditions...)
	c.LastTransitionTime = now
	for i := range out {
		if out[i].Type == c.Type {
			if out[i].Status == c.Status {
				c.LastTransitionTime = out[i].LastTransitionTime
			}
			out[i] = c
			return out
		}
	}
	out = append(out, c)
	sort.SliceStable(out, func(i, j int) bool { return out[i].Type < out[j].Type })
	return out
}
