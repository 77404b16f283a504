// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// newGranted makes the client of the granted account. RBAC judges it as it judges a request: a POST has no name.
func (m *member) newGranted() client.Client {
	may := func(o client.Object, name string) error {
		kind := o.GetObjectKind().GroupVersionKind().Kind
		gr, key := schema.GroupResource{Group: rbacv1.GroupName, Resource: strings.ToLower(kind) + "s"}, kind+" "+name
		switch {
		case m.escalates[key]:
			return apierrors.NewForbidden(gr, name, errors.New(`user "granted" is attempting to grant RBAC permissions not currently held`))
		case !m.granted[key]:
			return apierrors.NewForbidden(gr, name, errors.New(`User "granted" cannot patch resource "x" in API group ""`))
		}
		m.writes = append(m.writes, "granted: "+key)
		return nil
	}
	return interceptor.NewClient(m.admin, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			if err := may(o, ""); err != nil {
				return err
			}
			return c.Create(ctx, o, opts...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, patch client.Patch, opts ...client.PatchOption) error {
			if err := may(o, o.GetName()); err != nil {
				return err
			}
			return c.Patch(ctx, o, patch, opts...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			if err := may(o, o.GetName()); err != nil {
				return err
			}
			return c.Delete(ctx, o, opts...)
		},
		Apply: func(ctx context.Context, c client.WithWatch, ac runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
			o, ok := ac.(client.Object)
			if !ok {
				m.t.Fatalf("%T is no object", ac)
			}
			if err := may(o, o.GetName()); err != nil {
				return err
			}
			denied := m.denied
			m.denied = map[string]bool{}
			defer func() { m.denied = denied }()
			return m.apply(ctx, c, ac, opts...)
		},
	})
}

// beginGrants is a cluster in which Shipper's own account may write no ClusterRoles.
func beginGrants(t *testing.T, granted ...string) *fixture {
	f := begin(t)
	for _, kind := range []string{"ClusterRole", "ClusterRoleBinding"} {
		f.member.mapper.Add(rbacv1.SchemeGroupVersion.WithKind(kind), meta.RESTScopeRoot)
		f.member.denied[kind] = true
	}
	for _, one := range granted {
		f.member.granted[one] = true
	}
	hook := schema.GroupVersionKind{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "ValidatingWebhookConfiguration"}
	f.member.mapper.Add(hook, meta.RESTScopeRoot)
	f.member.denied[hook.Kind] = true
	f.put("{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: \"shipper:grant:clusterroles:x\", labels: " +
		"{shipper.booking.com/grant: \"\"}}, rules: [{apiGroups: [example.com], resources: [things], resourceNames: [x], verbs: [get, " +
		"create, patch, delete]}, {apiGroups: [\"\"], resources: [nodes], verbs: [get, list]}]}")
	return f
}

func clusterRole(name, verb string) string {
	return fmt.Sprintf("{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: %s}, rules: [{apiGroups: [\"\"], "+
		"resources: [nodes], verbs: [%s]}]}\n", name, verb)
}

func TestAClusterRoleNamesTheCommandThatGrantsItsName(t *testing.T) {
	f := beginGrants(t)
	f.snapshot("one", clusterRole("monitoring", "get")+"---\n"+clusterRole("audit", "get"))
	out, _ := f.place(f.release(0, "one"))
	same(t, "reason", shipper.NotGranted, reasonOf(out.Err))
	same(t, "message", "ClusterRole audit, ClusterRole monitoring: Shipper's account lacks rights to clusterroles.rbac.authorization.k8s.io; "+
		"such objects give rights in the whole cluster, so an administrator grants each name: shipperctl clusters grant "+
		"clusterroles.rbac.authorization.k8s.io/audit clusterroles.rbac.authorization.k8s.io/monitoring --clusters eu-1 --reason WHY "+
		"--rules FILE",
		fmt.Sprint(out.Err))
}

func TestAGrantedNameIsWrittenChangedAndRemovedAsTheGrantedAccount(t *testing.T) {
	for _, how := range []shipper.ApplyType{shipper.ApplyServerSide, shipper.ApplyClientSide} {
		t.Run(string(how), func(t *testing.T) {
			f := beginGrants(t, "ClusterRole monitoring")
			f.snapshot("one", clusterRole("monitoring", "get"))
			f.snapshot("two", clusterRole("monitoring", "list"))
			it := f.release(0, "one")
			it.Spec.Resources.Apply = &shipper.Apply{Type: how}
			out, writes := f.place(it)
			same(t, "error", nil, out.Err)
			if !slices.Contains(writes, "granted: ClusterRole monitoring") {
				t.Errorf("the granted account has written nothing: %q", writes)
			}
			it.Spec.Resources.Snapshot = "two"
			out, writes = f.place(it)
			same(t, "error after a change", nil, out.Err)
			if !slices.Contains(writes, "granted: ClusterRole monitoring") {
				t.Errorf("the granted account has changed nothing: %q", writes)
			}
			if writes := f.remove(it); !slices.Contains(writes, "granted: ClusterRole monitoring") {
				t.Errorf("the granted account has removed nothing: %q", writes)
			}
		})
	}
}

func TestAGrantOfOneNameIsNoneOfAnother(t *testing.T) {
	f := beginGrants(t, "ClusterRole monitoring")
	f.snapshot("one", clusterRole("monitoring", "get")+"---\n"+clusterRole("admin-of-all", "get"))
	out, writes := f.place(f.release(0, "one"))
	same(t, "reason", shipper.NotGranted, reasonOf(out.Err))
	if text := fmt.Sprint(out.Err); !strings.HasPrefix(text, "ClusterRole admin-of-all: ") {
		t.Errorf("the message is about others: %s", text)
	}
	if !slices.Contains(writes, "granted: ClusterRole monitoring") || slices.Contains(writes, "granted: ClusterRole admin-of-all") {
		t.Errorf("written: %q", writes)
	}
}

func TestAGrantedRoleWithMoreRightsThanTheGrantNamesTheRules(t *testing.T) {
	f := beginGrants(t, "ClusterRole monitoring")
	f.member.escalates["ClusterRole monitoring"] = true
	f.snapshot("one", clusterRole("monitoring", "list"))
	out, _ := f.place(f.release(0, "one"))
	same(t, "reason", shipper.NotGranted, reasonOf(out.Err))
	same(t, "message", "ClusterRole monitoring: Shipper's account lacks rights to clusterroles.rbac.authorization.k8s.io; some of them "+
		"give rights that the grants of the cluster lack, so an administrator grants each name, with these rights in FILE: shipperctl "+
		"clusters grant clusterroles.rbac.authorization.k8s.io/monitoring --clusters eu-1 --reason WHY --rules FILE", fmt.Sprint(out.Err))
}

// TestNoGrantGivesShippersAccountRights: content that no webhook has judged, as when none answers.
func TestNoGrantGivesShippersAccountRights(t *testing.T) {
	f := beginGrants(t, "ClusterRole monitoring")
	f.snapshot("one", "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: monitoring, labels: {"+
		"shipper.booking.com/aggregate-to-application: \"true\"}}, rules: []}\n")
	out, writes := f.place(f.release(0, "one"))
	same(t, "reason and message", []string{shipper.ObjectConflict, "ClusterRole monitoring belongs to the cluster: its label " +
		"shipper.booking.com/aggregate-to-application gives its rights to Shipper's own account, and so to every tenant's chart; " +
		"one of the two has to leave it out"}, []string{reasonOf(out.Err), fmt.Sprint(out.Err)})
	if slices.Contains(writes, "granted: ClusterRole monitoring") {
		t.Errorf("written: %q", writes)
	}
}
