// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"context"
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/member/rights"
	"shipper.dev/shipper/reconciler/retry"
)

// giveBoundedRights refuses roles, and bindings of roles, with rules that no grant contains. The API server admits some of them: it lets
// the granted account give all that it has, and so the right to write what other grants name.
func giveBoundedRights(ctx context.Context, live func() client.Reader, wanted *unstructured.Unstructured) error {
	switch gvk := wanted.GroupVersionKind(); gvk.GroupKind() {
	case rbacv1.SchemeGroupVersion.WithKind("ClusterRole").GroupKind():
		return bounded(wanted, "")
	case rbacv1.SchemeGroupVersion.WithKind("ClusterRoleBinding").GroupKind():
		name, _, _ := unstructured.NestedString(wanted.Object, "roleRef", "name")
		role := fromContent(map[string]any{})
		role.SetGroupVersionKind(rbacv1.SchemeGroupVersion.WithKind("ClusterRole"))
		err := live().Get(ctx, client.ObjectKey{Name: name}, role)
		if apierrors.IsNotFound(err) { // the API server refuses such a binding, for the same reason or for lack of a grant
			return nil
		}
		if err != nil {
			return fmt.Errorf("reading the ClusterRole %q that it binds: %w", name, err)
		}
		return bounded(role, fmt.Sprintf("it binds the ClusterRole %q, whose ", name))
	}
	return nil
}

// bounded is an error with this beginning for the first rule of a ClusterRole that no grant contains.
func bounded(object *unstructured.Unstructured, beginning string) error {
	refused := func(format string, args ...any) error {
		return &problem{shipper.NotGranted, retry.Retry, beginning + fmt.Sprintf(format, args...) +
			"; no grant covers that: have an administrator of the cluster write it, and leave it out here"}
	}
	role := &rbacv1.ClusterRole{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, role); err != nil {
		return refused("content cannot be read (%s)", retry.Within(err, maxRefusal))
	}
	for i := range role.Rules {
		if why := rights.Unbounded(&role.Rules[i]); why != "" {
			return refused("rules[%d] %s", i, why)
		}
	}
	return nil
}
