// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// scope knows core kinds and ClusterRoles.
func scope(gk schema.GroupKind) (namespaced, known bool) {
	switch gk.Group {
	case "":
		return gk.Kind != "Namespace", true
	case "rbac.authorization.k8s.io":
		return gk.Kind != "ClusterRole", true
	default:
		return false, false
	}
}

func TestUnpackGivesTheManifestsOfAnEnvelope(t *testing.T) {
	got, errs := Policy{}.Unpack(objectsOf(t,
		`{apiVersion: v1, kind: Service, metadata: {name: web, uid: 8f0e, labels: null, finalizers: [example.com/a]}, spec: {
			clusterIP: 10.0.0.7, ports: [{port: 80, nodePort: 30080}]}, status: {}}`,
		`{apiVersion: v1, kind: Service, metadata: {name: web, namespace: other}}`,
		`{apiVersion: v1, kind: Namespace, metadata: {name: work}}`,
		`{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: "system:reader"}}`,
		`{apiVersion: example.com/v1, kind: Widget, metadata: {name: a}}`,
		`{apiVersion: example.com/v1, kind: AllowList, metadata: {name: a}, spec: {items: []}}`,
		`{apiVersion: v1, kind: List, items: []}`, `{apiVersion: v1, kind: List}`, `{apiVersion: v1, kind: ConfigMapList, items: null}`,
	), "work", scope)
	want := objectsOf(t,
		`{apiVersion: v1, kind: Service, metadata: {name: web, namespace: work, labels: null}, spec: {
			clusterIP: 10.0.0.7, ports: [{port: 80, nodePort: 30080}]}}`,
		`{apiVersion: v1, kind: Service, metadata: {name: web, namespace: other}}`,
		`{apiVersion: v1, kind: Namespace, metadata: {name: work}}`,
		`{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: "system:reader"}}`,
		`{apiVersion: example.com/v1, kind: Widget, metadata: {name: a}}`,
		`{apiVersion: example.com/v1, kind: AllowList, metadata: {name: a}, spec: {items: []}}`,
	)
	if diff := cmp.Diff(want, got); diff != "" || len(errs) > 0 {
		t.Errorf("%v %s", errs, diff)
	}
}

