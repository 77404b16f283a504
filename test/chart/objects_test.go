// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"shipper.dev/shipper/certs/reviewpath"
)

// installed are the kinds of which Shipper's installation has objects; those of which shipperctl makes none come last.
var installed = []schema.GroupVersionKind{
	{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"},
	{Version: "v1", Kind: "Namespace"},
	{Version: "v1", Kind: "ServiceAccount"},
	{Version: "v1", Kind: "Service"},
	{Version: "v1", Kind: "Secret"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRoleBinding"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "Role"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "RoleBinding"},
	{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "ValidatingWebhookConfiguration"},
	{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "MutatingWebhookConfiguration"},
	{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "ValidatingAdmissionPolicy"},
	{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "ValidatingAdmissionPolicyBinding"},
	{Group: "apps", Version: "v1", Kind: "Deployment"},
	{Group: "policy", Version: "v1", Kind: "PodDisruptionBudget"},
	{Group: "scheduling.k8s.io", Version: "v1", Kind: "PriorityClass"},
	{Group: "flowcontrol.apiserver.k8s.io", Version: "v1", Kind: "FlowSchema"},
	{Group: "flowcontrol.apiserver.k8s.io", Version: "v1", Kind: "PriorityLevelConfiguration"},
}

// ownKinds is how many of the kinds shipperctl knows.
const ownKinds = 13

// each calls do for every object of Shipper's installation of these kinds.
func (i *installation) each(kinds []schema.GroupVersionKind, do func(key string, o *unstructured.Unstructured)) {
	i.Helper()
	for _, gvk := range kinds {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(gvk)
		if err := i.admin.List(i.Context(), list); err != nil {
			i.Fatal(err)
		}
		for n := range list.Items {
			o := &list.Items[n]
			ours := strings.Contains(o.GetName(), "shipper") || o.GetName() == globalBlocks
			if ours && !strings.HasPrefix(o.GetName(), "sh.helm.release.") {
				do(o.GetKind()+" "+o.GetName(), o)
			}
		}
	}
}

// all is what the installation says, by kind and name, without what API servers, Helm and others write.
func (i *installation) all() map[string]any {
	i.Helper()
	out := map[string]any{}
	i.each(installed, func(key string, o *unstructured.Unstructured) {
		labels, annotations := o.GetLabels(), o.GetAnnotations()
		delete(labels, "app.kubernetes.io/managed-by")
		delete(labels, "kubernetes.io/metadata.name")
		for name := range annotations {
			if strings.Contains(name, "helm.sh/") || strings.Contains(name, "kubernetes.io/") {
				delete(annotations, name)
			}
		}
		for _, foreign := range []string{"clusterIP", "clusterIPs"} {
			unstructured.RemoveNestedField(o.Object, "spec", foreign)
		}
		unstructured.RemoveNestedField(o.Object, "spec", "template", "metadata", "creationTimestamp")
		webhooks, _ := o.Object["webhooks"].([]any)
		for _, w := range webhooks {
			unstructured.RemoveNestedField(w.(map[string]any), "clientConfig", "caBundle")
			unstructured.RemoveNestedField(w.(map[string]any), "clientConfig", "service", "path")
		}
		content := map[string]any{"labels": labels, "annotations": annotations}
		for field, value := range o.Object {
			if field != "metadata" && field != "status" && (field != "data" || o.GetKind() != "Secret") {
				content[field] = value
			}
		}
		out[key] = content
	})
	return out
}

// writesNothing fails when something of what shipperctl knows is written.
func (i *installation) writesNothing(doing string, do func()) {
	i.Helper()
	versions := func() map[string]string {
		out := map[string]string{}
		i.each(installed[:ownKinds], func(key string, o *unstructured.Unstructured) {
			out[key] = o.GetResourceVersion()
			if o.GetKind() == "ValidatingAdmissionPolicy" { // Kubernetes writes the status of these at any time
				out[key] = fmt.Sprint("generation ", o.GetGeneration())
			}
		})
		return out
	}
	before := versions()
	do()
	if diff := cmp.Diff(before, versions()); diff != "" {
		i.Errorf("%s has written:\n%s", doing, diff)
	}
}

// eachWebhook calls do for every webhook of both configurations.
func (i *installation) eachWebhook(do func(configuration *unstructured.Unstructured, webhook map[string]any)) {
	i.Helper()
	i.each(installed, func(_ string, o *unstructured.Unstructured) {
		webhooks, _ := o.Object["webhooks"].([]any)
		for _, w := range webhooks {
			do(o, w.(map[string]any))
		}
	})
}

// is fails unless every webhook has that failurePolicy, but for those that always ignore failures, and those that never do.
func (i *installation) is(failurePolicy string) {
	i.Helper()
	i.eachWebhook(func(_ *unstructured.Unstructured, webhook map[string]any) {
		name := webhook["name"].(string)
		lenient := strings.HasPrefix(name, "collected.") || strings.HasPrefix(name, "namespace.")
		want := failurePolicy
		if strings.HasPrefix(name, "envelope.") || strings.HasPrefix(name, "resourcesnapshot.") {
			want = "Fail"
		}
		if !lenient && webhook["failurePolicy"] != want {
			i.Errorf("the failurePolicy of %s is %v, want %s", name, webhook["failurePolicy"], want)
		}
	})
}

// certificate is what the webhook, or cert-manager, has put into its Secret.
const certificate = "a certificate"

// token is the secret segment that the webhook has put into the paths.
const token = "abcdefghijklmnopqrstuvwxyz"

// othersWrite writes the certificate, the CA bundle and the paths, as the webhook does.
func (i *installation) othersWrite() {
	i.Helper()
	bundle := base64.StdEncoding.EncodeToString(management.Config.CAData)
	changed := map[string]*unstructured.Unstructured{}
	i.eachWebhook(func(configuration *unstructured.Unstructured, webhook map[string]any) {
		path := reviewpath.With(reviewpath.HookOf(webhook["name"].(string)), token)
		err := errors.Join(unstructured.SetNestedField(webhook, bundle, "clientConfig", "caBundle"),
			unstructured.SetNestedField(webhook, path, "clientConfig", "service", "path"))
		if err != nil {
			i.Fatal(err)
		}
		changed[configuration.GetKind()] = configuration
	})
	secret := i.secret()
	secret.Object["data"] = map[string]any{"tls.crt": base64.StdEncoding.EncodeToString([]byte(certificate))}
	changed["Secret"] = secret
	for _, o := range changed {
		if err := i.admin.Update(i.Context(), o, client.FieldOwner("shipper-webhook")); err != nil {
			i.Fatal(err)
		}
	}
}

func (i *installation) secret() *unstructured.Unstructured {
	i.Helper()
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "Secret"})
	if err := i.admin.Get(i.Context(), client.ObjectKey{Namespace: system, Name: "shipper-webhook-cert"}, o); err != nil {
		i.Fatal(err)
	}
	return o
}

// keptByOthers fails when what othersWrite has written is gone.
func (i *installation) keptByOthers() {
	i.Helper()
	bundle := base64.StdEncoding.EncodeToString(management.Config.CAData)
	i.eachWebhook(func(_ *unstructured.Unstructured, webhook map[string]any) {
		if got, _, _ := unstructured.NestedString(webhook, "clientConfig", "caBundle"); got != bundle {
			i.Errorf("the CA bundle of %v is %q", webhook["name"], got)
		}
		path, _, _ := unstructured.NestedString(webhook, "clientConfig", "service", "path")
		if want := reviewpath.With(reviewpath.HookOf(webhook["name"].(string)), token); path != want {
			i.Errorf("the path of %v is %q, want %q", webhook["name"], path, want)
		}
	})
	want := map[string]any{"tls.crt": base64.StdEncoding.EncodeToString([]byte(certificate))}
	if diff := cmp.Diff(want, i.secret().Object["data"]); diff != "" {
		i.Errorf("the certificate (-want +got):\n%s", fmt.Sprint(diff))
	}
}
