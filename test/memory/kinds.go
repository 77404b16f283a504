// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"shipper.dev/shipper/manifests"
)

// Kind is one that an API server serves.
type Kind struct {
	Group, Version, Kind, Resource string
	// Cluster is true for kinds without namespaces.
	Cluster bool
	// Status is true for kinds with a status subresource.
	Status bool
	// Counted is true for kinds whose metadata.generation counts changes of spec.
	Counted bool
	// Definition defines kinds that are not built into Kubernetes. A kind that is neither built in nor defined accepts every field.
	Definition *apiextensionsv1.CustomResourceDefinition
	// Unmanaged kinds have no managedFields, and server-side apply fails: a third of what a write costs is saved.
	Unmanaged bool
}

// ID names a Kind in a Server: group/resource, with an empty group for core kinds ("/pods").
func (k Kind) ID() string { return k.Group + "/" + k.Resource }

func (k Kind) groupVersion() string { return k.gvk().GroupVersion().String() }

func (k Kind) gvk() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: k.Group, Version: k.Version, Kind: k.Kind}
}

func (k Kind) listGVK() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: k.Group, Version: k.Version, Kind: k.Kind + "List"}
}

func (k Kind) resource() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: k.Group, Version: k.Version, Resource: k.Resource}
}

// custom says whether a kind is served without a Go type.
func (k Kind) custom() bool { return !builtin.Recognizes(k.gvk()) }

func lower(s string) string { return strings.ToLower(s) }

// Custom returns the kind that a CustomResourceDefinition defines, in its first version.
func Custom(crd *apiextensionsv1.CustomResourceDefinition) Kind {
	version := crd.Spec.Versions[0]
	return Kind{
		Group: crd.Spec.Group, Version: version.Name, Kind: crd.Spec.Names.Kind, Resource: crd.Spec.Names.Plural,
		Cluster: crd.Spec.Scope == apiextensionsv1.ClusterScoped, Counted: true,
		Status:     version.Subresources != nil && version.Subresources.Status != nil,
		Definition: crd,
	}
}

// ours are the kinds that Shipper defines. They are read once, so that all servers of a process share what is compiled for them.
var ours = sync.OnceValues(func() ([]Kind, error) {
	definitions, err := manifests.Objects(manifests.CRD)
	if err != nil {
		return nil, fmt.Errorf("reading the definitions of Shipper's kinds: %w", err)
	}
	var kinds []Kind
	for _, d := range definitions {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(d.Object, crd); err != nil {
			return nil, fmt.Errorf("reading the definition %s: %w", d.GetName(), err)
		}
		kinds = append(kinds, Custom(crd))
	}
	return kinds, nil
})

// Management returns the kinds of a management cluster, with those that Shipper installs.
func Management() ([]Kind, error) {
	custom, err := ours()
	revision := Kind{Group: "apps", Version: "v1", Kind: "ControllerRevision", Resource: "controllerrevisions"}
	return slices.Concat(core(), custom, []Kind{revision}), err
}

const (
	discoveryGroup = "discovery.k8s.io"
	// eventsGroup is the group of Events, which are accepted and not stored.
	eventsGroup = "events.k8s.io"
	// accessGroup is the group of access reviews, which Options.Authorize decides.
	accessGroup = "authorization.k8s.io"
)

// Application returns the kinds of an application cluster.
func Application() []Kind {
	const (
		apps, batch, networking, rbac = "apps", "batch", "networking.k8s.io", "rbac.authorization.k8s.io"
	)
	return slices.Concat(core(), []Kind{
		{Version: "v1", Kind: "Node", Resource: "nodes", Cluster: true, Status: true},
		{Version: "v1", Kind: "PersistentVolumeClaim", Resource: "persistentvolumeclaims", Status: true},
		{Group: apps, Version: "v1", Kind: "Deployment", Resource: "deployments", Status: true, Counted: true},
		{Group: apps, Version: "v1", Kind: "ReplicaSet", Resource: "replicasets", Status: true, Counted: true},
		{Group: apps, Version: "v1", Kind: "StatefulSet", Resource: "statefulsets", Status: true, Counted: true},
		{Group: apps, Version: "v1", Kind: "DaemonSet", Resource: "daemonsets", Status: true, Counted: true},
		{Group: batch, Version: "v1", Kind: "Job", Resource: "jobs", Status: true, Counted: true},
		{Group: batch, Version: "v1", Kind: "CronJob", Resource: "cronjobs", Status: true, Counted: true},
		{Group: discoveryGroup, Version: "v1", Kind: "EndpointSlice", Resource: "endpointslices", Counted: true},
		{Group: networking, Version: "v1", Kind: "Ingress", Resource: "ingresses", Status: true, Counted: true},
		{Group: networking, Version: "v1", Kind: "NetworkPolicy", Resource: "networkpolicies", Counted: true},
		{Group: "autoscaling", Version: "v2", Kind: "HorizontalPodAutoscaler", Resource: "horizontalpodautoscalers", Status: true},
		{Group: "policy", Version: "v1", Kind: "PodDisruptionBudget", Resource: "poddisruptionbudgets", Status: true, Counted: true},
		{Group: rbac, Version: "v1", Kind: "Role", Resource: "roles"},
		{Group: rbac, Version: "v1", Kind: "RoleBinding", Resource: "rolebindings"},
		{Group: rbac, Version: "v1", Kind: "ClusterRole", Resource: "clusterroles", Cluster: true},
		{Group: rbac, Version: "v1", Kind: "ClusterRoleBinding", Resource: "clusterrolebindings", Cluster: true},
	})
}

func core() []Kind {
	return []Kind{
		{Version: "v1", Kind: "Namespace", Resource: "namespaces", Cluster: true, Status: true},
		{Version: "v1", Kind: "ConfigMap", Resource: "configmaps"},
		{Version: "v1", Kind: "Secret", Resource: "secrets"},
		{Version: "v1", Kind: "Service", Resource: "services", Status: true},
		{Version: "v1", Kind: "ServiceAccount", Resource: "serviceaccounts"},
		{Version: "v1", Kind: "Pod", Resource: "pods", Status: true, Counted: true},
		{Group: "coordination.k8s.io", Version: "v1", Kind: "Lease", Resource: "leases"},
		{Group: eventsGroup, Version: "v1", Kind: "Event", Resource: "events"},
		{Group: accessGroup, Version: "v1", Kind: "SelfSubjectAccessReview", Resource: "selfsubjectaccessreviews", Cluster: true},
		{Group: accessGroup, Version: "v1", Kind: "SubjectAccessReview", Resource: "subjectaccessreviews", Cluster: true},
	}
}
