// SPDX-License-Identifier: Apache-2.0

package resources_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart/objects"
	"shipper.dev/shipper/test/admission/ask"
	"shipper.dev/shipper/webhook/resources"
	"shipper.dev/shipper/webhook/response"
)

func judge(rights ...string) *resources.Judge {
	return (&ask.World{Authz: ask.Grant(rights...)}).Resources()
}

func TestSelectorsOfWhatMayNotBePlaced(t *testing.T) {
	const rbac = "rbac.authorization.k8s.io"
	policy, err := objects.ParsePolicy(objects.PolicyOptions{UnplaceableNamespaces: "team-*"})
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		selector shipper.ResourceSelector
		want     string
	}{
		"a ConfigMap": {shipper.ResourceSelector{Kind: "ConfigMap", Name: "web"}, ""},
		"Pods": {
			shipper.ResourceSelector{Kind: "Pod"},
			"spec.template.resources.select[0].kind: Forbidden: Pods are made by what owns them: select that",
		},
		"a kind without its group": {
			shipper.ResourceSelector{Kind: "Deployment"},
			`spec.template.resources.select[0].kind: Invalid value: "Deployment": this API server does not serve Deployment: ` +
				"did you mean kind: Deployment, group: apps?",
		},
		"the plural of a kind": {
			shipper.ResourceSelector{Kind: "ConfigMaps"},
			`spec.template.resources.select[0].kind: Invalid value: "ConfigMaps": this API server does not serve ConfigMaps: ` +
				"did you mean kind: ConfigMap, without a group?",
		},
		"a kind that is not served": {
			shipper.ResourceSelector{Kind: "Gadget"},
			`spec.template.resources.select[0].kind: Invalid value: "Gadget": this API server does not serve Gadget: ` +
				"name its group in group, such as apps for Deployments",
		},
		"a version that is not served": {
			shipper.ResourceSelector{Kind: "Deployment", Group: "apps", Version: "v1beta1"},
			`spec.template.resources.select[0].version: Invalid value: "v1beta1": this API server serves Deployment.apps in ` +
				"version v1, and not in this one: leave version out",
		},
		"a version of a kind that is not served at all": {
			shipper.ResourceSelector{Kind: "Gadget", Group: "example.com", Version: "v1"},
			`spec.template.resources.select[0].kind: Invalid value: "Gadget": this API server does not serve Gadget.example.com`,
		},
		"a version of a kind with another group": {
			shipper.ResourceSelector{Kind: "Deployment", Group: "extensions", Version: "v1beta1"},
			`spec.template.resources.select[0].kind: Invalid value: "Deployment": this API server does not serve ` +
				"Deployment.extensions: did you mean kind: Deployment, group: apps?",
		},
		"a namespace of Kubernetes": {
			shipper.ResourceSelector{Kind: "ConfigMap", Namespace: "kube-system"},
			"spec.template.resources.select[0].namespace: Forbidden: namespaces with the prefix kube- belong to Kubernetes",
		},
		"a Namespace that the operator excludes": {
			shipper.ResourceSelector{Kind: "Namespace", Name: "team-a"},
			"spec.template.resources.select[0].name: Forbidden: the administrators of Shipper do not allow namespace team-a to be placed",
		},
		"a namespace of a kind without one": {
			shipper.ResourceSelector{Group: rbac, Kind: "ClusterRole", Namespace: "work"},
			"spec.template.resources.select[0].namespace: Forbidden: objects of kind ClusterRole have no namespace: leave it out",
		},
	} {
		t.Run(name, func(t *testing.T) {
			j := judge()
			j.Policy = policy
			_, errs, err := j.Resolve(t.Context(), ask.Application(ask.Placing(tc.selector)))
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			if len(errs) > 0 {
				got = errs.ToAggregate().Error()
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("errors (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTheOwnNamespaceMayBeUnplaceable(t *testing.T) {
	app := ask.Application(ask.Placing(shipper.ResourceSelector{Kind: "ConfigMap"}))
	app.Namespace = "default"
	_, errs, err := judge().Resolve(t.Context(), app)
	want := "spec.template.resources.select[0]: Forbidden: content of namespace default may not be placed: " +
		"each cluster has its own default namespace: move the content to another one"
	if err != nil || errs.ToAggregate() == nil {
		t.Fatalf("it was admitted: %v, %v", errs, err)
	}
	if diff := cmp.Diff(want, errs.ToAggregate().Error()); diff != "" {
		t.Errorf("errors (-want +got):\n%s", diff)
	}
}

func TestRulesOfReadinessAreCompiled(t *testing.T) {
	rules := func(expression string) *shipper.Resources {
		return &shipper.Resources{Ready: []shipper.ReadyRule{{Kind: "Widget", Expression: expression}}}
	}
	bad := rules("object.status.phase")
	errs, err := resources.ValidateReady(t.Context(), "shop", bad, rules("true"))
	if err != nil {
		t.Fatal(err)
	}
	want := `spec.template.resources.ready[0].expression: Invalid value: "object.status.phase": ` +
		"must be bool, is dyn: compare it, as in object.status.ready == true"
	if len(errs) != 1 || errs[0].Error() != want {
		t.Errorf("got %v, want %s", errs, want)
	}
	for _, old := range []*shipper.Resources{nil, bad} {
		now := rules("object.status.phase == 'Bound'")
		if old != nil {
			now = bad // it was admitted by a version with another CEL
		}
		if errs, err := resources.ValidateReady(t.Context(), "shop", now, old); len(errs) > 0 || err != nil {
			t.Errorf("refused: %v, %v", errs, err)
		}
	}
}

func TestRulesForKindsThatAreNotServedAreWarned(t *testing.T) {
	rules := []shipper.ReadyRule{{Kind: "ConfigMap"}, {Kind: "Configmap"}, {Group: "example.com", Kind: "Gadget"}}
	want := []string{
		"ready[1]: this API server does not serve Configmap: the rule judges manifests in Envelopes only; " +
			"did you mean kind: ConfigMap, without a group?",
		"ready[2]: this API server does not serve Gadget.example.com: the rule judges manifests in Envelopes only",
	}
	if diff := cmp.Diff(want, judge().UnknownReady(t.Context(), rules)); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
}

func in(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name}
}

func TestWorkloadsThatRunInTheManagementClusterAreNamed(t *testing.T) {
	for name, tc := range map[string]struct {
		selector shipper.ResourceSelector
		want     []string
	}{
		"a kind without Pods": {shipper.ResourceSelector{Kind: "ConfigMap", LabelSelector: &metav1.LabelSelector{}}, nil},
		"a Deployment": {
			shipper.ResourceSelector{Group: "apps", Kind: "Deployment", Name: "web"},
			[]string{"select[0]: each Deployment runs its Pods here as well: put it into an Envelope"},
		},
		"a Namespace with all content": {
			shipper.ResourceSelector{Kind: "Namespace", Name: "work"},
			[]string{"select[0]: workloads in the Namespace run here as well, unless they are in an Envelope"},
		},
		"a Namespace alone": {shipper.ResourceSelector{Kind: "Namespace", Name: "work", Content: shipper.ContentNone}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			s, errs, err := judge().Resolve(t.Context(), ask.Application(ask.Placing(tc.selector)))
			if len(errs) > 0 || err != nil {
				t.Fatal(errs, err)
			}
			if diff := cmp.Diff(tc.want, s.Warnings()); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
		})
	}
}

// An Envelope can hold what its author could not create in the management cluster.
func TestManifestsOfEnvelopes(t *testing.T) {
	object := func(apiVersion, kind, namespace, name string) shipper.Manifest {
		metadata := map[string]any{"name": name}
		if namespace != "" {
			metadata["namespace"] = namespace
		}
		return shipper.Manifest{"apiVersion": apiVersion, "kind": kind, "metadata": metadata}
	}
	role := object("rbac.authorization.k8s.io/v1", "ClusterRole", "", "admin")
	invalid := `Envelope.shipper.booking.com "e" is invalid: spec.manifests[0]`
	const placeAdmin = `spec.manifests[0]: you may not place clusterroles.rbac.authorization.k8s.io "admin" on clusters: that needs the ` +
		`verb "place" on it; kubectl create clusterrole place-clusterroles-admin --verb=place ` +
		"--resource=clusterroles.rbac.authorization.k8s.io --resource-name=admin; kubectl create clusterrolebinding " +
		"place-clusterroles-admin-dev --clusterrole=place-clusterroles-admin --user=dev"
	for name, tc := range map[string]struct {
		manifest shipper.Manifest
		rights   []string
		old      *shipper.Envelope
		decision response.Decision
		message  string
	}{
		"of the own namespace": {manifest: object("v1", "ConfigMap", "", "a")},
		"of another namespace": {
			manifest: object("v1", "ConfigMap", "payments", "a"), decision: response.Forbidden,
			message: `spec.manifests[0]: you may not place namespaces "payments" on clusters: that needs the verb "place" on it; ` +
				"kubectl create clusterrole place-namespaces-payments --verb=place --resource=namespaces --resource-name=payments; " +
				"kubectl create clusterrolebinding place-namespaces-payments-dev --clusterrole=place-namespaces-payments --user=dev",
		},
		"of a kind without a namespace": {
			manifest: role, decision: response.Forbidden, message: placeAdmin,
		},
		"of a kind without a namespace, by an administrator": {
			manifest: role, rights: []string{"dev place clusterroles.rbac.authorization.k8s.io /admin"},
		},
		"of a kind without a namespace, by a user with the right to another name": {
			manifest: role, rights: []string{"dev place clusterroles.rbac.authorization.k8s.io /monitoring"}, decision: response.Forbidden,
			message: placeAdmin,
		},
		"with more rights than an administrator wrote before": {
			manifest: shipper.Manifest{
				"apiVersion": role["apiVersion"], "kind": role["kind"], "metadata": role["metadata"],
				"rules": []any{map[string]any{"verbs": []any{"escalate"}}},
			},
			old:      &shipper.Envelope{Spec: shipper.EnvelopeSpec{Manifests: []shipper.Manifest{role}}},
			decision: response.Forbidden, message: placeAdmin,
		},
		"with rights of Shipper's own account, also by an administrator": {
			manifest: shipper.Manifest{
				"apiVersion": role["apiVersion"], "kind": role["kind"], "metadata": map[string]any{
					"name": "admin", "labels": map[string]any{shipper.AggregateLabel: "true"},
				},
			},
			rights: []string{"dev place clusterroles.rbac.authorization.k8s.io /admin"}, decision: response.Invalid,
			message: invalid + `: Invalid value: "ClusterRole admin": is never placed: its label shipper.booking.com/aggregate-to-application ` +
				"gives its rights to Shipper's own account, and so to every tenant's chart",
		},
		"that an administrator wrote before": {
			manifest: role, old: &shipper.Envelope{Spec: shipper.EnvelopeSpec{Manifests: []shipper.Manifest{role}}},
		},
		"of a Pod": {
			manifest: object("v1", "Pod", "", "a"), decision: response.Invalid,
			message: invalid + `.kind: Invalid value: "Pod": Pods are made by what owns them: select that`,
		},
		"of the ServiceAccount that each namespace has": {
			manifest: object("v1", "ServiceAccount", "work", "default"), decision: response.Invalid,
			message: invalid + `: Invalid value: "ServiceAccount work/default": is never placed: each namespace of each cluster has its own`,
		},
		"of a Role in the own namespace": {
			manifest: object("rbac.authorization.k8s.io/v1", "Role", "", "a"), decision: response.Forbidden,
			message: `spec.manifests[0]: you may not place namespaces "work" on clusters: that needs the verb "place" on it; ` +
				"kubectl create clusterrole place-namespaces-work --verb=place --resource=namespaces --resource-name=work; " +
				"kubectl create clusterrolebinding place-namespaces-work-dev --clusterrole=place-namespaces-work --user=dev",
		},
		"of a RoleBinding in the own namespace, by a user with the right": {
			manifest: object("rbac.authorization.k8s.io/v1", "RoleBinding", "work", "a"), rights: []string{"dev place namespaces /work"},
		},
		"of a Secret": {
			manifest: object("v1", "Secret", "", "a"), decision: response.Invalid,
			message: invalid + `.kind: Invalid value: "Secret": an Envelope shows its content to all who may read it: create the Secret and ` +
				"select it, by {kind: Secret, name: a}",
		},
		"without a kind": {
			manifest: shipper.Manifest{"apiVersion": "v1", "metadata": map[string]any{"name": "a"}}, decision: response.Invalid,
			message: invalid + ".kind: Required value: each manifest is a whole object",
		},
		"of an Envelope": {
			manifest: object("shipper.booking.com/v1alpha1", "Envelope", "", "a"), decision: response.Invalid,
			message: invalid + `.kind: Invalid value: "Envelope": an Envelope cannot contain Envelopes: write their manifests here`,
		},
		"of a kind that is not served": {
			manifest: object("example.com/v1", "Widget", "work", "a"), decision: response.Invalid,
			message: invalid + `.kind: Invalid value: "Widget": this API server does not serve Widget.example.com, so it is not known whether ` +
				"such objects have a namespace: create its CustomResourceDefinition here",
		},
	} {
		t.Run(name, func(t *testing.T) {
			now := &shipper.Envelope{ObjectMeta: in("work", "e"), Spec: shipper.EnvelopeSpec{Manifests: []shipper.Manifest{tc.manifest}}}
			who := ask.Create("dev", now).UserInfo
			ask.CheckRefusal(t, judge(tc.rights...).JudgeEnvelope(t.Context(), who, now, tc.old), tc.decision, tc.message)
		})
	}
}

func TestEnvelopesAreNotAdmittedUntried(t *testing.T) {
	j := judge()
	j.Kinds = ask.Kinds{Err: fmt.Errorf("looking for kinds: away")}
	now := &shipper.Envelope{ObjectMeta: in("work", "e"), Spec: shipper.EnvelopeSpec{Manifests: []shipper.Manifest{
		{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a"}},
	}}}
	err := j.JudgeEnvelope(t.Context(), ask.Create("dev", now).UserInfo, now, nil)
	ask.CheckRefusal(t, err, response.Unavailable, "looking for kinds: away")
}
