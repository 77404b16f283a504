// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestGrantsAreThoseThatTheSelectionNeeds(t *testing.T) {
	cluster := func(selectors string) string {
		return "{apiVersion: placement.kubernetes-fleet.io/v1, kind: ClusterResourcePlacement, metadata: {name: a}, spec: {resourceSelectors: [" +
			selectors + "]}}"
	}
	const (
		namespaces = "let Shipper write namespaces in each application cluster: shipperctl clusters join -f clusters.yaml --placements"
		reads      = "let Shipper read what is selected, and keep Secrets of it: shipperctl clusters setup management --placements "
		readsAll   = "let Shipper read every object of the management cluster, Secrets included, and keep Secrets of what is selected: " +
			"shipperctl clusters setup management --placements "
	)
	for sentence, c := range map[string]struct {
		in   string
		want []string
	}{
		"a Namespace with its content": {cluster("{kind: Namespace, name: shop}"), []string{reads + "'shop'", namespaces}},
		"a Namespace alone":            {cluster("{kind: Namespace, name: shop, selectionScope: NamespaceOnly}"), []string{namespaces}},
		"two Namespaces": {cluster("{kind: Namespace, name: shop}, {kind: Namespace, name: web}"),
			[]string{reads + "'fleet,shop,web'", namespaces}},
		"Namespaces by their kind": {cluster("{kind: Namespace}"), []string{readsAll + "'*,fleet'", namespaces}},
		"objects of one namespace that charts have, too": {`{apiVersion: placement.kubernetes-fleet.io/v1, kind: ResourcePlacement, ` +
			`metadata: {name: a, namespace: shop}, spec: {resourceSelectors: [{kind: ConfigMap}]}}`, []string{reads + "'shop'"}},
		"an Envelope": {cluster("{group: placement.kubernetes-fleet.io, kind: ClusterResourceEnvelope, name: a}"), nil},
		"nothing for kinds with which a tenant reaches the cluster": {cluster("{group: rbac.authorization.k8s.io, kind: ClusterRoleBinding}"),
			[]string{readsAll + "'*,fleet'"}},
		"other kinds": {cluster("{group: scheduling.k8s.io, kind: PriorityClass}, {kind: Namespace, name: shop}"), []string{
			readsAll + "'*,shop'", namespaces,
			"let Shipper write priorityclasses.scheduling.k8s.io, in each application cluster: kubectl create clusterrole " +
				"shipper-priorityclasses --verb=get,list,watch,create,patch,delete --resource=priorityclasses.scheduling.k8s.io && " +
				"kubectl label clusterrole shipper-priorityclasses shipper.booking.com/aggregate-to-application=true",
		}},
		"nothing with names that no API server takes": {cluster(`{kind: Namespace, name: "a'; id; '"}, {kind: Namespace, name: "a\n---\nb"}, ` +
			`{group: a.example, kind: "Foo; id;"}, {group: "a.example\nkind: Foo", kind: Foo}, {kind: Namespace, name: shop}`), []string{
			readsAll + "'*,fleet,shop'", namespaces,
		}},
		"nothing of an Envelope with kinds that no API server takes": {"{apiVersion: placement.kubernetes-fleet.io/v1, " +
			`kind: ClusterResourceEnvelope, metadata: {name: a}, data: {a: {apiVersion: a.example/v1, kind: "Foo; id #", metadata: {name: a}}, ` +
			`b: {apiVersion: "$(id).example/v1", kind: "Foo\nBar", metadata: {name: b}}}}`, nil},
		"a cluster alone": {"{apiVersion: cluster.kubernetes-fleet.io/v1, kind: MemberCluster, metadata: {name: a}}", nil},
	} {
		t.Run(sentence, func(t *testing.T) {
			out, err := convert(t.Context(), []byte(c.in), settings{})
			if err != nil {
				t.Fatal(err)
			}
			got, err := grantsOf(out.fleet)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("grants (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAKindWithWhichATenantReachesTheClusterIsNamed(t *testing.T) {
	for _, in := range []string{
		"{apiVersion: placement.kubernetes-fleet.io/v1, kind: ClusterResourcePlacement, metadata: {name: a}, spec: {resourceSelectors: [" +
			"{group: rbac.authorization.k8s.io, kind: ClusterRole}]}}",
		"{apiVersion: placement.kubernetes-fleet.io/v1, kind: ClusterResourceEnvelope, metadata: {name: a}, data: {a: {apiVersion: " +
			"rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: a}}}}",
	} {
		out, err := convert(t.Context(), []byte(in), settings{})
		if err != nil {
			t.Fatal(err)
		}
		const want = "has clusterroles.rbac.authorization.k8s.io, which Shipper may not write, so that clusters are NotGranted"
		if got := strings.Join(out.reviews(), "\n"); !strings.Contains(got, want) {
			t.Errorf("reviews are %q, without %q", got, want)
		}
	}
}
