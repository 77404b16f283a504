// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	certmanagerv1 "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// apply writes want by server-side apply: fields it names become so, fields of others stay. Nothing is written when all
// is so already. want is what is stored afterwards.
func apply(ctx context.Context, c client.Client, want *unstructured.Unstructured) (string, error) {
	before, err := current(ctx, c, want)
	if err != nil {
		return "", err
	}
	// The role of a binding cannot be changed. Shipper before 0.10 bound its accounts to cluster-admin under the same
	// name.
	replaced := before != nil && !reflect.DeepEqual(before.Object["roleRef"], want.Object["roleRef"])
	if replaced {
		if err := remove(ctx, c, before); err != nil {
			return "", err
		}
	} else if before != nil {
		rehearsed := want.DeepCopy()
		if err := applyAs(ctx, c, rehearsed, client.DryRunAll); err != nil {
			return "", err
		}
		if reflect.DeepEqual(withoutManagedFields(before), withoutManagedFields(rehearsed)) {
			want.Object = before.Object
			return unchanged, nil
		}
	}
	if replaced { // an interrupt between the two would lose the binding
		ctx = context.WithoutCancel(ctx)
	}
	if err := applyAs(ctx, c, want); err != nil {
		return "", err
	}
	if before == nil {
		return created, nil
	}
	return updated, nil
}

func applyAs(ctx context.Context, c client.Client, want *unstructured.Unstructured, options ...client.ApplyOption) error {
	return c.Apply(ctx, client.ApplyConfigurationFromUnstructured(want),
		append(options, client.FieldOwner(fieldOwner), client.ForceOwnership)...)
}

// withoutManagedFields is an object without its resource version and managed fields. Applying an unchanged object would make
// shipperctl one more owner of it, and keep fields that kubectl or Helm take out later.
func withoutManagedFields(o *unstructured.Unstructured) map[string]any {
	out := o.DeepCopy()
	out.SetResourceVersion("")
	out.SetManagedFields(nil)
	return out.Object
}

// ensure creates want unless an object of that kind and name exists, whatever its fields.
func ensure(ctx context.Context, c client.Client, want *unstructured.Unstructured) (string, error) {
	before, err := current(ctx, c, want)
	if err != nil {
		return "", err
	}
	if before != nil {
		return unchanged, nil
	}
	err = c.Create(ctx, want, client.FieldOwner(fieldOwner))
	if apierrors.IsAlreadyExists(err) {
		return unchanged, nil
	}
	return created, err
}

// current reads the object of the kind and name of want; nil if there is none.
func current(
	ctx context.Context, c client.Client, want *unstructured.Unstructured,
) (*unstructured.Unstructured, error) {
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(want.GroupVersionKind())
	err := c.Get(ctx, client.ObjectKeyFromObject(want), live)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return live, nil
}

func remove(ctx context.Context, c client.Client, live client.Object) error {
	uid, version := live.GetUID(), live.GetResourceVersion()
	err := c.Delete(ctx, live, client.Preconditions{UID: &uid, ResourceVersion: &version})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("replacing %s: %w", live.GetName(), err)
	}
	return nil
}

// NewClient returns a client for the kinds this package writes. It asks no server which kinds there are: they are
// known, and a server that has just been given a kind may not list it yet.
func NewClient(config *rest.Config) (client.WithWatch, error) {
	scheme := runtime.NewScheme()
	err := errors.Join(
		appsv1.AddToScheme(scheme),
		corev1.AddToScheme(scheme),
		authenticationv1.AddToScheme(scheme),
		rbacv1.AddToScheme(scheme),
		apiextensionsv1.AddToScheme(scheme),
		admissionregistrationv1.AddToScheme(scheme),
		certmanagerv1.AddToScheme(scheme),
		shipper.AddToScheme(scheme),
	)
	if err != nil {
		return nil, fmt.Errorf("registering kinds: %w", err)
	}
	mapper := meta.NewDefaultRESTMapper(nil)
	for _, kind := range []string{"ConfigMap", "Secret", "Service", "ServiceAccount"} {
		mapper.Add(corev1.SchemeGroupVersion.WithKind(kind), meta.RESTScopeNamespace)
	}
	for _, kind := range []string{"Role", "RoleBinding"} {
		mapper.Add(rbacv1.SchemeGroupVersion.WithKind(kind), meta.RESTScopeNamespace)
	}
	for _, kind := range []string{"ClusterRole", "ClusterRoleBinding"} {
		mapper.Add(rbacv1.SchemeGroupVersion.WithKind(kind), meta.RESTScopeRoot)
	}
	for _, kind := range []string{validating, mutating, policy, policyBinding} {
		mapper.Add(admissionregistrationv1.SchemeGroupVersion.WithKind(kind), meta.RESTScopeRoot)
	}
	for _, kind := range []string{flowSchema, "PriorityLevelConfiguration"} {
		mapper.Add(flowcontrolv1.SchemeGroupVersion.WithKind(kind), meta.RESTScopeRoot)
	}
	mapper.Add(appsv1.SchemeGroupVersion.WithKind("Deployment"), meta.RESTScopeNamespace)
	for _, kind := range []string{certmanagerv1.IssuerKind, certmanagerv1.CertificateKind} {
		mapper.Add(certmanagerv1.SchemeGroupVersion.WithKind(kind), meta.RESTScopeNamespace)
	}
	mapper.Add(authenticationv1.SchemeGroupVersion.WithKind("SelfSubjectReview"), meta.RESTScopeRoot)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Namespace"), meta.RESTScopeRoot)
	mapper.Add(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"), meta.RESTScopeRoot)
	mapper.Add(shipper.GroupVersion.WithKind("Cluster"), meta.RESTScopeRoot)
	for _, kind := range []string{"Application", "Release", "InstallationTarget", "CapacityTarget", "TrafficTarget", "RolloutBlock"} {
		mapper.Add(shipper.GroupVersion.WithKind(kind), meta.RESTScopeNamespace)
	}
	return client.NewWithWatch(config, client.Options{Scheme: scheme, Mapper: mapper})
}
