// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import "fmt"

// AnchorName is the name of the ConfigMap that owns the objects of an InstallationTarget in an application cluster.
func AnchorName(installationTarget string) string {
	return installationTarget + "-anchor"
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

// MayNotRollOut starts the warnings about problems that may prevent a rollout, such as too few clusters.
const MayNotRollOut = "may not roll out: "
