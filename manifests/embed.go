// SPDX-License-Identifier: Apache-2.0

// Package manifests embeds the files that install Shipper.
package manifests

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// The folders that Objects and Object read.
const (
	CRD     = "crd"     // the kinds, generated
	RBAC    = "rbac"    // accounts and their rights
	Webhook = "webhook" // the two webhook configurations
	Deploy  = "deploy"  // namespaces, Service, Secret, PriorityClass, Deployment, PodDisruptionBudget and FlowSchemas
	Policy  = "policy"  // the policies that enforce blocks without the webhook, and limit Shipper's writes to Secrets
	Guard   = "guard"   // the policies of application clusters
	// Placement has the rights of Shipper's account in application clusters that `clusters join --placements` adds.
	Placement = "placements"
	// Grant has the right by which Shipper's account in application clusters uses what `clusters grant` grants.
	Grant = "grants"
	// CertManager has the Issuers and Certificates of cert-manager.
	CertManager = "certs/cert-manager"
)

//go:embed crd rbac webhook policy deploy guard placements grants certs
var files embed.FS

// kustomization is the name of kustomize's own files, which contain no objects.
const kustomization = "kustomization.yaml"

// Objects returns every object in the files of folder, in the order of file names and then of the text.
func Objects(folder string) ([]*unstructured.Unstructured, error) {
	entries, err := files.ReadDir(folder)
	if err != nil {
		return nil, fmt.Errorf("reading manifests: %w", err)
	}
	var objects []*unstructured.Unstructured
	for _, e := range entries {
		if e.IsDir() || e.Name() == kustomization {
			continue
		}
		more, err := decode(path.Join(folder, e.Name()))
		if err != nil {
			return nil, err
		}
		objects = append(objects, more...)
	}
	return objects, nil
}

// FlowControl returns the objects of Deploy by which API servers share out Shipper's requests.
func FlowControl() ([]*unstructured.Unstructured, error) {
	objects, err := Objects(Deploy)
	return slices.DeleteFunc(objects, func(o *unstructured.Unstructured) bool {
		return o.GroupVersionKind().Group != flowcontrolv1.GroupName
	}), err
}

// Placements are the resources that `clusters join --placements` lets Shipper write in application clusters.
func Placements() ([]schema.GroupResource, error) {
	objects, err := Objects(Placement)
	if err != nil {
		return nil, err
	}
	var out []schema.GroupResource
	for _, o := range objects {
		role := &rbacv1.ClusterRole{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, role); err != nil {
			return nil, fmt.Errorf("reading manifests/%s: %w", Placement, err)
		}
		for _, rule := range role.Rules {
			for _, group := range rule.APIGroups {
				for _, resource := range rule.Resources {
					out = append(out, schema.GroupResource{Group: group, Resource: resource})
				}
			}
		}
	}
	return out, nil
}

// Object returns the one object of kind and name in the files of folder.
func Object(folder, kind, name string) (*unstructured.Unstructured, error) {
	objects, err := Objects(folder)
	if err != nil {
		return nil, err
	}
	for _, o := range objects {
		if o.GetKind() == kind && o.GetName() == name {
			return o, nil
		}
	}
	return nil, fmt.Errorf("reading manifests: no %s named %s in %s", kind, name, folder)
}

// decode reads the objects of one file.
func decode(name string) ([]*unstructured.Unstructured, error) {
	text, err := files.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("reading manifests: %w", err)
	}
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
	var objects []*unstructured.Unstructured
	for {
		o := &unstructured.Unstructured{}
		err := decoder.Decode(&o.Object)
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, fmt.Errorf("reading manifests/%s: %w", name, err)
		}
		if len(o.Object) > 0 {
			objects = append(objects, o)
		}
	}
}
