// SPDX-License-Identifier: Apache-2.0

package install

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

func TestAGrantIsOfOneNameForTheGrantedAccount(t *testing.T) {
	var out bytes.Buffer
	c := interceptor.NewClient(clusterWith(t), interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			if review, is := o.(*authenticationv1.SelfSubjectReview); is {
				review.Status.UserInfo.Username = "ann"
				return nil
			}
			return c.Create(ctx, o, opts...)
		},
	})
	a := &Application{
		Client: c, Report: NewReport(&out), Name: "eu-1", ServiceAccount: "shipper-app-cluster",
		Clock: testingclock.NewFakePassiveClock(time.Unix(0, 0)),
	}
	role := Granted{schema.GroupResource{Group: rbacv1.GroupName, Resource: "clusterroles"}, "monitoring"}
	hook := Granted{schema.GroupResource{Group: "admissionregistration.k8s.io", Resource: "validatingwebhookconfigurations"}, "guard"}
	binding := Granted{schema.GroupResource{Group: rbacv1.GroupName, Resource: "clusterrolebindings"}, "monitoring"}
	held := rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"nodes/metrics"}, Verbs: []string{"get"}}
	if err := a.Grants(t.Context(), []Granted{role, binding, hook}, []rbacv1.PolicyRule{held}, "OPS-12"); err != nil {
		t.Fatal(err)
	}
	const ofRole, ofHook = "clusterroles.rbac.authorization.k8s.io:monitoring",
		"validatingwebhookconfigurations.admissionregistration.k8s.io:guard"
	const ofBinding = "clusterrolebindings.rbac.authorization.k8s.io:monitoring"
	reading, writing := []string{"get", "list", "watch"}, []string{"get", "create", "patch", "delete"}
	rule := func(g Granted, verbs []string, names ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{g.Group}, Resources: []string{g.Resource}, ResourceNames: names, Verbs: verbs}
	}
	roleNames := rule(binding, reading)
	roleNames.Resources = append(roleNames.Resources, "clusterroles")
	want := map[string][]rbacv1.PolicyRule{
		"shipper:grant:" + ofBinding:      {rule(binding, writing, "monitoring"), held},
		"shipper:grant-read:" + ofBinding: {roleNames},
		"shipper:grant:" + ofRole:         {rule(role, writing, "monitoring"), held},
		"shipper:grant-read:" + ofRole:    {rule(role, reading)},
		"shipper:grant:" + ofHook:         {rule(hook, writing, "guard")},
		"shipper:grant-read:" + ofHook:    {rule(hook, reading)},
	}
	roles := &rbacv1.ClusterRoleList{}
	if err := c.List(t.Context(), roles); err != nil {
		t.Fatal(err)
	}
	got := map[string][]rbacv1.PolicyRule{}
	for _, r := range roles.Items {
		got[r.Name] = r.Rules
		record := map[string]string{
			"shipper.booking.com/granted-by": "ann", "shipper.booking.com/granted-at": "1970-01-01T00:00:00Z",
			"shipper.booking.com/grant-reason": "OPS-12",
		}
		if diff := cmp.Diff(record, r.Annotations); diff != "" {
			t.Errorf("%s: the record (-want +got):\n%s", r.Name, diff)
		}
		if r.Labels["shipper.booking.com/aggregate-to-application"] != "" {
			t.Errorf("%s gives its rights to every chart", r.Name)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("roles (-want +got):\n%s", diff)
	}
	const own, byGrant = "ServiceAccount shipper-system/shipper-app-cluster", "ServiceAccount shipper-system/shipper-granted"
	bindings := map[string]string{
		"shipper-system/shipper:grants":    "Role shipper:grants to " + own,
		"/shipper:grant:" + ofRole:         "ClusterRole shipper:grant:" + ofRole + " to " + byGrant,
		"/shipper:grant-read:" + ofRole:    "ClusterRole shipper:grant-read:" + ofRole + " to " + own,
		"/shipper:grant:" + ofBinding:      "ClusterRole shipper:grant:" + ofBinding + " to " + byGrant,
		"/shipper:grant-read:" + ofBinding: "ClusterRole shipper:grant-read:" + ofBinding + " to " + own,
		"/shipper:grant:" + ofHook:         "ClusterRole shipper:grant:" + ofHook + " to " + byGrant,
		"/shipper:grant-read:" + ofHook:    "ClusterRole shipper:grant-read:" + ofHook + " to " + own,
	}
	if diff := cmp.Diff(bindings, subjectsByBinding(t, c)); diff != "" {
		t.Errorf("bindings (-want +got):\n%s", diff)
	}

	out.Reset()
	if err := a.NoGrants(t.Context(), []Granted{role}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"/shipper:grant:" + ofRole, "/shipper:grant-read:" + ofRole} {
		delete(bindings, name)
	}
	if diff := cmp.Diff(bindings, subjectsByBinding(t, c)); diff != "" {
		t.Errorf("bindings after a grant was taken back (-want +got):\n%s", diff)
	}
	if err := a.NoGrants(t.Context(), []Granted{role}); err != nil || strings.Count(out.String(), "there is none") != 4 {
		t.Errorf("taken back twice: %v\n%s", err, out.String())
	}
}
