// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import "fmt"

// BindCommand is the command by which the owner of a namespace lets Shipper do there what a ClusterRole allows.
func BindCommand(role, namespace string) string {
	return fmt.Sprintf("kubectl create rolebinding %s -n %s --clusterrole=%s --serviceaccount=%s:%s", role, namespace, role, SystemNamespace,
		ManagementServiceAccount)
}

// BindEverywhereCommand is the command by which an administrator lets Shipper do in all namespaces, and with objects that have none, what a
// ClusterRole allows.
func BindEverywhereCommand(role string) string {
	return fmt.Sprintf("kubectl create clusterrolebinding %s --clusterrole=%s --serviceaccount=%s:%s", role, role, SystemNamespace,
		ManagementServiceAccount)
}
