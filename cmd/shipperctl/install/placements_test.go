// SPDX-License-Identifier: Apache-2.0

package install

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

func clusterWith(t *testing.T, objects ...client.Object) client.WithWatch {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := rbacv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()
}

// subjectsByBinding has the role and the subjects of each binding in a cluster.
func subjectsByBinding(t *testing.T, c client.Client) map[string]string {
	t.Helper()
	out := map[string]string{}
	put := func(namespace, name string, role rbacv1.RoleRef, subjects []rbacv1.Subject) {
		var all []string
		for _, s := range subjects {
			all = append(all, s.Kind+" "+s.Namespace+"/"+s.Name)
		}
		slices.Sort(all)
		out[namespace+"/"+name] = role.Kind + " " + role.Name + " to " + strings.Join(all, ", ")
	}
	inNamespaces, everywhere := &rbacv1.RoleBindingList{}, &rbacv1.ClusterRoleBindingList{}
	for _, list := range []client.ObjectList{inNamespaces, everywhere} {
		if err := c.List(t.Context(), list); err != nil {
			t.Fatal(err)
		}
	}
	for _, b := range inNamespaces.Items {
		put(b.Namespace, b.Name, b.RoleRef, b.Subjects)
	}
	for _, b := range everywhere.Items {
		put("", b.Name, b.RoleRef, b.Subjects)
	}
	return out
}

func TestPlacementsBindWhatShipperReadsAndKeeps(t *testing.T) {
	const ours = "ServiceAccount shipper-system/shipper"
	bound := func(role string) string { return "ClusterRole " + role + " to " + ours }
	other := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "shipper-selector"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "shipper-selector"},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "audit", Name: "reader"}},
	}
	weaker := other.DeepCopy()
	weaker.RoleRef.Name = "view"
	for sentence, c := range map[string]struct {
		namespaces []string
		there      []client.Object
		want       map[string]string
	}{
		"nothing without the flag": {want: map[string]string{}},
		"in each namespace": {namespaces: []string{"shop", "web"}, want: map[string]string{
			"shop/shipper-selector": bound("shipper-selector"), "shop/shipper-values-keeper": bound("shipper-values-keeper"),
			"web/shipper-selector": bound("shipper-selector"), "web/shipper-values-keeper": bound("shipper-values-keeper"),
		}},
		"everywhere, without a right to keep Secrets": {namespaces: []string{AllPlaced}, want: map[string]string{
			"/shipper-selector": bound("shipper-selector"),
		}},
		"beside other subjects": {namespaces: []string{"shop"}, there: []client.Object{other}, want: map[string]string{
			"shop/shipper-selector":      "ClusterRole shipper-selector to ServiceAccount audit/reader, " + ours,
			"shop/shipper-values-keeper": bound("shipper-values-keeper"),
		}},
		"without the subjects of another role": {namespaces: []string{"shop"}, there: []client.Object{weaker}, want: map[string]string{
			"shop/shipper-selector": bound("shipper-selector"), "shop/shipper-values-keeper": bound("shipper-values-keeper"),
		}},
	} {
		t.Run(sentence, func(t *testing.T) {
			var out bytes.Buffer
			m := &Management{
				Client: clusterWith(t, c.there...), Report: NewReport(&out), Namespace: "shipper-system", ServiceAccount: "shipper",
				Placements: c.namespaces,
			}
			for range 2 {
				out.Reset()
				if err := m.bindPlacements(t.Context()); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(c.want, subjectsByBinding(t, m.Client)); diff != "" {
					t.Errorf("bindings (-want +got):\n%s", diff)
				}
			}
			if again := out.String(); strings.Count(again, unchanged) != strings.Count(again, "\n") {
				t.Errorf("the second time has written:\n%s", again)
			}
		})
	}
}

func TestJoinGivesAndTakesTheRightsToPlace(t *testing.T) {
	var out bytes.Buffer
	a := &Application{Client: clusterWith(t), Report: NewReport(&out), Name: "eu-1"}
	rules := func() []rbacv1.PolicyRule {
		roles := &rbacv1.ClusterRoleList{}
		if err := a.Client.List(t.Context(), roles); err != nil {
			t.Fatal(err)
		}
		var all []rbacv1.PolicyRule
		for _, role := range roles.Items {
			if role.Labels["shipper.booking.com/aggregate-to-application"] != "true" {
				t.Errorf("%s reaches no account", role.Name)
			}
			all = append(all, role.Rules...)
		}
		return all
	}
	verbs := []string{"get", "list", "watch", "create", "patch", "delete"}
	want := []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: verbs},
		{APIGroups: []string{""}, Resources: []string{"resourcequotas", "limitranges"}, Verbs: verbs},
	}
	for _, how := range []string{created, unchanged} {
		out.Reset()
		if err := a.Placements(t.Context()); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, rules()); diff != "" || !strings.Contains(out.String(), how) {
			t.Errorf("%s; rules (-want +got):\n%s", out.String(), diff)
		}
	}
	for _, how := range []string{"done", "there is none. Skipping"} {
		out.Reset()
		if err := a.NoPlacements(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := rules(); len(got) > 0 || !strings.Contains(out.String(), how) {
			t.Errorf("%s; rules that stay: %v", out.String(), got)
		}
	}
}
