// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/manifests"
)

// BreakGlassGroup is the group whose members the guard refuses nothing, unless another is named.
const BreakGlassGroup = "shipper:break-glass"

// The kinds the guard consists of, and the label by which they are found again.
const (
	policy        = "ValidatingAdmissionPolicy"
	policyBinding = "ValidatingAdmissionPolicyBinding"
	guardLabel    = "shipper.booking.com/guard"
)

// The parts of a policy that depend on the installation.
const (
	notShipper      = "not-shipper"     // the match condition that lets Shipper's accounts through
	breakGlassGroup = "breakGlassGroup" // the variable with the group
)

// ParseBreakGlassGroup reads the name of a group of users. A group of all users would make the guard useless.
func ParseBreakGlassGroup(name string) (string, error) {
	switch {
	case strings.TrimSpace(name) != name || name == "":
		return "", fmt.Errorf("the break-glass group is %q: it must be the name of a group of users", name)
	case name == "system:authenticated" || name == "system:unauthenticated":
		return "", fmt.Errorf("the break-glass group is %q, which holds everybody: nothing would be guarded", name)
	}
	return name, nil
}

// CanGuard returns an error if the cluster cannot have a guard. It writes nothing.
func (a *Application) CanGuard(ctx context.Context) error {
	_, err := a.guards(ctx, policy)
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("cluster %s cannot be guarded: its API server does not serve %s of %s, as Kubernetes does from 1.30 on; "+
			"join it without --guard, and limit by RBAC who may edit what Shipper installs",
			a.Name, policy, admissionregistrationv1.SchemeGroupVersion)
	}
	if err != nil {
		return fmt.Errorf("cluster %s: asking for its policies: %w", a.Name, err)
	}
	return nil
}

// Guard installs or updates the policies that let only Shipper, Kubernetes and the members of group edit Shipper's objects. The
// accounts that Shipper has in the cluster must exist.
func (a *Application) Guard(ctx context.Context, group string) error {
	a.Report.Printf("Guarding what Shipper owns in cluster %s:", a.Name)
	accounts, err := a.accounts(ctx)
	if err != nil {
		return err
	}
	wanted, err := guard(accounts, group)
	if err != nil {
		return err
	}
	for _, o := range wanted {
		err := a.Report.Step("Creating a "+o.GetKind()+" called "+o.GetName(), func() (string, error) {
			return apply(ctx, a.Client, o)
		})
		if err != nil {
			return err
		}
	}
	if _, err := a.removeGuard(ctx, wanted); err != nil {
		return err
	}
	a.Report.Printf("Finished guarding what Shipper owns in cluster %s\n", a.Name)
	return nil
}

// Unguard removes the guard.
func (a *Application) Unguard(ctx context.Context) error {
	a.Report.Printf("Removing the guard of cluster %s:", a.Name)
	removed, err := a.removeGuard(ctx, nil)
	if err != nil {
		return err
	}
	if removed == 0 {
		a.Report.Printf("There is none")
	}
	a.Report.Printf("Finished removing the guard of cluster %s\n", a.Name)
	return nil
}

// KeepGuard leaves the guard as it is, and prints a note if it would refuse this account.
func (a *Application) KeepGuard(ctx context.Context) error {
	policies, err := a.guards(ctx, policy)
	if err != nil {
		return client.IgnoreNotFound(err) // a cluster that serves no policies has no guard
	}
	me := serviceaccount.MakeUsername(a.Namespace, a.ServiceAccount)
	for _, p := range policies {
		expression, err := field(&p, "matchConditions", notShipper)
		if err != nil {
			return err
		}
		if !strings.Contains(fmt.Sprint(expression["expression"]), quote(me)) {
			a.Report.Printf("Note: the guard of cluster %s does not know the account %s and refuses what it does; "+
				"run this again with --guard\n", a.Name, me)
			return nil
		}
	}
	return nil
}

