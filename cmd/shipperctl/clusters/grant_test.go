// SPDX-License-Identifier: Apache-2.0

package clusters

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"shipper.dev/shipper/cmd/shipperctl/install"
)

const (
	roles    = "clusterroles.rbac.authorization.k8s.io/"
	webhooks = "validatingwebhookconfigurations.admissionregistration.k8s.io/"
)

func TestAGrantNamesEachObject(t *testing.T) {
	for arg, want := range map[string]string{
		roles + "monitoring":    "",
		"priorityclasses/x":     "",
		"clusterroles":          `"clusterroles" is no object: want RESOURCE.GROUP/NAME, such as ` + roles + `monitoring`,
		roles:                   `"` + roles + `" is no object: want RESOURCE.GROUP/NAME, such as ` + roles + `monitoring`,
		roles + "*":             `"` + roles + `*": a grant has a name, and no '*'`,
		"*/monitoring":          `"*/monitoring": a grant has a name, and no '*'`,
		roles + "a/b":           `"` + roles + `a/b": the name may not contain '/'`,
		roles + "cluster-admin": `"` + roles + `cluster-admin": objects of Kubernetes and of Shipper are not granted: choose another name`,
		roles + "edit":          `"` + roles + `edit": objects of Kubernetes and of Shipper are not granted: choose another name`,
		roles + "system:node":   `"` + roles + `system:node": objects of Kubernetes and of Shipper are not granted: choose another name`,
		webhooks + "a.shipper.booking.com": `"` + webhooks + `a.shipper.booking.com": objects of Kubernetes and of Shipper are not granted: ` +
			`choose another name`,
		webhooks + "a.example.com": "",
		roles + "shipper:grant:":   `"` + roles + `shipper:grant:": objects of Kubernetes and of Shipper are not granted: choose another name`,
	} {
		t.Run(arg, func(t *testing.T) {
			_, err := parseGrants([]string{arg})
			got := ""
			if err != nil {
				got = err.Error()
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
		})
	}
	if _, err := parseGrants(make([]string, maxGrants+1)); err == nil {
		t.Error("more are accepted than a person reads")
	}
}

func TestOnlyKindsWithoutANamespaceAreGranted(t *testing.T) {
	served := []*metav1.APIResourceList{
		{GroupVersion: "v1", APIResources: []metav1.APIResource{{Name: "namespaces"}, {Name: "secrets", Namespaced: true}}},
		{GroupVersion: "rbac.authorization.k8s.io/v1", APIResources: []metav1.APIResource{{Name: "clusterroles"}}},
	}
	of := func(group, resource string) install.Granted {
		return install.Granted{GroupResource: schema.GroupResource{Group: group, Resource: resource}, Name: "a"}
	}
	err := checkServed(served, []install.Granted{
		of("rbac.authorization.k8s.io", "clusterroles"), of("", "namespaces"), of("", "secrets"), of("", "clusterroles"),
	})
	const want = "secrets/a: objects of this kind have a namespace: grant the kind to Shipper's account with a ClusterRole with the label " +
		"shipper.booking.com/aggregate-to-application\n" +
		"clusterroles/a: the API server serves no such resource: name it in the plural, with its group"
	if diff := cmp.Diff(want, fmt.Sprint(err)); diff != "" {
		t.Errorf("error (-want +got):\n%s", diff)
	}
}

func TestRulesOfAGrantAreBounded(t *testing.T) {
	role := func(rules string) string {
		return "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: r}, rules: " + rules + "}"
	}
	nodes := []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"get"}}}
	const star = "has '*': list what it stands for"
	const get = `[{apiGroups: [""], resources: [nodes], verbs: [get]}]`
	for sentence, c := range map[string]struct {
		text, refused string
		want          []rbacv1.PolicyRule
	}{
		"a ClusterRole": {text: role(get), want: nodes},
		"a ClusterRole in an Envelope, beside others": {
			text: "{apiVersion: shipper.booking.com/v1alpha1, kind: Envelope, metadata: {name: e}, spec: {manifests: [" +
				"{apiVersion: v1, kind: ConfigMap, metadata: {name: c}}, " + role(get) + "]}}", want: nodes,
		},
		"a Role gives nothing": {text: strings.ReplaceAll(role(get), "ClusterRole", "Role"), refused: "has no ClusterRole with rules"},
		"all verbs":            {text: role(`[{apiGroups: [""], resources: [nodes], verbs: ["*"]}]`), refused: star},
		"all subresources":     {text: role(`[{apiGroups: [""], resources: ["*/scale"], verbs: [get]}]`), refused: star},
		"all groups":           {text: role(`[{apiGroups: ["*"], resources: [nodes], verbs: [get]}]`), refused: star},
		"all paths":            {text: role(`[{nonResourceURLs: ["/x/*"], verbs: [get]}]`), refused: star},
		"the verb escalate":    {text: role(`[{apiGroups: [x], resources: [things], verbs: [get, escalate]}]`), refused: "has the verb escalate"},
		"the verb impersonate": {
			text: role(`[{apiGroups: [""], resources: [users], verbs: [impersonate]}]`), refused: "has the verb impersonate",
		},
		"reading roles": {
			text: role(`[{apiGroups: [rbac.authorization.k8s.io], resources: [clusterroles], verbs: [list]}]`), want: []rbacv1.PolicyRule{
				{APIGroups: []string{rbacv1.GroupName}, Resources: []string{"clusterroles"}, Verbs: []string{"list"}}},
		},
		"writing roles": {
			text:    role(`[{apiGroups: [rbac.authorization.k8s.io], resources: [clusterroles], verbs: [patch]}]`),
			refused: "writes objects that give rights",
		},
		"writing webhooks": {
			text:    role(`[{apiGroups: [admissionregistration.k8s.io], resources: [x], verbs: [create]}]`),
			refused: "writes objects that give rights",
		},
		"rights that change": {
			text:    "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: r}, aggregationRule: {}}",
			refused: "has an aggregationRule",
		},
		"rights that editors get": {
			text: strings.Replace(role(get), "{name: r}", `{name: r, labels: {rbac.authorization.k8s.io/aggregate-to-edit: "true"}}`, 1),
			refused: "--rules: -: ClusterRole r has the label rbac.authorization.k8s.io/aggregate-to-edit, which adds its rules to those of " +
				"another ClusterRole, and no grant covers that: leave the label out, here and in what is placed",
		},
		"tokens of ServiceAccounts": {
			text:    role(`[{apiGroups: [""], resources: [serviceaccounts/token], verbs: [create]}]`),
			refused: "--rules: -: ClusterRole r: rules[0] creates tokens of ServiceAccounts",
		},
		"a text that is not a YAML": {text: "{", refused: "--rules: -: "},
	} {
		t.Run(sentence, func(t *testing.T) {
			got, err := readRules(strings.NewReader(c.text), "-")
			if c.refused == "" && err != nil || c.refused != "" && (err == nil || !strings.Contains(err.Error(), c.refused)) {
				t.Fatalf("the error is %v, want %q", err, c.refused)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("rules (-want +got):\n%s", diff)
			}
		})
	}
}

func TestClustersOfAGrantAreChosenByName(t *testing.T) {
	all := []ApplicationCluster{{Name: "eu"}, {Name: "us"}}
	for _, c := range []struct {
		names []string
		want  string
	}{{nil, "eu us"}, {[]string{"us"}, "us"}, {[]string{"us", "ap"}, `--clusters: the file lists no cluster "ap"`}} {
		chosen, err := choose(all, c.names)
		var got []string
		for _, one := range chosen {
			got = append(got, one.Name)
		}
		if err != nil {
			got = []string{err.Error()}
		}
		if diff := cmp.Diff(c.want, strings.Join(got, " ")); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}
