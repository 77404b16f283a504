// SPDX-License-Identifier: Apache-2.0

package ask

import (
	"context"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/webhook/resources"
)

// Work is the namespace of Applications with resources in tests.
const Work = "work"

// Placing turns an Application into one of namespace Work with resources instead of a chart, as the webhook stores it.
func Placing(selectors ...shipper.ResourceSelector) func(*shipper.Application) {
	return func(app *shipper.Application) {
		app.Namespace = Work
		app.Spec.Template.Chart, app.Spec.Template.Values = shipper.Chart{}, nil
		app.Spec.Template.Strategy = &shipper.RolloutStrategy{}
		app.Spec.Template.Resources = &shipper.Resources{Select: selectors}
	}
}

// Content sets the digest of the content of resources, of which all characters are c. Releases are made of such Applications; stored
// ones have no digest.
func Content(c string) func(*shipper.Application) {
	return func(app *shipper.Application) { app.Spec.Template.ResourcesDigest = strings.Repeat(c, 64) }
}

// SelectedBy records the user who chose the resources.
func SelectedBy(user string) func(*shipper.Application) {
	return Annotated(shipper.AppSelectedByAnnotation, `{"username":"`+user+`"}`)
}

// Kinds are those that the API server of tests serves. With an error all look-ups fail.
type Kinds struct{ Err error }

// served are the kinds by group and kind.
var served = func() map[schema.GroupKind]resources.Kind {
	out := map[schema.GroupKind]resources.Kind{}
	for _, k := range []resources.Kind{
		kind("", "v1", "ConfigMap", "configmaps", true), kind("", "v1", "Secret", "secrets", true),
		kind("", "v1", "Service", "services", true),
		kind("", "v1", "Namespace", "namespaces", false), kind("", "v1", "Pod", "pods", true),
		kind("apps", "v1", "Deployment", "deployments", true),
		kind("rbac.authorization.k8s.io", "v1", "ClusterRole", "clusterroles", false),
		kind("rbac.authorization.k8s.io", "v1", "Role", "roles", true),
		kind("rbac.authorization.k8s.io", "v1", "RoleBinding", "rolebindings", true),
		kind(shipper.GroupName, "v1alpha1", "Envelope", "envelopes", true),
	} {
		out[k.GroupKind()] = k
	}
	return out
}()

func kind(group, version, name, plural string, namespaced bool) resources.Kind {
	return resources.Kind{
		GroupVersionKind: schema.GroupVersionKind{Group: group, Version: version, Kind: name}, Resource: plural, Namespaced: namespaced,
	}
}

// Find is webhook/resources.Kinds.
func (k Kinds) Find(_ context.Context, gk schema.GroupKind, version string) (resources.Kind, error) {
	found, ok := served[gk]
	switch {
	case k.Err != nil:
		return resources.Kind{}, k.Err
	case !ok || version != "" && version != found.Version:
		return resources.Kind{}, resources.ErrNotServed
	}
	return found, nil
}

// InNamespaces is webhook/resources.Kinds.
func (k Kinds) InNamespaces(context.Context) ([]resources.Kind, error) {
	var out []resources.Kind
	for _, found := range served {
		if found.Namespaced {
			out = append(out, found)
		}
	}
	return out, k.Err
}

// Resources judges resources by the rights of w.
func (w *World) Resources() *resources.Judge {
	return &resources.Judge{Authz: w.Authz, Kinds: Kinds{}, Reconciler: Reconciler}
}
