// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import "fmt"

// BindCommand is the command by which the owner of a namespace lets Shipper do there what a ClusterRole allows.
func BindCommand(role, namespace string) string {
	return fmt.Sprintf("kubectl create rolebinding %s -n %s --clusterrole=%s --serviceaccount=%s:%s", role, namespace, role, SystemNamespace,
		ManagementServiceAccount)
}

// The ClusterRoles with which runs write: the first is bound to the ServiceAccount of a Shipyard where its Applications are, the second to
// Shipper where that account is.
const (
	RunnerRole             = "shipper:runner"
	RunnerImpersonatorRole = "shipper-runner-impersonator"
)

// RunnerBinding is the name of the RoleBinding by which a ServiceAccount of another namespace gets RunnerRole.
func RunnerBinding(namespace, account string) string { return namespace + "-" + account }

// BindRunnerCommand is the command by which the owner of namespace in lets the runs of a Shipyard write Applications there.
func BindRunnerCommand(namespace, account, in string) string {
	return fmt.Sprintf("kubectl create rolebinding %s --clusterrole=%s --serviceaccount=%s:%s -n %s", RunnerBinding(namespace, account),
		RunnerRole, namespace, account, in)
}

// BindEverywhereCommand is the command by which an administrator lets Shipper do in all namespaces, and with objects that have none, what a
// ClusterRole allows.
func BindEverywhereCommand(role string) string {
	return fmt.Sprintf("kubectl create clusterrolebinding %s --clusterrole=%s --serviceaccount=%s:%s", role, role, SystemNamespace,
		ManagementServiceAccount)
}
