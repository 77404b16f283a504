// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Namespaces and accounts that shipperctl creates by default.
const (
	// SystemNamespace is where Shipper and the Secrets of clusters live.
	SystemNamespace = "shipper-system"
	// GlobalBlocksNamespace is the default namespace whose RolloutBlocks stop rollouts in every namespace.
	GlobalBlocksNamespace = "rollout-blocks-global"
	// NamespaceReader is the ClusterRole that allows to read the Secrets and ConfigMaps of a namespace. The namespace's owner binds it
	// to Shipper's account when Applications there name Secrets or ConfigMaps.
	NamespaceReader = "shipper-namespace-reader"
	// ValuesKeeper is the ClusterRole that allows to read the Secrets and ConfigMaps of a namespace, and to create Secrets with copies
	// of them. The namespace's owner binds it to Shipper's account when Applications there have valuesFrom, or resources with Secrets.
	ValuesKeeper = "shipper-values-keeper"
	// ResourceSelectorRole is the ClusterRole that allows to read objects of all kinds. Administrators bind it to Shipper's account, in all
	// namespaces or in some, when Applications have resources.
	ResourceSelectorRole = "shipper-selector"
	// ManagementServiceAccount is the account Shipper runs as in the management cluster.
	ManagementServiceAccount = "shipper-mgmt-cluster"
	// ApplicationServiceAccount is the account Shipper uses in application clusters.
	ApplicationServiceAccount = "shipper-app-cluster"
	// GrantedServiceAccount is the account to which administrators of application clusters grant objects without a namespace, by name. It has
	// no token: Shipper's account impersonates it for Applications with resources, whose authors need the verb place.
	GrantedServiceAccount = "shipper-granted"
)

// FieldOwner is the name under which Shipper owns fields by server-side apply.
const FieldOwner = "shipper"

// Labels. Those of Shipper win over labels of a chart, which win over labels of a user's Application.
const (
	// AppLabel names the Application an object belongs to: on Releases, targets and everything installed, Pods included.
	AppLabel = "shipper-app"
	// ReleaseLabel names the Release an object belongs to, on the same objects.
	ReleaseLabel = "shipper-release"
	// ReleaseHashLabel is the hash of the Release's environment, as in its name.
	ReleaseHashLabel = "shipper-release-hash"
	// OwnedByLabel names the InstallationTarget that last wrote an installed object.
	OwnedByLabel = "shipper-owned-by"
	// TrafficStatusLabel on a Pod is TrafficEnabled or TrafficDisabled; absent means disabled.
	TrafficStatusLabel = "shipper-traffic-status"
	// LBLabel with value LBForProduction marks the Service that traffic is shifted on; with LBForPreview the Service, if the chart has one,
	// that selects the contender before it has traffic.
	LBLabel = "shipper-lb"
	// ProofLabel marks the shadow Service: a short-lived copy of the production Service, without clients. Its EndpointSlices show the
	// Pods of a selector before the production Service gets that selector. The value is the production Service's UID.
	ProofLabel = "shipper-proof"
	// WorkloadLabel is the name that the chart gave a Deployment, on its Pods and in its selector, where objects are named by Application:
	// it distinguishes the Pods of one Release's Deployments.
	WorkloadLabel = "shipper.booking.com/workload"
	// HelmWorkaroundLabel set to "true" on an Application strips the key `release` from the LB Service's selector.
	HelmWorkaroundLabel = "enable-helm-release-workaround"
	// HelmReleaseSelector is the selector key that binds a Service to one Helm release.
	HelmReleaseSelector = "release"
	// RBACDomainLabel marks the accounts and bindings that shipperctl creates. The value is RBACManagement or RBACApplication, by the
	// kind of cluster they are for.
	RBACDomainLabel = "shipper-rbac-domain"

	// NoRelease in place of a Release's name in the selector of the preview Service selects no Pods. No Release has that name.
	NoRelease = "none"

	TrafficEnabled  = "enabled"
	TrafficDisabled = "disabled"
	LBForProduction = "production"
	LBForPreview    = "preview"
	RBACManagement  = "management"
	RBACApplication = "application"

	// LotInPlace is the value of LotAnnotation.
	LotInPlace = "in-place"
	// LabelsOfChart is the value of ReleaseLabelPrecedenceAnnotation.
	LabelsOfChart = "chart"
)

