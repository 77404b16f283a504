// SPDX-License-Identifier: Apache-2.0

// Package memory has API servers that keep everything in memory, as many in one process as it has room for. They speak what Shipper
// speaks to API servers, by HTTP/2 and TLS: discovery, reading, lists, watches, patches, server-side apply, status and finalizers;
// and play those controllers without which nothing would be rolled out: Deployments get Pods that become ready, Services get
// EndpointSlices, and what a deleted object owned is collected. There is no admission, no validation, no account and no disk.
package memory

import "slices"

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

func (k Kind) id() string { return k.Group + "/" + k.Resource }

const (
	own       = "shipper.booking.com"
	discovery = "discovery.k8s.io"
)

// Management are the kinds of a management cluster.
func Management() []Kind {
	kinds := []Kind{
		{Group: own, Version: "v1alpha1", Kind: "ChartSnapshot", Resource: "chartsnapshots", Counted: true},
		{Group: own, Version: "v1alpha1", Kind: "Cluster", Resource: "clusters", Cluster: true, Status: true, Counted: true},
	}
	for kind, resource := range map[string]string{
		"Application": "applications", "Release": "releases", "RolloutBlock": "rolloutblocks", "InstallationTarget": "installationtargets",
		"CapacityTarget": "capacitytargets", "TrafficTarget": "traffictargets", "Notification": "notifications",
	} {
		kinds = append(kinds, Kind{Group: own, Version: "v1alpha1", Kind: kind, Resource: resource, Status: true, Counted: true})
	}
	return slices.Concat(kinds, core())
}

// Application are the kinds of an application cluster.
func Application() []Kind {
	return slices.Concat(core(), []Kind{
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

// events is the group of those, which are taken and not kept.
const events = "events.k8s.io"
