// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Namespaces and accounts that shipperctl creates unless told otherwise.
const (
	// SystemNamespace is where Shipper and the Secrets of clusters live.
	SystemNamespace = "shipper-system"
	// GlobalBlocksNamespace is the default namespace whose RolloutBlocks stop rollouts in every namespace.
	GlobalBlocksNamespace = "rollout-blocks-global"
	// NamespaceReader is the ClusterRole that lets who is bound to it in a namespace read the Secrets and ConfigMaps there. Whose the
	// namespace is binds it to Shipper's account when Applications there name some.
	NamespaceReader = "shipper-namespace-reader"
	// ValuesKeeper is the ClusterRole that lets who is bound to it in a namespace read the Secrets and ConfigMaps there, and keep what
	// they held in Secrets of its own. Whose the namespace is binds it to Shipper's account when Applications there have valuesFrom.
	ValuesKeeper = "shipper-values-keeper"
	// ManagementServiceAccount is the account Shipper runs as in the management cluster.
	ManagementServiceAccount = "shipper-mgmt-cluster"
	// ApplicationServiceAccount is the account Shipper uses in application clusters.
	ApplicationServiceAccount = "shipper-app-cluster"
)

// FieldOwner is the name under which Shipper owns fields by server-side apply.
const FieldOwner = "shipper"

// Labels. Those of Shipper win over labels copied from a user's Application.
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
	// LBLabel with value LBForProduction marks the Service that traffic is shifted on.
	LBLabel = "shipper-lb"
	// ProofLabel marks the Service, there for moments and used by nobody, that shows what the one traffic is shifted on may select.
	// It is the UID of that.
	ProofLabel = "shipper-proof"
	// HelmWorkaroundLabel set to "true" on an Application strips the key `release` from the LB Service's selector.
	HelmWorkaroundLabel = "enable-helm-release-workaround"
	// HelmReleaseSelector is the selector key that binds a Service to one Helm release.
	HelmReleaseSelector = "release"
	// RBACDomainLabel tells the accounts and bindings shipperctl makes apart: RBACManagement or RBACApplication.
	RBACDomainLabel = "shipper-rbac-domain"

	TrafficEnabled  = "enabled"
	TrafficDisabled = "disabled"
	LBForProduction = "production"
	RBACManagement  = "management"
	RBACApplication = "application"
)

// Annotations of Applications.
const (
	// AppHighestObservedGenerationAnnotation is the decimal generation of the newest Release ever materialised.
	// A newest Release below it means that the contender was deleted: an abort. Written by the reconciler.
	AppHighestObservedGenerationAnnotation = "shipper.booking.com/app.highestObservedGeneration"
	// AppObservedTemplateAnnotation is the hash of the environment of the newest Release ever materialised. When that
	// Release was deleted, a template of another hash was edited since, and is not taken back. Written by the reconciler.
	AppObservedTemplateAnnotation = "shipper.booking.com/app.observedTemplate"
	// AppChartNameAnnotation is the chart's name when its version was last resolved. Written by the webhook.
	AppChartNameAnnotation = "shipper.booking.com/app.chart.name"
	// AppChartRepoAnnotation is the chart's repository when its version was last resolved. Written by the webhook.
	AppChartRepoAnnotation = "shipper.booking.com/app.chart.repo-url"
	// AppChartVersionResolvedAnnotation is the version the constraint was resolved to. Written by the webhook.
	AppChartVersionResolvedAnnotation = "shipper.booking.com/app.chart.version.resolved"
	// AppChartVersionRawAnnotation is the constraint as the user wrote it. Written by the webhook.
	AppChartVersionRawAnnotation = "shipper.booking.com/app.chart.version.raw"
	// AppChartVersionRefreshAnnotation set by a user to a new value makes the webhook resolve the constraint anew.
	AppChartVersionRefreshAnnotation = "shipper.booking.com/app.chart.version.refresh"
	// AppValuesRefreshAnnotation set by a user to a new value makes the webhook read what valuesFrom names anew.
	AppValuesRefreshAnnotation = "shipper.booking.com/app.values.refresh"
	// AppRolledBackToAnnotation names the Release whose environment the template was given by spec.rollbackTo. Gone with the
	// next edit of the template; until then the same is not rolled back to again. Written by the webhook.
	AppRolledBackToAnnotation = "shipper.booking.com/app.rolled-back-to"
	// AppRollbackStrategyAnnotation beside it says how, when that is not Steps. Written by the webhook.
	AppRollbackStrategyAnnotation = "shipper.booking.com/app.rollback-strategy"
	// AppChartDigestAnnotation is the digest the index gave for the resolved version; empty when the index has none.
	// Written by the webhook, copied to the Release.
	AppChartDigestAnnotation = "shipper.booking.com/app.chart.digest"
	// AppRequestedByAnnotation names the user whose edit of spec was last admitted. Written by the webhook.
	AppRequestedByAnnotation = "shipper.booking.com/app.requested-by"
)