// Annotations of Applications.
const (
	// AppHighestObservedGenerationAnnotation is the highest generation, decimal, of all Releases ever created for the Application.
	// When the newest Release has a lower one, the contender was deleted: an abort. Written by the reconciler.
	AppHighestObservedGenerationAnnotation = "shipper.booking.com/app.highestObservedGeneration"
	// AppObservedTemplateAnnotation is the hash of the environment of the Release with that generation. When that Release is deleted
	// and the template has another hash, a user has edited the template since: an abort keeps the edit. Written by the reconciler.
	AppObservedTemplateAnnotation = "shipper.booking.com/app.observedTemplate"
	// AppChartNameAnnotation is the name that the chart had when its version was last resolved. Written by the webhook.
	AppChartNameAnnotation = "shipper.booking.com/app.chart.name"
	// AppChartRepoAnnotation is the repository that the chart had when its version was last resolved. Written by the webhook.
	AppChartRepoAnnotation = "shipper.booking.com/app.chart.repo-url"
	// AppChartVersionResolvedAnnotation is the version the constraint was resolved to. Written by the webhook.
	AppChartVersionResolvedAnnotation = "shipper.booking.com/app.chart.version.resolved"
	// AppChartVersionRawAnnotation is the constraint as the user wrote it. Written by the webhook.
	AppChartVersionRawAnnotation = "shipper.booking.com/app.chart.version.raw"
	// AppChartVersionRefreshAnnotation is set by users. A new value makes the webhook resolve the constraint again.
	AppChartVersionRefreshAnnotation = "shipper.booking.com/app.chart.version.refresh"
	// AppValuesRefreshAnnotation is set by users. A new value makes the webhook read the objects in valuesFrom again.
	AppValuesRefreshAnnotation = "shipper.booking.com/app.values.refresh"
	// AppResourcesRefreshAnnotation is set by users. A new value makes the reconciler take the content of resources again.
	AppResourcesRefreshAnnotation = "shipper.booking.com/app.resources.refresh"
	// AppStrategyRefreshAnnotation is set by users. A new value makes the webhook take the Strategy that strategy.from names again.
	AppStrategyRefreshAnnotation = "shipper.booking.com/app.strategy.refresh"
	// AppSelectedByAnnotation is the Selector, as JSON, whose rights the content of resources is taken with: the user that last edited spec,
	// requested the content again or rolled back. Written by the webhook.
	AppSelectedByAnnotation = "shipper.booking.com/app.selected-by"
	// AppRolledBackToAnnotation names the Release whose environment spec.rollbackTo put into the template. While it is there, the same
	// rollback is not done again. The next edit of the template removes it, and so does the reconciler when the content of resources is
	// taken again. Written by the webhook.
	AppRolledBackToAnnotation = "shipper.booking.com/app.rolled-back-to"
	// AppRollbackStrategyAnnotation is the strategy of that rollback. Absent: Steps. Written by the webhook.
	AppRollbackStrategyAnnotation = "shipper.booking.com/app.rollback-strategy"
	// AppChartDigestAnnotation is the digest of the resolved version in the repository's index; empty when the index has none.
	// Written by the webhook, copied to the Release.
	AppChartDigestAnnotation = "shipper.booking.com/app.chart.digest"
	// AppFailedAnnotation is the FailedEnvironment, as JSON, of the Release that failed last and was aborted. The same template is refused
	// until another has completed. Written by the reconciler.
	AppFailedAnnotation = "shipper.booking.com/app.failed"
	// AppFailedRetryAnnotation is set by users. A new value admits the template that failed.
	AppFailedRetryAnnotation = "shipper.booking.com/app.failed.retry"
	// AppRequestedByAnnotation names the user whose edit of the template was last admitted. Written by the webhook.
	AppRequestedByAnnotation = "shipper.booking.com/app.requested-by"
	// OverrideRequestedByAnnotation names the user who last wrote the spec of a ResourceOverride. Written by the webhook, copied to Releases.
	OverrideRequestedByAnnotation = "shipper.booking.com/override.requested-by"
	// OverrideEarlierWritersAnnotation names the other users who have written the spec of a ResourceOverride since it was created, one in a
	// line. Absent: there are none. Written by the webhook, copied to Releases.
	OverrideEarlierWritersAnnotation = "shipper.booking.com/override.earlier-writers"
	// AppRunAnnotation is the RunClaim of the SequenceRun that wrote the template, as JSON. The ServiceAccount of the run writes it with the
	// template while task deployment of the run is under way. The webhook removes it when another user changes the template.
	AppRunAnnotation = "shipper.booking.com/app.run"
	// AppDeleteSkipHooksAnnotation is set to "true" by users. The Application is then deleted without the pre-delete and post-delete hooks
	// of its chart.
	AppDeleteSkipHooksAnnotation = "shipper.booking.com/app.delete.skip-hooks"
	// ContentRightsAnnotation lists the rights that the content of resources needs besides those of its selectors, because an Envelope holds
	// objects of other namespaces or of none: `resource.group/name`, comma-separated; the verb is place. A Release has those of its content,
	// an Application those of all Releases that place. `none`: no such rights; `*.*/`, the right to place everything: more than 12, or
	// unknown. Absent: no Envelope is placed, or the reconciler has not looked yet since an upgrade. Written by the reconciler.
	ContentRightsAnnotation = "shipper.booking.com/content.rights"
)

