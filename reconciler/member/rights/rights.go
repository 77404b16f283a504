// SPDX-License-Identifier: Apache-2.0

// Package rights words what Shipper's account in an application cluster may not do there, and how an administrator lets it.
package rights

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// aggregate is the label of ClusterRoles whose rules Shipper's account in their cluster gets.
const aggregate = shipper.AggregateLabel

// Shared is why an administrator thinks before giving a right.
const Shared = "every chart and Envelope of every tenant that may write Applications can do what Shipper's account may"

// granting are the groups whose objects give rights, or change every request to the cluster.
var granting = []string{rbacv1.GroupName, "admissionregistration.k8s.io"}

// Denied reports whether an API server refused a request because the account lacks a right. Admission refuses with the same code, in
// other words.
func Denied(err error) bool {
	return apierrors.IsForbidden(err) &&
		(strings.Contains(err.Error(), " cannot ") && strings.Contains(err.Error(), " resource ") || Escalates(err))
}

// Escalates reports whether an API server refused a Role or ClusterRole because it gives rights that the account lacks.
func Escalates(err error) bool {
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "is attempting to grant RBAC permissions not currently held")
}

// ResourceOf is the resource that a refused request was about; empty if the API server does not say it.
func ResourceOf(err error) schema.GroupResource {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil {
		return schema.GroupResource{}
	}
	return schema.GroupResource{Group: status.Status().Details.Group, Resource: status.Status().Details.Kind}
}

// Grants reports whether objects of a resource give rights, or change every request to a cluster.
func Grants(of schema.GroupResource) bool { return slices.Contains(granting, of.Group) }

// Command is how to give Shipper's account in a cluster the rights to resources.
func Command(cluster string, of ...schema.GroupResource) string {
	return fmt.Sprintf("in cluster %s: %s", cluster, Grant(of...))
}

// Grant are the commands that give Shipper's account in the cluster of kubectl the rights to resources.
func Grant(of ...schema.GroupResource) string {
	role, resources := "shipper", make([]string, len(of))
	for i, one := range of {
		role, resources[i] = role+"-"+one.Resource, one.String()
	}
	return fmt.Sprintf("kubectl create clusterrole %s --verb=get,list,watch,create,patch,delete --resource=%s && "+
		"kubectl label clusterrole %s %s=true", role, strings.Join(resources, ","), role, aggregate)
}

// ByName is the command that grants objects by their GrantNames in a cluster; in all clusters of the file if that is empty. Where roles or
// bindings are among them, FILE contains the ClusterRoles whose rules they may give.
func ByName(cluster string, roles bool, names ...string) string {
	command := "shipperctl clusters grant " + strings.Join(names, " ")
	if cluster != "" {
		command += " --clusters " + cluster
	}
	if command += " --reason WHY"; roles {
		command += " --rules FILE"
	}
	return command
}

// GivesRights reports whether objects of a resource are roles or bindings.
func GivesRights(of schema.GroupResource) bool { return of.Group == rbacv1.GroupName }

// GrantName names an object without a namespace as `shipperctl clusters grant` takes it: clusterroles.rbac.authorization.k8s.io/monitoring.
func GrantName(of schema.GroupResource, name string) string { return of.String() + "/" + name }