// Annotations of Releases and their targets.
const (
	// ReleaseGenerationAnnotation orders the Releases of an Application: decimal, from 0.
	ReleaseGenerationAnnotation = "shipper.booking.com/release.generation"
	// ReleaseTemplateIterationAnnotation counts Releases with the same environment: decimal, from 0.
	ReleaseTemplateIterationAnnotation = "shipper.booking.com/release.template.iteration"
	// ReleaseClustersAnnotation lists the chosen clusters: sorted, unique, comma-separated. It is the decision itself:
	// once set, clusters are not chosen again.
	ReleaseClustersAnnotation = "shipper.booking.com/release.clusters"
	// ReleaseRollbackOfAnnotation names the Release whose environment this one was given by a rollback.
	ReleaseRollbackOfAnnotation = "shipper.booking.com/release.rollback-of"
	// ReleaseHooksRetryAnnotation set by a user to a new value has hooks of the Release that failed run again.
	ReleaseHooksRetryAnnotation = "shipper.booking.com/release.hooks.retry"
	// ReleaseTestAnnotation set to a new value has the Release's tests run, once, in each of its clusters.
	ReleaseTestAnnotation = "shipper.booking.com/release.test"
	// ReleaseChartDigestAnnotation is the sha256 (hex) the chart's archive must have. Empty or absent: not known.
	ReleaseChartDigestAnnotation = "shipper.booking.com/release.chart.digest"
	// ReleaseChartSignatureAnnotation says, as JSON, who signed the archive that the Release is pinned to. Written by the reconciler,
	// once, where chart.verify demands a signature; nothing is installed before. See ChartSignature.
	ReleaseChartSignatureAnnotation = "shipper.booking.com/release.chart.signature"
	// ReleaseReturnedAnnotation is the targetStep, decimal, that a Release had when an abort brought it back before it had
	// achieved that step. Written by the reconciler.
	ReleaseReturnedAnnotation = "shipper.booking.com/release.returned-to-step"
	// ReleaseRequestedByAnnotation names the user whose edit made this Release.
	ReleaseRequestedByAnnotation = "shipper.booking.com/release.requested-by"
	// RolloutBlockOverrideAnnotation on an Application or Release lists blocks it overrides: `namespace/name`, comma-separated.
	RolloutBlockOverrideAnnotation = "shipper.booking.com/rollout-block.override"
	// RolloutBlockOverrideReasonAnnotation beside it says why. A block may require it.
	RolloutBlockOverrideReasonAnnotation = "shipper.booking.com/rollout-block.override-reason"
	// RolloutBlockOverrideStampAnnotation beside it says, as JSON, who overrode which block, when and why. Written by the
	// webhook.
	RolloutBlockOverrideStampAnnotation = "shipper.booking.com/rollout-block.override-stamp"
)