// NotificationTestAnnotation is set by users of a Notification. A new value makes the reconciler send a test message, once.
const NotificationTestAnnotation = "shipper.booking.com/notification.test"

// Annotations of Releases and their targets.
const (
	// ReleaseGenerationAnnotation orders the Releases of an Application: decimal, from 0.
	ReleaseGenerationAnnotation = "shipper.booking.com/release.generation"
	// ReleaseTemplateIterationAnnotation counts Releases with the same environment: decimal, from 0.
	ReleaseTemplateIterationAnnotation = "shipper.booking.com/release.template.iteration"
	// WorkloadsAnnotation on a CapacityTarget lists the workloads of a Release whose objects are named by Application, as JSON: kind, name,
	// inPlace and replicas (its number of Pods at full capacity) of each, as the chart gives them in the first of its clusters by name.
	// Written when the target is created, for `shipperctl rollout status`.
	WorkloadsAnnotation = "shipper.booking.com/workloads"
	// ReleaseClustersAnnotation lists the chosen clusters: sorted, unique, comma-separated. Once it is set, the reconciler does not
	// choose clusters again.
	ReleaseClustersAnnotation = "shipper.booking.com/release.clusters"
	// ReleaseWavesAnnotation says in which wave of the strategy each chosen cluster is, as CLUSTER=INDEX: sorted, comma-separated. A cluster
	// keeps its wave. Written by the reconciler with ReleaseClustersAnnotation.
	ReleaseWavesAnnotation = "shipper.booking.com/release.waves"
	// ReleaseRollbackOfAnnotation names the earlier Release whose environment this one has, when a rollback made it.
	ReleaseRollbackOfAnnotation = "shipper.booking.com/release.rollback-of"
	// ReleaseHooksRetryAnnotation is set by users. A new value makes the reconciler run the Release's failed hooks again.
	ReleaseHooksRetryAnnotation = "shipper.booking.com/release.hooks.retry"
	// ReleaseTestAnnotation is set by users. A new value makes the reconciler run the chart's tests once in each cluster of the Release.
	ReleaseTestAnnotation = "shipper.booking.com/release.test"
	// ReleaseChecksRetryAnnotation is set by users. A new value makes the reconciler make the checks of the requested step again.
	ReleaseChecksRetryAnnotation = "shipper.booking.com/release.checks.retry"
	// ReleaseLabelPrecedenceAnnotation with value LabelsOfChart, on a Release and its InstallationTarget: where the chart and the Application
	// set a label to different values, that of the chart is installed. Absent, as on Releases of the original and of earlier versions: that
	// of the Application. Written when the Release is created.
	ReleaseLabelPrecedenceAnnotation = "shipper.booking.com/release.label-precedence"
	// ReleaseChartDigestAnnotation is the sha256 (hex) that the chart's archive must have. Empty or absent: not known.
	ReleaseChartDigestAnnotation = "shipper.booking.com/release.chart.digest"
	// ReleaseChartSignatureAnnotation is the ChartSignature, as JSON, of the archive that the Release is pinned to. The reconciler
	// writes it once, before it installs anything, when chart.verify demands a signature.
	ReleaseChartSignatureAnnotation = "shipper.booking.com/release.chart.signature"
	// ReleaseReturnedAnnotation is a targetStep, decimal, after wave 0 with targetWave and a slash before it. An abort sets it on a Release that becomes the newest again before it has
	// achieved that step. Written by the reconciler.
	ReleaseReturnedAnnotation = "shipper.booking.com/release.returned-to-step"
	// ReleaseMovedAnnotation is the last change of targetStep, a ReleaseMove as JSON. Written by the webhook. The reconciler sends its
	// reason in it.
	ReleaseMovedAnnotation = "shipper.booking.com/release.moved"
	// ReleaseHeldByAnnotation names the user who last set or changed spec.hold. Written by the webhook.
	ReleaseHeldByAnnotation = "shipper.booking.com/release.held-by"
	// ReleaseRequestedByAnnotation names the user whose edit made this Release.
	ReleaseRequestedByAnnotation = "shipper.booking.com/release.requested-by"
	// ReleaseRunAnnotation is the RunClaim of the SequenceRun that the Release was made for, as JSON. Copied from the Application.
	ReleaseRunAnnotation = "shipper.booking.com/release.run"
	// RolloutBlockOverrideAnnotation on an Application or Release lists the blocks it overrides: `namespace/name`, comma-separated.
	RolloutBlockOverrideAnnotation = "shipper.booking.com/rollout-block.override"
	// RolloutBlockOverrideReasonAnnotation is the reason for the overrides. A block may require it.
	RolloutBlockOverrideReasonAnnotation = "shipper.booking.com/rollout-block.override-reason"
	// RolloutBlockOverrideStampAnnotation records the overrides as JSON: the user, the block, the time and the reason. Written by the
	// webhook.
	RolloutBlockOverrideStampAnnotation = "shipper.booking.com/rollout-block.override-stamp"
)