func TestUnpackNamesEachManifestThatIsWrong(t *testing.T) {
	p, err := ParsePolicy(PolicyOptions{UnplaceableKinds: "*.example.com"})
	if err != nil {
		t.Fatal(err)
	}
	good := `{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}`
	for _, c := range []struct{ text, want string }{
		{`{apiVersion: v1, kind: Secret, metadata: {name: b}}`, `spec.manifests[1].kind: Invalid value: "Secret": an Envelope shows its ` +
			`content to all who may read it: create the Secret and select it, by {kind: Secret, name: b}`},
		{`{kind: ConfigMap, metadata: {name: b}}`, `spec.manifests[1].apiVersion: Required value: each manifest is a whole object`},
		{`{apiVersion: v1, kind: 7, metadata: {name: b}}`, `spec.manifests[1].kind: Required value: each manifest is a whole object`},
		{`{apiVersion: a/b/c, kind: ConfigMap, metadata: {name: b}}`,
			`spec.manifests[1].apiVersion: Invalid value: "a/b/c": want v1, apps/v1 or the like`},
		{`{apiVersion: v1, kind: ConfigMap, metadata: {generateName: b-}}`,
			`spec.manifests[1].metadata.name: Required value: each manifest has a name; generateName is not enough`},
		{`{apiVersion: v1, kind: ConfigMap}`,
			`spec.manifests[1].metadata.name: Required value: each manifest has a name; generateName is not enough`},
		{`{apiVersion: v1, kind: ConfigMap, metadata: {name: b/c}}`,
			`spec.manifests[1].metadata.name: Invalid value: "b/c": may not contain '/'`},
		{`{apiVersion: v1, kind: ConfigMap, metadata: {name: b, namespace: 7}}`,
			`spec.manifests[1].metadata.namespace: Invalid value: "": want a text`},
		{`{apiVersion: v1, kind: ConfigMap, metadata: {name: b, labels: {a: true}}}`,
			`spec.manifests[1].metadata.labels: Invalid value: "": want a map of texts: quote numbers and booleans`},
		{`{apiVersion: v1, kind: ConfigMap, metadata: {name: b, annotations: [a]}}`,
			`spec.manifests[1].metadata.annotations: Invalid value: "": want a map of texts: quote numbers and booleans`},
		{`{apiVersion: example.com/v1, kind: AllowList}`,
			`spec.manifests[1].metadata.name: Required value: each manifest has a name; generateName is not enough`},
		{`{apiVersion: v1, kind: List, items: [{}]}`,
			`spec.manifests[1].kind: Invalid value: "List": is a list: write each of its items as a manifest`},
		{`{apiVersion: shipper.booking.com/v1alpha1, kind: Envelope, metadata: {name: b}}`,
			`spec.manifests[1].kind: Invalid value: "Envelope": an Envelope cannot contain Envelopes: write their manifests here`},
		{`{apiVersion: v1, kind: Pod, metadata: {name: b}}`,
			`spec.manifests[1].kind: Invalid value: "Pod": Pods are made by what owns them: select that`},
		{`{apiVersion: v1, kind: ConfigMap, metadata: {name: b, namespace: kube-system}}`,
			`spec.manifests[1].metadata.namespace: Invalid value: "kube-system": namespaces with the prefix kube- belong to Kubernetes`},
		{`{apiVersion: v1, kind: Namespace, metadata: {name: default}}`,
			`spec.manifests[1].metadata.name: Invalid value: "default": each cluster has its own default namespace: ` +
				"move the content to another one"},
		{`{apiVersion: example.com/v1, kind: Widget, metadata: {name: b}}`,
			`spec.manifests[1].kind: Invalid value: "Widget": the administrators of Shipper do not allow Widget.example.com to be placed`},
		{`{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: b, namespace: work}}`,
			`spec.manifests[1].metadata.namespace: Invalid value: "work": ClusterRoles have no namespace: leave it out`},
		{`{apiVersion: v1, kind: ServiceAccount, metadata: {name: default}}`,
			`spec.manifests[1]: Invalid value: "ServiceAccount work/default": is never placed: each namespace of each cluster has its own`},
		{`{apiVersion: v1, kind: ConfigMap, metadata: {name: kube-root-ca.crt, namespace: other}}`,
			`spec.manifests[1]: Invalid value: "ConfigMap other/kube-root-ca.crt": is never placed: ` +
				"each cluster publishes its own certificate authority"},
		{`{apiVersion: v1, kind: ConfigMap, metadata: {name: web-1-anchor}, data: {InstallationTargetUID: x}}`,
			`spec.manifests[1]: Invalid value: "ConfigMap work/web-1-anchor": is never placed: ` +
				"it is Shipper's record of what is installed in this cluster"},
		{`{apiVersion: v1, kind: ConfigMap, metadata: {name: lock, annotations: {control-plane.alpha.kubernetes.io/leader: "{}"}}}`,
			`spec.manifests[1]: Invalid value: "ConfigMap work/lock": is never placed: it is a lock of the processes of one cluster`},
		{`{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: view, labels: {
			kubernetes.io/bootstrapping: rbac-defaults}}}`,
			`spec.manifests[1]: Invalid value: "ClusterRole view": is never placed: the API server of each cluster makes its own`},
		{`{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: work}}`,
			`spec.manifests[1]: Duplicate value: "ConfigMap work/a, as manifests[0]"`},
		{`{}`, `spec.manifests[1].apiVersion: Required value: each manifest is a whole object; ` +
			`spec.manifests[1].kind: Required value: each manifest is a whole object; ` +
			`spec.manifests[1].metadata.name: Required value: each manifest has a name; generateName is not enough`},
	} {
		got, errs := p.Unpack(objectsOf(t, good, c.text), "work", scope)
		var texts []string
		for _, e := range errs {
			texts = append(texts, e.Error())
		}
		if diff := cmp.Diff(c.want, strings.Join(texts, "; ")); diff != "" {
			t.Errorf("%s: %s", c.text, diff)
		}
		if want := []Key{{Kind: "ConfigMap", Namespace: "work", Name: "a"}}; !cmp.Equal(want, keys(got)) {
			t.Errorf("%s: the other manifest is lost: %v", c.text, keys(got))
		}
	}
}

func TestUnpackBoundsAnEnvelope(t *testing.T) {
	var many []unstructured.Unstructured
	for i := range MaxManifests + 1 {
		many = append(many, named("v1", "ConfigMap", "work", fmt.Sprint(i)))
	}
	if _, errs := (Policy{}).Unpack(many[1:], "work", nil); len(errs) > 0 {
		t.Errorf("%d manifests: %v", MaxManifests, errs)
	}
	_, errs := Policy{}.Unpack(many, "work", nil)
	if want := "spec.manifests: Too many: 201: must have at most 200 items"; errs.ToAggregate() == nil || errs.ToAggregate().Error() != want {
		t.Errorf("%d manifests: %v", len(many), errs)
	}
	half := strings.Repeat("x", MaxEnvelopeBytes/2)
	_, errs = Policy{}.Unpack([]unstructured.Unstructured{withData("ConfigMap", "a", half), withData("ConfigMap", "b", half)}, "work", nil)
	want := `spec.manifests: Invalid value: "900.2 KiB": at most 900 KiB together: use several Envelopes`
	if errs.ToAggregate() == nil || errs.ToAggregate().Error() != want {
		t.Errorf("two halves: %v", errs)
	}
}

func TestUnpackDoesNotChangeTheEnvelopeOfACache(t *testing.T) {
	manifests := objectsOf(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, uid: 8f0e}}`)
	before := manifests[0].DeepCopy()
	if _, errs := (Policy{}).Unpack(manifests, "work", scope); len(errs) > 0 {
		t.Fatal(errs)
	}
	if diff := cmp.Diff(before.Object, manifests[0].Object); diff != "" {
		t.Error(diff)
	}
}
