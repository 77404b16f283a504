// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// overrideWith is a ResourceOverride of KubeFleet with one rule, and more fields in its spec.
func overrideWith(rule, fields string) string {
	return `{apiVersion: placement.kubernetes-fleet.io/v1beta1, kind: ResourceOverride, metadata: {name: logs, namespace: shop}, spec: {` +
		`resourceSelectors: [{group: apps, version: v1, kind: Deployment, name: web}], policy: {overrideRules: [` + rule + `]}` + fields + `}}`
}

const (
	patchEverywhere  = `{clusterSelector: {}, jsonPatchOverrides: [{op: remove, path: /spec/replicas}]}`
	deleteEverywhere = `{clusterSelector: {clusterSelectorTerms: []}, overrideType: Delete}`
)

// convertedOverride is the ResourceOverride that is made of the first one in an input, and what is to be reviewed of it.
func convertedOverride(t *testing.T, in string) (*shipper.ResourceOverride, []string) {
	t.Helper()
	out, err := convert(t.Context(), []byte(in), settings{})
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range out.fleet {
		if made, is := one.object.(*shipper.ResourceOverride); is {
			return made, one.reviews
		}
	}
	t.Fatal("there is no ResourceOverride")
	return nil, nil
}

func TestRulesOfOverridesAreConvertedInTheirOrder(t *testing.T) {
	const rules = `{clusterSelector: {clusterSelectorTerms: [{labelSelector: {matchLabels: {env: prod}}}, {labelSelector: {matchLabels: ` +
		`{env: canary}}}]}, jsonPatchOverrides: [{op: add, path: /metadata/annotations, value: {at: "${MEMBER-CLUSTER-NAME}", ` +
		`in: "${MEMBER-CLUSTER-LABEL-KEY-env}", as: "${member-cluster-name}"}}, {op: replace, path: /spec/replicas, value: 2}]}, ` +
		deleteEverywhere
	got, reviews := convertedOverride(t, overrideWith(rules, ""))
	env := func(value string) shipper.OverrideClusterTerm {
		return shipper.OverrideClusterTerm{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"env": value}}}
	}
	want := shipper.ResourceOverrideSpec{
		Resources: []shipper.OverriddenResource{{Group: "apps", Kind: "Deployment", Name: "web"}},
		Rules: []shipper.OverrideRule{
			{ClusterTerms: []shipper.OverrideClusterTerm{env("prod"), env("canary")}, Patch: []shipper.PatchOperation{
				{"op": "add", "path": "/metadata/annotations", "value": map[string]any{
					"at": "${cluster.name}", "in": "${cluster.labels['env']}", "as": "$${member-cluster-name}",
				}},
				{"op": "replace", "path": "/spec/replicas", "value": int64(2)},
			}},
			{Delete: true},
		},
	}
	if diff := cmp.Diff(want, got.Spec); diff != "" || len(reviews) > 0 {
		t.Errorf("reviews %q, and the ResourceOverride (-want +got):\n%s", reviews, diff)
	}
}

func TestWhatAnOverrideLosesIsReviewed(t *testing.T) {
	const selecting = "apiVersion: placement.kubernetes-fleet.io/v1\nkind: ClusterResourcePlacement\nmetadata: {name: all}\nspec:\n" +
		"  resourceSelectors: [{version: v1, kind: Namespace, name: shop}, {version: v1, kind: Namespace, name: tools}]\n---\n"
	const elsewhere = "ResourceOverride logs: metadata.namespace: ClusterResourcePlacement all becomes the Application fleet/all, and a " +
		"ResourceOverride bears on Applications of its own namespace: "
	const late = "ResourceOverride logs: spec.placement: an edit of it takes effect with the next Release of the Application, and not at once"
	const of = "ResourceOverride logs: spec."
	const byProperty = patchEverywhere + ", {clusterSelector: {clusterSelectorTerms: [{propertySorter: {name: a}}]}}"
	plain := overrideWith(patchEverywhere, "")
	for sentence, c := range map[string]struct {
		in   string
		want []string
	}{
		"nothing":                       {plain, nil},
		"a placement that it rolls out": {overrideWith(patchEverywhere, ", placement: {name: web, scope: Namespaced}"), []string{late}},
		"a placement whose Application is elsewhere": {selecting + overrideWith(patchEverywhere, ", placement: {name: all}"),
			[]string{late, elsewhere}},
		"a placement of several namespaces": {selecting + plain, []string{elsewhere}},
		"another placement than its own":    {selecting + overrideWith(patchEverywhere, ", placement: {name: web}"), []string{late}},
		"a field that is not known":         {overrideWith(patchEverywhere, ", paused: true"), []string{of + "paused: "}},
		"a selector by labels": {strings.Replace(plain, "name: web}", "name: web, labelSelector: {matchLabels: {a: b}}}", 1),
			[]string{of + "resourceSelectors[0].labelSelector: is left out: "}},
		"its Namespace": {strings.Replace(plain, "group: apps, version: v1, kind: Deployment", "group: '', kind: Namespace", 1),
			[]string{of + "resourceSelectors: selects the Namespace web, on which a ResourceOverride of a namespace does not bear"}},
		"a patch beside a deletion": {overrideWith(strings.Replace(deleteEverywhere, "Delete", "Delete, jsonPatchOverrides: [{op: add}]", 1), ""),
			[]string{of + "policy.overrideRules[0].jsonPatchOverrides: is left out: the rule deletes the objects"}},
		"a rule that sorts by a property": {overrideWith(byProperty, ""),
			[]string{of + "policy.overrideRules[1].clusterSelector: is left out with its rule: "}},
		"a path that no patch may have": {strings.Replace(plain, "/spec/replicas", "/status/a", 1),
			[]string{"ResourceOverride logs: spec: makes a ResourceOverride that Shipper refuses: "}},
	} {
		t.Run(sentence, func(t *testing.T) {
			_, got := convertedOverride(t, c.in)
			if len(got) != len(c.want) {
				t.Fatalf("reviews are\n%s\nwant %d", strings.Join(got, "\n"), len(c.want))
			}
			for i, review := range got {
				if !strings.HasPrefix(review, c.want[i]) {
					t.Errorf("review %d is\n%s\nwant\n%s", i, review, c.want[i])
				}
			}
		})
	}
}

func TestAnUnknownTypeOfOverrideIsRefused(t *testing.T) {
	_, err := convert(t.Context(), []byte(overrideWith(strings.Replace(deleteEverywhere, "Delete", "Merge", 1), "")), settings{})
	const want = `document 1: spec.policy.overrideRules[0].overrideType is "Merge", and must be one of Delete, JSONPatch`
	if err == nil || err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
}

func TestANamespaceThatAnOverrideSelectsIsReviewedUnlessItIsMeantAlone(t *testing.T) {
	for scope, want := range map[string]int{"": 1, ", selectionScope: NamespaceWithResources": 1, ", selectionScope: NamespaceOnly": 0} {
		in := strings.NewReplacer("kind: ResourceOverride", "kind: ClusterResourceOverride", ", namespace: shop", "", "resourceSelectors",
			"clusterResourceSelectors", "group: apps, version: v1, kind: Deployment, name: web", "kind: Namespace, name: shop"+scope).Replace(
			overrideWith(patchEverywhere, ""))
		if _, got := convertedOverride(t, in); len(got) != want {
			t.Errorf("with %q, reviews are %q", scope, got)
		}
	}
}
