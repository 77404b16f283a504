// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// AnchorName is the name of the ConfigMap that owns what an InstallationTarget installed in an application cluster.
func AnchorName(installationTarget string) string {
	return installationTarget + "-anchor"
}
