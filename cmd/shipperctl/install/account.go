// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/manifests"
)

// account is Shipper's ServiceAccount in a cluster, with its roles.
type account struct {
	client          client.Client
	report          *Report
	domain          string // shipper.RBACManagement or shipper.RBACApplication
	namespace, name string
	// globalBlocks is the namespace of global RolloutBlocks; empty in application clusters.
	globalBlocks string
}

// write makes the account, the roles and their bindings. Roles are updated when they differ: an upgrade may need more, and should
// keep no more than it needs.
func (a account) write(ctx context.Context) error {
	objects, err := a.objects()
	if err != nil {
		return err
	}
	for _, o := range objects {
		title, write := "Creating a "+o.GetKind()+" called "+o.GetName(), apply
		switch {
		case o.GetKind() == "ServiceAccount":
			title, write = "Creating a service account called "+a.name, ensure
		case isBinding(o) && !bindsAccount(o):
			write = ensure // the operator decides the subjects of user roles
		}
		err := a.report.Step(title, func() (string, error) {
			if err := a.keepOthers(ctx, o); err != nil {
				return "", err
			}
			return write(ctx, a.client, o)
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

// keepOthers adds to a binding, and to a Role that lets accounts renew their tokens, in an application cluster the accounts that they
// have already: those of other management clusters. A management cluster has one Shipper, and one account.
func (a account) keepOthers(ctx context.Context, o *unstructured.Unstructured) error {
	if a.domain != shipper.RBACApplication || o.GetKind() != "Role" && !isBinding(o) {
		return nil
	}
	live, err := current(ctx, a.client, o)
	if err != nil || live == nil {
		return err
	}
	if o.GetKind() == "Role" {
		var others []string
		if err := eachRenewal(live, func(names []string) []string { others = names; return names }); err != nil {
			return err
		}
		return eachRenewal(o, func(names []string) []string { return union(others, names) })
	}
	return addSubjects(o, live)
}

// keepSubjects adds to a binding the subjects that it has in the cluster. Those of another role are left out: nobody has given them this
// one.
func keepSubjects(ctx context.Context, c client.Client, binding *unstructured.Unstructured) error {
	live, err := current(ctx, c, binding)
	if err != nil || live == nil || !reflect.DeepEqual(live.Object["roleRef"], binding.Object["roleRef"]) {
		return err
	}
	return addSubjects(binding, live)
}

// addSubjects adds the subjects of a live binding to another.
func addSubjects(binding, live *unstructured.Unstructured) error {
	subjects, _, err := unstructured.NestedSlice(live.Object, "subjects")
	mine, is := binding.Object["subjects"].([]any)
	if err == nil && is {
		binding.Object["subjects"] = union(subjects, mine)
	}
	return err
}

// union appends the elements of more that all lacks.
func union[T any](all, more []T) []T {
	for _, one := range more {
		if !slices.ContainsFunc(all, func(other T) bool { return reflect.DeepEqual(one, other) }) {
			all = append(all, one)
		}
	}
	return all
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
			mine = slices.Insert(mine, 0, o)
			continue
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

// renewsItself replaces the account's usual name in the Role that allows it to renew its tokens.
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
