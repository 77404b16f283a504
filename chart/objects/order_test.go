// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestObjectsAreAppliedAfterWhatTheyNeedAndRemovedBefore(t *testing.T) {
	inOrder := []unstructured.Unstructured{
		named("v1", "Namespace", "", "other"), named("v1", "Namespace", "", "work"),
		named("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "widgets.example.com"),
		named("scheduling.k8s.io/v1", "PriorityClass", "", "high"),
		named("v1", "ServiceAccount", "work", "web"), named("v1", "Secret", "work", "web"),
		named("v1", "ConfigMap", "other", "b"), named("v1", "ConfigMap", "work", "a"),
		named("rbac.authorization.k8s.io/v1", "Role", "work", "web"), named("v1", "Service", "work", "web"),
		named("apps/v1", "Deployment", "work", "web"), named("apps/v1", "StatefulSet", "work", "db"),
		named("example.com/v1", "Namespace", "work", "no-namespace-of-kubernetes"), named("example.com/v1", "Widget", "work", "a"),
		named("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "", "guard"),
	}
	// A custom resource of the kind Namespace has the rank that Helm gives to the name.
	custom := inOrder[12]
	inOrder = slices.Delete(inOrder, 12, 13)
	inOrder = slices.Insert(inOrder, 4, custom)
	reversed := slices.Clone(inOrder)
	slices.Reverse(reversed)
	random := rand.New(rand.NewPCG(1, 2))
	for range 20 {
		got := slices.Clone(inOrder)
		random.Shuffle(len(got), func(i, j int) { got[i], got[j] = got[j], got[i] })
		SortForApply(got)
		if diff := cmp.Diff(keys(inOrder), keys(got)); diff != "" {
			t.Fatal(diff)
		}
		random.Shuffle(len(got), func(i, j int) { got[i], got[j] = got[j], got[i] })
		removed := keys(got)
		slices.SortFunc(removed, CompareForRemoval)
		if diff := cmp.Diff(keys(reversed), removed); diff != "" {
			t.Fatal(diff)
		}
	}
}

func keys(objects []unstructured.Unstructured) []Key {
	out := make([]Key, len(objects))
	for i := range objects {
		out[i] = KeyOf(&objects[i])
	}
	return out
}

func TestSummariseCountsByKind(t *testing.T) {
	of := func(apiVersion, kind string, n int) []unstructured.Unstructured {
		return slices.Repeat([]unstructured.Unstructured{named(apiVersion, kind, "work", "a")}, n)
	}
	var many []unstructured.Unstructured
	for _, kind := range []string{"A", "B", "C", "D", "E", "F", "G", "H", "I", "J", "K", "L"} {
		many = append(many, of("example.com/v1", kind, 1)...)
	}
	for want, objects := range map[string][]unstructured.Unstructured{
		"0 objects":              nil,
		"1 object: 1 Deployment": of("apps/v1", "Deployment", 1),
		"14 objects: 1 Namespace, 9 ConfigMaps, 4 Deployments": slices.Concat(
			of("apps/v1", "Deployment", 4), of("v1", "Namespace", 1), of("v1", "ConfigMap", 9)),
		"8 objects: 2 NetworkPolicies, 2 StorageClasses, 2 Ingresses, 2 Gateways": slices.Concat(
			of("gateway.networking.k8s.io/v1", "Gateway", 2), of("networking.k8s.io/v1", "NetworkPolicy", 2),
			of("networking.k8s.io/v1", "Ingress", 2), of("storage.k8s.io/v1", "StorageClass", 2)),
		"3 objects: 1 Service, 2 Services.serving.knative.dev": slices.Concat(
			of("v1", "Service", 1), of("serving.knative.dev/v1", "Service", 2)),
		"2 objects: 2 Deployments": slices.Concat(of("apps/v1", "Deployment", 1), of("apps/v1beta1", "Deployment", 1)),
		"12 objects: 1 A, 1 B, 1 C, 1 D, 1 E, 1 F, 1 G, 1 H, 1 I, 1 J, 2 of 2 other kinds": many,
		"11 objects: 1 A, 1 B, 1 C, 1 D, 1 E, 1 F, 1 G, 1 H, 1 I, 1 J, 1 of 1 other kind":  many[:11],
	} {
		if diff := cmp.Diff(want, Summarise(objects)); diff != "" {
			t.Error(diff)
		}
	}
}