// Annotations of RolloutBlocks.
const (
	// RolloutBlockCreatedByAnnotation names the user who created the block, whatever its author says. Written by the webhook.
	RolloutBlockCreatedByAnnotation = "shipper.booking.com/rollout-block.created-by"
)

// Labels of ChartSnapshots.
const (
	// ChartPartsLabel on the ChartSnapshot that says what an archive is: how many parts it is in. Parts have none.
	ChartPartsLabel = "shipper.booking.com/chart-parts"
)

// What marks a Secret of a user as credentials for chart repositories. Without both, Shipper does not use it for any.
const (
	// RepositoryCredentialsLabel set to "true" says that the Secret is for chart repositories.
	RepositoryCredentialsLabel = "shipper.booking.com/repository-credentials"
	// RepositoryURLAnnotation is the URL that its credentials may be sent to, with everything below it.
	RepositoryURLAnnotation = "shipper.booking.com/repository-url"
)

// Annotations and data keys in application clusters and on Secrets.
const (
	// InstalledDigestAnnotation on an installed object is the digest of the manifest it was written from, so that
	// what is already so is not written again.
	InstalledDigestAnnotation = "shipper.booking.com/installed-digest"
	// HookTimeoutAnnotation on a hook of a chart is how long it may take, as a duration up to 24h. Absent: 5m.
	HookTimeoutAnnotation = "shipper.booking.com/hook-timeout"
	// HookRunAnnotation on the object of a hook tells for which run it was made.
	HookRunAnnotation = "shipper.booking.com/hook-run"
	// SecretSkipTLSVerifyAnnotation set to "true" on a cluster's Secret skips verification of that API server's certificate.
	SecretSkipTLSVerifyAnnotation = "shipper.booking.com/cluster-secret.insecure-tls-skip-verify"
	// SecretRenewAnnotation on a cluster's Secret lets Shipper renew the token in it, and is how long the next one is to live: a
	// duration, 10m at least. The token must be one that the cluster gave an account by TokenRequest, bound to a Secret. Absent:
	// Shipper never writes the Secret. Written by shipperctl.
	SecretRenewAnnotation = "shipper.booking.com/cluster-secret.renew"
	// SecretRevokedAnnotation on a cluster's Secret is when its token was revoked, and taken out. Written by shipperctl.
	SecretRevokedAnnotation = "shipper.booking.com/cluster-secret.revoked"
	// AnchorTargetUIDKey is the anchor ConfigMap's data key for the UID of its InstallationTarget.
	AnchorTargetUIDKey = "InstallationTargetUID"
	// AnchorIdentityKey is its data key for the identity of the management cluster that wrote it. Absent: an earlier version
	// or the original did.
	AnchorIdentityKey = "ManagementCluster"
)

// Identity of a management cluster.
const (
	// IdentityName is the ConfigMap in Shipper's namespace that tells this management cluster from others that share an
	// application cluster. The reconciler makes it when there is none.
	IdentityName = "shipper-identity"
	// IdentityKey is its data key for the id, a DNS subdomain: a random UUID, or what an administrator wrote.
	IdentityKey = "id"
)

// ValuesSecretType is the type of Secrets that keep what valuesFrom of a Release held. Shipper makes Secrets of no other type in
// the namespaces of its users, and these cannot be changed.
const ValuesSecretType = "shipper.booking.com/values"

// RolloutFinalizer keeps an Application and each of its Releases after they were deleted: until no RolloutBlock holds the deletion
// and, of a Release, until others serve in its place. The reconciler removes it, last of all finalizers.
const RolloutFinalizer = "shipper.booking.com/rollout"

// ConfirmDeletionAnnotation of a Release allows users to delete it although it serves and is not the newest. Its value is the
// Release's name, so that a copied annotation confirms nothing. It holds until it is removed. Absent: such a deletion is
// refused.
const ConfirmDeletionAnnotation = "shipper.booking.com/confirm-deletion"

// InstallationFinalizer keeps an InstallationTarget until what it installed is gone from every cluster.
const InstallationFinalizer = "shipper.booking.com/installation"
