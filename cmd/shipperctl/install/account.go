// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/manifests"
)

// account is who Shipper is in a cluster, with what it may do there.
type account struct {
	client          client.Client
	report          *Report
	domain          string // shipper.RBACManagement or shipper.RBACApplication
	namespace, name string
	// globalBlocks is the namespace of global RolloutBlocks; empty in application clusters.
	globalBlocks string
}

// serviceAccount makes the account.
func (a account) serviceAccount(ctx context.Context) error {
	return a.report.Step("Creating a service account called "+a.name, func() (string, error) {
		objects, err := a.objects()
		if err != nil {
			return "", err
		}
		for _, o := range objects {
			if o.GetKind() == "ServiceAccount" {
				how, err := ensure(ctx, a.client, o)
				return string(how), err
			}
		}
		return "", fmt.Errorf("the manifests have no account for %s clusters", a.domain)
	})
}

// rules makes the roles and binds them to the account. They are updated when they differ: an upgrade may need more, and
// should keep no more than it needs.
func (a account) rules(ctx context.Context) error {
	objects, err := a.objects()
	if err != nil {
		return err
	}
	for _, o := range objects {
		if o.GetKind() == "ServiceAccount" {
			continue
		}
		err := a.report.Step("Creating a "+o.GetKind()+" called "+o.GetName(), func() (string, error) {
			if err := errors.Join(a.keepOthers(ctx, o), a.keepRenewing(ctx, o)); err != nil {
				return "", err
			}
			write := apply
			if isBinding(o) && !bindsAccount(o) {
				write = ensure // the operator decides the subjects of user roles
			}
			how, err := write(ctx, a.client, o)
			return string(how), err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func isBinding(o *unstructured.Unstructured) bool { return o.Object["roleRef"] != nil }

// bindsAccount reports whether a binding is for service accounts, and not for people.
func bindsAccount(binding *unstructured.Unstructured) bool {
	subjects, _, err := unstructured.NestedSlice(binding.Object, "subjects")
	return err == nil && slices.ContainsFunc(subjects, func(s any) bool {
		fields, is := s.(map[string]any)
		return is && fields["kind"] == "ServiceAccount"
	})
}

// keepOthers adds to a binding in an application cluster the accounts it has already: those of other management
// clusters that the cluster is joined to under other names. A management cluster has one Shipper, and one account.
func (a account) keepOthers(ctx context.Context, binding *unstructured.Unstructured) error {
	mine, isBinding := binding.Object["subjects"].([]any)
	if !isBinding || a.domain != shipper.RBACApplication {
		return nil
	}
	live, err := current(ctx, a.client, binding)
	if err != nil || live == nil {
		return err
	}
	subjects, _, err := unstructured.NestedSlice(live.Object, "subjects")
	if err != nil {
		return err
	}
	for _, s := range mine {
		if !slices.ContainsFunc(subjects, func(other any) bool { return reflect.DeepEqual(s, other) }) {
			subjects = append(subjects, s)
		}
	}
	binding.Object["subjects"] = subjects
	return nil
}

// objects returns the account, roles and bindings of the domain, in this account's namespace and for its name.
func (a account) objects() ([]*unstructured.Unstructured, error) {
	all, err := manifests.Objects(manifests.RBAC)
	if err != nil {
		return nil, err
	}
	var mine []*unstructured.Unstructured
	for _, o := range all {
		if o.GetLabels()[shipper.RBACDomainLabel] != a.domain {
			continue
		}
		switch o.GetNamespace() {
		case "":
		case shipper.GlobalBlocksNamespace:
			o.SetNamespace(a.globalBlocks)
		default:
			o.SetNamespace(a.namespace)
		}
		if o.GetKind() == "ServiceAccount" {
			o.SetName(a.name)
		}
		if isBinding(o) && bindsAccount(o) {
			o.Object["subjects"] = []any{
				map[string]any{"kind": "ServiceAccount", "name": a.name, "namespace": a.namespace},
			}
		}
		if err := a.renewsItself(o); err != nil {
			return nil, err
		}
		mine = append(mine, o)
	}
	return mine, nil
}

// renewsItself puts the account's name for the one of the manifests where a Role names whose tokens may be renewed.
func (a account) renewsItself(role *unstructured.Unstructured) error {
	return eachRenewal(role, func(names []string) []string {
		for i := range names {
			if names[i] == shipper.ApplicationServiceAccount {
				names[i] = a.name
			}
		}
		return names
	})
}

// keepRenewing adds to a Role the accounts that may renew their tokens by it already, as keepOthers does for bindings.
func (a account) keepRenewing(ctx context.Context, role *unstructured.Unstructured) error {
	if role.GetKind() != "Role" || a.domain != shipper.RBACApplication {
		return nil
	}
	live, err := current(ctx, a.client, role)
	if err != nil || live == nil {
		return err
	}
	var others []string
	if err := eachRenewal(live, func(names []string) []string { others = names; return names }); err != nil {
		return err
	}
	return eachRenewal(role, func(names []string) []string {
		for _, name := range names {
			if !slices.Contains(others, name) {
				others = append(others, name)
			}
		}
		return others
	})
}

// eachRenewal gives a Role other names of accounts whose tokens may be asked for.
func eachRenewal(role *unstructured.Unstructured, change func(names []string) []string) error {
	if role.GetKind() != "Role" {
		return nil
	}
	rules, _, err := unstructured.NestedSlice(role.Object, "rules")
	if err != nil {
		return err
	}
	for _, rule := range rules {
		fields, is := rule.(map[string]any)
		if !is {
			continue
		}
		resources, _, err := unstructured.NestedStringSlice(fields, "resources")
		if err != nil || !slices.Contains(resources, "serviceaccounts/token") {
			continue
		}
		names, _, err := unstructured.NestedStringSlice(fields, "resourceNames")
		if err != nil {
			return err
		}
		if err := unstructured.SetNestedStringSlice(fields, change(names), "resourceNames"); err != nil {
			return err
		}
	}
	if len(rules) == 0 {
		return nil
	}
	return unstructured.SetNestedSlice(role.Object, rules, "rules")
}
