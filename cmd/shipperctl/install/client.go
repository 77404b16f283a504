// SPDX-License-Identifier: Apache-2.0

package install

import (
	"errors"
	"fmt"

	certmanagerv1 "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// NewClient returns a client for the kinds this package writes. It asks no server which kinds there are: they are
// known, and a server that has just been given a kind may not list it yet.
func NewClient(config *rest.Config) (client.WithWatch, error) {
	scheme := runtime.NewScheme()
	err := errors.Join(
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
