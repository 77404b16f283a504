// SPDX-License-Identifier: Apache-2.0

// Package memory serves Kubernetes APIs from memory, any number in one process. They speak what Shipper
// speaks to API servers, by HTTP/2 and TLS: discovery, reading, lists, watches, patches, server-side apply, status and finalizers;
// and play those controllers without which nothing would be rolled out: Deployments get Pods that become ready, Services get
// EndpointSlices, and what a deleted object owned is collected. There is no admission, no validation, no account and no disk.
package memory

import (
	"fmt"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"shipper.dev/shipper/manifests"
)

// Kind is one that an API server serves.
type Kind struct {
	Group, Version, Kind, Resource string
	// Cluster is true of kinds without namespaces.
	Cluster bool
	// Status is true of kinds whose status is written apart.
	Status bool
	// Counted is true of kinds whose changes of spec are counted in metadata.generation.
	Counted bool
}

func (k Kind) groupVersion() string {
	if k.Group == "" {
		return k.Version
	}
	return k.Group + "/" + k.Version
}

// ID names a Kind in a Server: group/resource, with an empty group for core kinds ("/pods").
func (k Kind) ID() string { return k.Group + "/" + k.Resource }

const discovery = "discovery.k8s.io"

// Management are the kinds of a management cluster, with those that Shipper installs.
func Management() ([]Kind, error) {
	definitions, err := manifests.Objects(manifests.CRD)
	if err != nil {
		return nil, fmt.Errorf("reading the definitions of Shipper's kinds: %w", err)
	}
	kinds := append(core(), Kind{
		Group: reviews, Version: "v1", Kind: "SelfSubjectAccessReview", Resource: "selfsubjectaccessreviews", Cluster: true,
	})
	for _, d := range definitions {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(d.Object, crd); err != nil {
			return nil, fmt.Errorf("reading the definition %s: %w", d.GetName(), err)
		}
		version := crd.Spec.Versions[0]
		kinds = append(kinds, Kind{
			Group: crd.Spec.Group, Version: version.Name, Kind: crd.Spec.Names.Kind, Resource: crd.Spec.Names.Plural,
			Cluster: crd.Spec.Scope == apiextensionsv1.ClusterScoped, Counted: true,
			Status: version.Subresources != nil && version.Subresources.Status != nil,
		})
	}
	return kinds, nil
}

// Application are the kinds of an application cluster.
func Application() []Kind {
	return slices.Concat(core(), []Kind{
		{Version: "v1", Kind: "Node", Resource: "nodes", Cluster: true, Status: true},
		{Group: "apps", Version: "v1", Kind: "Deployment", Resource: "deployments", Status: true, Counted: true},
		{Group: discovery, Version: "v1", Kind: "EndpointSlice", Resource: "endpointslices", Counted: true},
	})
}

func core() []Kind {
	return []Kind{
		{Version: "v1", Kind: "Namespace", Resource: "namespaces", Cluster: true, Status: true},
		{Version: "v1", Kind: "ConfigMap", Resource: "configmaps"},
		{Version: "v1", Kind: "Secret", Resource: "secrets"},
		{Version: "v1", Kind: "Service", Resource: "services", Status: true},
		{Version: "v1", Kind: "ServiceAccount", Resource: "serviceaccounts"},
		{Version: "v1", Kind: "Pod", Resource: "pods", Status: true},
		{Group: "coordination.k8s.io", Version: "v1", Kind: "Lease", Resource: "leases"},
		{Group: events, Version: "v1", Kind: "Event", Resource: "events"},
	}
}

const (
	// events is the group of those, which are taken and not kept.
	events = "events.k8s.io"
	// reviews is the group of questions for rights: everybody has all of them.
	reviews = "authorization.k8s.io"
)