// Annotations of RolloutBlocks.
const (
	// RolloutBlockCreatedByAnnotation names the user who created the block; spec.author may name another. Written by the webhook.
	RolloutBlockCreatedByAnnotation = "shipper.booking.com/rollout-block.created-by"
)

// Labels that every Cluster counts as having when a placement selects it, besides its own.
const (
	// RegionLabel is the region of the cluster.
	RegionLabel = "shipper.booking.com/region"
	// ClusterLabel is its name.
	ClusterLabel = "shipper.booking.com/cluster"
	// CapabilityLabelPrefix with a capability of the cluster is a label with an empty value.
	CapabilityLabelPrefix = "capability.shipper.booking.com/"
)

// PropertiesLabel with value "true" marks a ConfigMap in shipper-system of an application cluster whose data are properties of the
// cluster.
const PropertiesLabel = "shipper.booking.com/properties"

// ClusterFinalizer keeps a deleted Cluster with onLeave: Remove until everything that Shipper placed there is removed.
const ClusterFinalizer = "shipper.booking.com/cluster"

// Labels of ChartSnapshots.
const (
	// ChartPartsLabel is the number of parts of an archive. It is on the ChartSnapshot that describes the archive, not on its parts.
	ChartPartsLabel = "shipper.booking.com/chart-parts"
)

// Marks of a user's Secret with credentials for a chart repository. Shipper uses such a Secret only if it has both.
const (
	// RepositoryCredentialsLabel with value "true" marks a Secret with credentials for a chart repository.
	RepositoryCredentialsLabel = "shipper.booking.com/repository-credentials"
	// RepositoryURLAnnotation is a URL. Shipper sends the credentials only to it and to URLs below it.
	RepositoryURLAnnotation = "shipper.booking.com/repository-url"
)

