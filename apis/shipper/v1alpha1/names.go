// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// AnchorName is the name of the ConfigMap that owns the objects of an InstallationTarget in an application cluster.
func AnchorName(installationTarget string) string {
	return installationTarget + "-anchor"
}

// PlacedAnchorName is the name of the ConfigMap in shipper-system of an application cluster that lists the placed objects of an
// Application with resources. It has 128 bits of a sha256: a user cannot compute another Application with the same name.
func PlacedAnchorName(namespace, app string) string {
	sum := sha256.Sum256([]byte(namespace + "/" + app))
	return AnchorName(hex.EncodeToString(sum[:16]))
}

// ScopedAnchorName is the name of the ConfigMap in shipper-system of an application cluster that lists the objects of an
// InstallationTarget that have no namespace, by the identity of its management cluster.
func ScopedAnchorName(identity, namespace, installationTarget string) string {
	return PlacedAnchorName(identity+"/"+namespace, installationTarget)
}

// RenderingName is the name of the Secret in shipper-system of an application cluster with what the chart of an InstallationTarget has
// rendered to there, by the identity of its management cluster.
func RenderingName(identity, namespace, installationTarget string) string {
	sum := sha256.Sum256([]byte(identity + "/" + namespace + "/" + installationTarget))
	return "rendering-" + hex.EncodeToString(sum[:16])
}

// ChartSnapshotName is the name of the ChartSnapshot that describes the archive with a digest.
func ChartSnapshotName(digest string) string {
	return "sha256-" + digest
}

// ChartSnapshotPartName is the name of the ChartSnapshot with a part of that archive; parts count from 1.
func ChartSnapshotPartName(digest string, part int32) string {
	return fmt.Sprintf("%s-%d", ChartSnapshotName(digest), part)
}

// ValuesSecretName is the name of the Secret that keeps the content of a Release's valuesFrom.
func ValuesSecretName(release string) string {
	return release + "-values"
}

// MightNotRollOut starts the warnings about problems that may prevent a rollout, such as too few clusters.
const MightNotRollOut = "might not roll out: "

// Planned begins the warnings that say what a write of an Application will do.
const Planned = "plan: "

// PlannedRelease begins the warning of a dry run that names the Release to be made, MakesRelease that of a real write. The name follows.
const (
	PlannedRelease = Planned + "Release "
	MakesRelease   = "this makes Release "
)

// BlockedBy begins the message of a refusal by RolloutBlocks, of the webhook and of the ValidatingAdmissionPolicy.
const BlockedBy = "rollouts blocked by: "

// CauseRolloutBlock is the type of the causes of such a refusal of the webhook. There is one for each RolloutBlock: its field is
// namespace/name.
const CauseRolloutBlock metav1.CauseType = "RolloutBlock"

// FullReplicas is the number of Pods at full capacity that ReplicasAnnotation says; 0 where it is absent or no number.
func FullReplicas(annotations map[string]string) int32 {
	n, err := strconv.ParseInt(annotations[ReplicasAnnotation], 10, 32)
	if err != nil {
		return 0
	}
	return int32(max(n, 0))
}