// accounts are the names of all accounts that Shipper has in the cluster: those with its rights, which join has just
// given.
func (a *Application) accounts(ctx context.Context) ([]string, error) {
	binding := &rbacv1.ClusterRoleBinding{}
	const name = "shipper:" + shipper.RBACApplication + "-cluster"
	if err := a.Client.Get(ctx, client.ObjectKey{Name: name}, binding); err != nil {
		return nil, fmt.Errorf("reading Shipper's accounts from ClusterRoleBinding %s: %w", name, err)
	}
	var out []string
	for _, s := range binding.Subjects {
		if s.Kind == rbacv1.ServiceAccountKind {
			out = append(out, serviceaccount.MakeUsername(s.Namespace, s.Name))
		}
	}
	return out, nil
}

// guards are the objects of one kind that are part of a guard in the cluster.
func (a *Application) guards(ctx context.Context, kind string) ([]unstructured.Unstructured, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(admissionregistrationv1.SchemeGroupVersion.WithKind(kind + "List"))
	if err := a.Client.List(ctx, list, client.HasLabels{guardLabel}); err != nil {
		return nil, err
	}
	return list.Items, nil
}

// removeGuard removes the guard's objects that are not among keep, and returns how many. Bindings go first: a policy without one does
// nothing.
func (a *Application) removeGuard(ctx context.Context, keep []*unstructured.Unstructured) (removed int, err error) {
	for _, kind := range []string{policyBinding, policy} {
		live, err := a.guards(ctx, kind)
		if apierrors.IsNotFound(err) {
			return 0, nil // a cluster that serves no policies has no guard
		}
		if err != nil {
			return 0, fmt.Errorf("listing the guard: %w", err)
		}
		for _, o := range live {
			if slices.ContainsFunc(keep, func(k *unstructured.Unstructured) bool {
				return k.GetKind() == kind && k.GetName() == o.GetName()
			}) {
				continue
			}
			err := a.Report.Step("Removing the "+kind+" called "+o.GetName(), func() (string, error) {
				return created, client.IgnoreNotFound(a.Client.Delete(ctx, &o))
			})
			if err != nil {
				return removed, err
			}
			removed++
		}
	}
	return removed, nil
}

// guard returns the policies and then their bindings, for the accounts of Shipper and the break-glass group.
func guard(accounts []string, group string) ([]*unstructured.Unstructured, error) {
	all, err := manifests.Objects(manifests.Guard)
	if err != nil {
		return nil, err
	}
	quoted := make([]string, 0, len(accounts))
	for _, account := range accounts {
		quoted = append(quoted, quote(account))
	}
	var policies, bindings []*unstructured.Unstructured
	for _, o := range all {
		if o.GetKind() == policyBinding {
			bindings = append(bindings, o)
			continue
		}
		condition, err := field(o, "matchConditions", notShipper)
		variable, err2 := field(o, "variables", breakGlassGroup)
		if err := errors.Join(err, err2); err != nil {
			return nil, err
		}
		condition["expression"] = "!(request.userInfo.username in [" + strings.Join(quoted, ", ") + "])"
		variable["expression"] = quote(group)
		policies = append(policies, o)
	}
	return append(policies, bindings...), nil
}

// field finds an entry of a list in a policy's spec by its name. It is the policy's own, not a copy.
func field(p *unstructured.Unstructured, list, name string) (map[string]any, error) {
	spec, _ := p.Object["spec"].(map[string]any)
	entries, _ := spec[list].([]any)
	for _, e := range entries {
		if entry, is := e.(map[string]any); is && entry["name"] == name {
			return entry, nil
		}
	}
	return nil, fmt.Errorf("%s %s has nothing called %s among its %s", p.GetKind(), p.GetName(), name, list)
}

// quote writes a string as CEL has it: JSON's way is one of its.
func quote(s string) string {
	text, _ := json.Marshal(s) // a string can always be written
	return string(text)
}