// Annotations and data keys in application clusters and on Secrets.
const (
	// InstalledDigestAnnotation on an installed object is the digest of the manifest it was written from. While the digest of the
	// rendered manifest is the same, Shipper does not write the object again.
	InstalledDigestAnnotation = "shipper.booking.com/installed-digest"
	// LotAnnotation with value LotInPlace is on workloads that exist once and change at their step, where objects are named by Application.
	LotAnnotation = "shipper.booking.com/lot"
	// KeptPortsAnnotation on a Service is KeptPorts, as JSON: the ports that it has for an incumbent. Only where objects are named by
	// Application.
	KeptPortsAnnotation = "shipper.booking.com/kept-ports"
	// BaseAnnotation on a StatefulSet in place names the Release whose Pods stay below the partition, where that is the newer one: on the way
	// back after it had all Pods.
	BaseAnnotation = "shipper.booking.com/base"
	// ReplicasAnnotation on a Deployment or StatefulSet is its number of Pods at full capacity, where objects are named by Application.
	ReplicasAnnotation = "shipper.booking.com/replicas"
	// HookTimeoutAnnotation on a hook of a chart is its timeout, a duration up to 24h. Absent: 5m.
	HookTimeoutAnnotation = "shipper.booking.com/hook-timeout"
	// AwaitAddressAnnotation with value "false" on a Service of type LoadBalancer: it counts as ready without an address, for clusters where
	// no controller gives one.
	AwaitAddressAnnotation = "shipper.booking.com/await-address"
	// HookRunAnnotation on the object of a hook identifies the run that it was created for.
	HookRunAnnotation = "shipper.booking.com/hook-run"
	// SecretSkipTLSVerifyAnnotation set to "true" on a cluster's Secret skips verification of that API server's certificate.
	SecretSkipTLSVerifyAnnotation = "shipper.booking.com/cluster-secret.insecure-tls-skip-verify"
	// SecretRenewAnnotation on a cluster's Secret allows Shipper to renew its token. The value is the lifetime of the next token, 10m at
	// least. The token must come from a TokenRequest and be bound to a Secret. Absent: Shipper never writes the Secret. Written by
	// shipperctl.
	SecretRenewAnnotation = "shipper.booking.com/cluster-secret.renew"
	// SecretRevokedAnnotation on a cluster's Secret is the time when its token was revoked and removed. Written by shipperctl.
	SecretRevokedAnnotation = "shipper.booking.com/cluster-secret.revoked"
	// AnchorTargetUIDKey is the anchor ConfigMap's data key for the UID of its InstallationTarget.
	AnchorTargetUIDKey = "InstallationTargetUID"
	// AnchorIdentityKey is its data key for the identity of the management cluster that wrote it. Absent: the original
	// Shipper wrote it.
	AnchorIdentityKey = "ManagementCluster"
)

// Identity of a management cluster.
const (
	// IdentityName is the ConfigMap in Shipper's namespace with the identity of this management cluster, by which application clusters
	// distinguish management clusters that share them. The reconciler creates it when it is missing.
	IdentityName = "shipper-identity"
	// IdentityKey is its data key for the id, a DNS subdomain: a random UUID unless an administrator wrote another.
	IdentityKey = "id"
)

// Annotations of placed objects.
const (
	// PlacedOwnerAnnotation on a placed object, and on the anchor that lists it, names its Application: namespace/name.
	PlacedOwnerAnnotation = "shipper.booking.com/owner"
	// LastAppliedAnnotation on an object that apply.type ClientSide has written is the manifest that it was written from, as JSON.
	LastAppliedAnnotation = "shipper.booking.com/last-applied"
)

// ValuesSecretType is the type of the Secrets that keep the content of a Release's valuesFrom. They are immutable. Shipper creates
// Secrets of no other types than this and ResourcesSecretType in the namespaces of its users.
const ValuesSecretType = "shipper.booking.com/values"

// RolloutFinalizer keeps a deleted Application or Release until no RolloutBlock stops the deletion. It also keeps a Release until
// other Releases serve in its place. The reconciler removes it after all other finalizers.
const RolloutFinalizer = "shipper.booking.com/rollout"

// ConfirmDeletionAnnotation allows users to delete a Release that serves and is not the newest; without it the webhook refuses. The
// value is the Release's name, so that an annotation copied to another Release allows nothing. It holds until it is removed.
const ConfirmDeletionAnnotation = "shipper.booking.com/confirm-deletion"

// DeleteHooksAnnotation on an InstallationTarget names the clusters, separated by commas, where the deletion of the Application runs the
// pre-delete hooks of its chart now, and the post-delete hooks after the removal. Written by the reconciler.
const DeleteHooksAnnotation = "shipper.booking.com/delete-hooks"

// DeleteHooksHeld begins the value of DeleteHooksAnnotation while a RolloutBlock holds the deletion: no hook is run or tried again then.
const DeleteHooksHeld = "held:"

// InstallationFinalizer keeps an InstallationTarget until its objects are gone from every cluster.
const InstallationFinalizer = "shipper.booking.com/installation"

// AnchorFinalizer keeps an anchor, the ConfigMap that owns the objects of an InstallationTarget in an application cluster, until Shipper
// has given them another owner: the garbage collector would delete them with it.
const AnchorFinalizer = "shipper.booking.com/anchor"

// Labels of SequenceRuns, and of the Approvals of one.
const (
	// ShipyardLabel is the name of the Shipyard of a run.
	ShipyardLabel = "shipper.booking.com/shipyard"
	// StageLabel is the stage of a run.
	StageLabel = "shipper.booking.com/stage"
	// SequenceLabel is the sequence of a run.
	SequenceLabel = "shipper.booking.com/sequence"
	// ServiceLabel is the service of a run.
	ServiceLabel = "shipper.booking.com/service"
	// TriggeredByLabel is the name of the run that a run follows from. Shipper alone writes it.
	TriggeredByLabel = "shipper.booking.com/triggered-by"
	// RunLabel is the name of the run that an Approval is of.
	RunLabel = "shipper.booking.com/run"
)

// Names that runs write with.
const (
	// DefaultRunner is the ServiceAccount with whose rights runs write, unless a Shipyard names another.
	DefaultRunner = "shipper-runner"
	// RunFieldManager is the field manager of what runs write into Applications.
	RunFieldManager = "shipper-shipyard"
)

// KeptPorts is what changes in the ports of a Service when no other Release has traffic or Pods any more. A port is its number and
// protocol, as in 53/UDP.
type KeptPorts struct {
	// Drop are the ports that the chart of the newest Release does not have.
	Drop []string `json:"drop"`
	// Unname are the ports that its chart gives no name. They have one while there are several ports, since Kubernetes requires that.
	Unname []string `json:"unname,omitempty"`
}

// RunClaim is what AppRunAnnotation and ReleaseRunAnnotation have: which SequenceRun a template and its Release are of.
type RunClaim struct {
	// Namespace and Run name the SequenceRun.
	Namespace string `json:"namespace"`
	Run       string `json:"run"`
	// UID is that of the SequenceRun.
	UID string `json:"uid"`
	// EventID is that of the task that wrote it.
	EventID string `json:"eventID,omitempty"`
	// Hold says that the Release is made with spec.hold: a task release of the run takes it away.
	Hold bool `json:"hold,omitempty"`
	// Requesters are the users who asked for the run, and for those that it repeats. They do not approve the steps of the Release.
	Requesters []string `json:"requesters,omitempty"`
}

// Labels and annotations of ClusterRoles in application clusters.
const (
	// AggregateLabel with value "true" on a ClusterRole gives its rules to Shipper's account in that cluster.
	AggregateLabel = ReservedPrefix + "aggregate-to-application"
	// GrantLabel is on the roles and bindings that `shipperctl clusters grant` writes.
	GrantLabel = ReservedPrefix + "grant"
	// GrantedByAnnotation names the administrator who granted, GrantedAtAnnotation the time, in RFC 3339, and GrantReasonAnnotation the
	// reason.
	GrantedByAnnotation   = ReservedPrefix + "granted-by"
	GrantedAtAnnotation   = ReservedPrefix + "granted-at"
	GrantReasonAnnotation = ReservedPrefix + "grant-reason"
)
