// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/admission/ask"
	"shipper.dev/shipper/test/env"
)

// The roles that people are bound to: those of Kubernetes, and Shipper's own one, which is aggregated to none of them.
const (
	viewRole  = "view"
	editRole  = "edit"
	adminRole = "admin"
	sreRole   = "shipper:sre"

	approverRole = "shipper:approver"
	promoterRole = "shipper:promoter"
	runnerRole   = "shipper:runner"
)

func person(name string) rbacv1.Subject {
	return rbacv1.Subject{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: name}
}

func team(name string) rbacv1.Subject {
	return rbacv1.Subject{Kind: rbacv1.GroupKind, APIGroup: rbacv1.GroupName, Name: name}
}

// bind binds a subject to ClusterRoles in a namespace, or in all if that is "".
func bind(t *testing.T, namespace string, who rbacv1.Subject, roles ...string) {
	t.Helper()
	for _, role := range roles {
		meta := metav1.ObjectMeta{Namespace: namespace, GenerateName: "test-"}
		ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role}
		if namespace == "" {
			create(t, admin, &rbacv1.ClusterRoleBinding{ObjectMeta: meta, RoleRef: ref, Subjects: []rbacv1.Subject{who}})
		} else {
			create(t, admin, &rbacv1.RoleBinding{ObjectMeta: meta, RoleRef: ref, Subjects: []rbacv1.Subject{who}})
		}
	}
}

// permitted reports whether the authorizer lets a user do something to a resource of Shipper's.
func permitted(ctx context.Context, user, verb, resource, subresource, namespace string) (bool, error) {
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: user, ResourceAttributes: &authorizationv1.ResourceAttributes{
			Group: shipper.GroupName, Version: shipper.GroupVersion.Version, Namespace: namespace,
			Resource: resource, Subresource: subresource, Verb: verb,
		},
	}}
	err := admin.Create(ctx, review)
	return review.Status.Allowed, err
}

// granted lists all verbs that a user has on Shipper's kinds, by resource, as the API server says when the user asks for their rules.
// Clusters are not namespaced: what roles in a namespace grant on them is nothing.
func granted(t *testing.T, name, namespace string) map[string][]string {
	t.Helper()
	everywhere := rulesOf(t, name, "kube-public") // without RoleBindings
	in := everywhere
	if namespace != "" {
		in = rulesOf(t, name, namespace)
	}
	out := map[string][]string{}
	for _, resource := range []string{
		"applications", "releases", "installationtargets", "capacitytargets", "traffictargets", "clusters", "rolloutblocks", "chartsnapshots",
		"approvals", "notifications", "checks", "checktargets", "envelopes", "resourcesnapshots", "shipyards", "sequenceruns",
		"resourceoverrides", "strategies",
	} {
		rules := in
		if resource == "clusters" {
			rules = everywhere
		}
		for _, sub := range []string{"", "/status"} {
			for _, verb := range []string{
				"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection", "override", "stamp", "skip", "approve", "place",
				"promote",
			} {
				if slices.ContainsFunc(rules, func(r authorizationv1.ResourceRule) bool { return grants(&r, verb, resource, sub) }) {
					out[resource+sub] = append(out[resource+sub], verb)
				}
			}
		}
	}
	return out
}

// rulesOf are the rules of a user in a namespace.
func rulesOf(t *testing.T, name, namespace string) []authorizationv1.ResourceRule {
	t.Helper()
	review := &authorizationv1.SelfSubjectRulesReview{Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: namespace}}
	if err := inGroups(t, name).Create(t.Context(), review); err != nil {
		t.Fatal(err)
	}
	return review.Status.ResourceRules
}

// grants reports whether a rule lets a user do something to all objects of one of Shipper's resources.
func grants(r *authorizationv1.ResourceRule, verb, resource, sub string) bool {
	has := func(list []string, names ...string) bool {
		return slices.ContainsFunc(names, func(name string) bool { return slices.Contains(list, name) })
	}
	resources := []string{resource + sub, "*"}
	if sub != "" {
		resources = append(resources, "*"+sub)
	}
	return has(r.APIGroups, shipper.GroupName, "*") && has(r.Verbs, verb, "*") && has(r.Resources, resources...) && len(r.ResourceNames) == 0
}

// aggregated returns when Kubernetes has added Shipper's rules to its own roles.
func aggregated(t *testing.T) {
	t.Helper()
	ns := namespace(t)
	bind(t, ns, person("everybody"), viewRole, adminRole)
	env.Eventually(t, "Kubernetes to aggregate Shipper's roles", func(ctx context.Context) error {
		for verb, resource := range map[string]string{"list": "rolloutblocks", "patch": "releases", "promote": "shipyards"} {
			if allowed, err := permitted(ctx, "everybody", verb, resource, "", ns); err != nil || !allowed {
				return fmt.Errorf("%s %s: %w", verb, resource, err)
			}
		}
		return nil
	})
}

// TestEverybodyMayReadGlobalBlocks asks as a user without bindings.
func TestEverybodyMayReadGlobalBlocks(t *testing.T) {
	dev := inGroups(t, "newcomer", "system:authenticated")
	blocks := &shipper.RolloutBlockList{}
	if err := dev.List(t.Context(), blocks, client.InNamespace(shipper.GlobalBlocksNamespace)); err != nil {
		t.Error(err)
	}
	if err := dev.List(t.Context(), blocks, client.InNamespace(namespace(t))); !apierrors.IsForbidden(err) {
		t.Errorf("in another namespace it says: %v", err)
	}
	b := block(t, shipper.GlobalBlocksNamespace)
	if err := dev.Delete(t.Context(), b); !apierrors.IsForbidden(err) {
		t.Errorf("the deletion of one says: %v", err)
	}
}

func TestRolesAllowThisAndNothingElse(t *testing.T) {
	t.Parallel()
	aggregated(t)
	ns, other := namespace(t), namespace(t)
	read := []string{"get", "list", "watch"}
	with := func(more map[string][]string) map[string][]string {
		out := map[string][]string{
			"applications": read, "releases": read, "installationtargets": read, "capacitytargets": read,
			"traffictargets": read, "rolloutblocks": read,
		}
		for resource, verbs := range more {
			out[resource] = slices.Concat(read, verbs)
		}
		return out
	}
	// Readers may read ChartSnapshots; no user may write snapshots. ResourceSnapshots have content that readers may not see.
	views := map[string][]string{
		"chartsnapshots": nil, "envelopes": nil, "approvals": nil, "notifications": nil, "checks": nil,
		"checktargets": nil, "shipyards": nil, "sequenceruns": nil, "resourceoverrides": nil, "strategies": nil,
	}
	edits := map[string][]string{
		"applications": {"create", "update", "patch", "delete", "deletecollection"}, "releases": {"update", "patch", "delete"},
		"chartsnapshots": nil, "approvals": {"create", "delete"}, "shipyards": nil,
		"sequenceruns":      {"create", "update", "patch", "delete"},
		"envelopes":         {"create", "update", "patch", "delete", "deletecollection"},
		"resourceoverrides": {"create", "update", "patch", "delete", "deletecollection"},
		"strategies":        {"create", "update", "patch", "delete", "deletecollection"},
		"notifications":     {"create", "update", "patch", "delete", "deletecollection"},
		"checks":            {"create", "update", "patch", "delete", "deletecollection"}, "checktargets": nil,
	}
	admins := maps.Clone(edits)
	admins["shipyards"] = []string{"create", "update", "patch", "delete", "deletecollection", "promote"}
	for role, more := range map[string]map[string][]string{
		viewRole: views, editRole: edits, adminRole: admins,
		sreRole: {
			"rolloutblocks": {"create", "update", "patch", "delete", "override"}, "releases": {"skip"}, "approvals": nil, "notifications": nil,
			"checks": nil, "checktargets": nil, "envelopes": nil, "resourcesnapshots": nil, "shipyards": {"override"},
			"sequenceruns": nil, "resourceoverrides": nil, "strategies": nil,
		},
		approverRole: {"releases": {"approve"}, "approvals": {"create", "delete"}, "checks": nil, "checktargets": nil,
			"shipyards": {"approve"}, "sequenceruns": nil},
	} {
		t.Run(role, func(t *testing.T) {
			local, global := "local-"+role, "global-"+role
			bind(t, ns, person(local), role)
			bind(t, "", person(global), role)
			env.Eventually(t, "RBAC to know the bindings", func(ctx context.Context) error {
				for user, where := range map[string]string{local: ns, global: ""} {
					if allowed, err := permitted(ctx, user, "watch", "rolloutblocks", "", where); err != nil || !allowed {
						return fmt.Errorf("%s may not: %w", user, err)
					}
				}
				return nil
			})
			if diff := cmp.Diff(with(more), granted(t, local, ns)); diff != "" {
				t.Errorf("where it is bound (-want +got):\n%s", diff)
			}
			for _, elsewhere := range []string{other, ""} {
				if diff := cmp.Diff(map[string][]string{}, granted(t, local, elsewhere)); diff != "" {
					t.Errorf("in namespace %q (-want +got):\n%s", elsewhere, diff)
				}
			}
			want := with(more)
			want["clusters"] = read
			if diff := cmp.Diff(want, granted(t, global, "")); diff != "" {
				t.Errorf("bound for all namespaces (-want +got):\n%s", diff)
			}
		})
	}
}

// TestRolesOfDeliveries: promoters start runs, and the account of a Shipyard writes what runs write.
func TestRolesOfDeliveries(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	read := []string{"get", "list", "watch"}
	for role, want := range map[string]map[string][]string{
		promoterRole: {
			"applications": read, "releases": read, "rolloutblocks": read, "approvals": read,
			"shipyards":    slices.Concat(read, []string{"promote"}),
			"sequenceruns": slices.Concat(read, []string{"create", "update", "patch", "delete"}),
		},
		runnerRole: {"applications": {"get", "patch"}, "releases": {"get", "patch", "delete"}},
	} {
		t.Run(role, func(t *testing.T) {
			bind(t, ns, person("with-"+role), role)
			env.Eventually(t, "RBAC to know the binding", func(ctx context.Context) error {
				if allowed, err := permitted(ctx, "with-"+role, "get", "applications", "", ns); err != nil || !allowed {
					return fmt.Errorf("it is not known: %w", err)
				}
				return nil
			})
			if diff := cmp.Diff(want, granted(t, "with-"+role, ns)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// Roles for people name no kinds but Shipper's: they must not extend what `view` and `edit` of Kubernetes grant elsewhere.
func TestRolesSpeakOfShippersKindsOnly(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		"shipper:view", "shipper:view-clusters", "shipper:edit", "shipper:shipyard-admin", sreRole, approverRole, promoterRole, runnerRole,
	} {
		role := &rbacv1.ClusterRole{}
		if err := admin.Get(t.Context(), types.NamespacedName{Name: name}, role); err != nil {
			t.Fatal(err)
		}
		for _, rule := range role.Rules {
			if diff := cmp.Diff([]string{shipper.GroupName}, rule.APIGroups); diff != "" {
				t.Errorf("%s is about (-want +got):\n%s", name, diff)
			}
		}
	}
}

// The rights of `edit` pass both RBAC and the webhook; everything else is refused.
func TestDevelopersWithTheRoleEdit(t *testing.T) {
	t.Parallel()
	aggregated(t)
	ns := namespace(t)
	bind(t, ns, person("developer"), editRole)
	developer := inGroups(t, "developer")
	env.Eventually(t, "RBAC to know the binding", func(ctx context.Context) error {
		return developer.List(ctx, &shipper.ReleaseList{}, client.InNamespace(ns))
	})
	app := application(ns, startRepository(t, "0.0.1"))
	app.APIVersion, app.Kind = shipper.GroupVersion.String(), "Application"
	//nolint:staticcheck // it applies a whole typed object, as kubectl sends it
	if err := developer.Patch(t.Context(), app, client.Apply, client.FieldOwner("kubectl")); err != nil {
		t.Fatalf("applying an Application: %v", err)
	}
	cleanUp(t, app)
	rel := release(t, app)
	create(t, as(t, reconcilerUser), rel)
	step := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"targetStep":1}}`))
	if err := developer.Patch(t.Context(), rel, step); err != nil || rel.Spec.TargetStep != 1 {
		t.Fatalf("moving a Release: it is at %d, %v", rel.Spec.TargetStep, err)
	}
	if err := developer.Delete(t.Context(), rel.DeepCopy(), client.DryRunAll); err != nil {
		t.Errorf("aborting: %v", err)
	}
	target := &shipper.InstallationTarget{
		ObjectMeta: child(rel), Spec: shipper.InstallationTargetSpec{Clusters: []string{"eu"}, CanOverride: true},
	}
	create(t, as(t, reconcilerUser), target)

	b := block(t, ns)
	another := ask.Block(ns + "/another")
	another.CreationTimestamp = metav1.Time{}
	touch := client.RawPatch(types.MergePatchType, []byte(annotations(`"a":"b"`)))
	report := client.RawPatch(types.MergePatchType, []byte(`{"status":{}}`))
	for what, err := range map[string]error{
		"makes a block":        developer.Create(t.Context(), another),
		"edits a block":        developer.Patch(t.Context(), b.DeepCopy(), touch),
		"lifts a block":        developer.Delete(t.Context(), b.DeepCopy()),
		"edits a target":       developer.Patch(t.Context(), target.DeepCopy(), touch),
		"removes a target":     developer.Delete(t.Context(), target.DeepCopy()),
		"reports on a Release": developer.Status().Patch(t.Context(), rel.DeepCopy(), report),
		"reads Clusters":       developer.List(t.Context(), &shipper.ClusterList{}),
	} {
		if err := denied(err); err != nil {
			t.Errorf("a developer %s: %v", what, err)
		}
	}
	key := b.Namespace + "/" + b.Name
	for _, o := range []client.Object{app, rel} {
		overriding := client.RawPatch(types.MergePatchType, []byte(annotations(override+`"`+key+`"`)))
		checkRefused(t, developer.Patch(t.Context(), copyOf(o), overriding),
			refused{403, `user "developer" may not override RolloutBlock ` + key})
	}
}

func TestViewersOnlyRead(t *testing.T) {
	t.Parallel()
	aggregated(t)
	ns := namespace(t)
	r := rollOut(t, ns)
	b := block(t, ns)
	bind(t, ns, person("viewer"), viewRole)
	viewer := inGroups(t, "viewer")
	objects := []client.Object{r.app, r.rel, r.capacity, r.traffic, r.install, b}
	env.Eventually(t, "RBAC to know the binding", func(ctx context.Context) error {
		return viewer.Get(ctx, client.ObjectKeyFromObject(r.app), copyOf(r.app))
	})
	touch := client.RawPatch(types.MergePatchType, []byte(annotations(`"a":"b"`)))
	for _, o := range objects {
		if err := viewer.Get(t.Context(), client.ObjectKeyFromObject(o), copyOf(o)); err != nil {
			t.Errorf("reading a %s: %v", kindOf(o), err)
		}
		for what, err := range map[string]error{
			"creates": viewer.Create(t.Context(), sibling(o)), "patches": viewer.Patch(t.Context(), copyOf(o), touch),
			"deletes": viewer.Delete(t.Context(), copyOf(o)),
		} {
			if err := denied(err); err != nil {
				t.Errorf("a viewer %s a %s: %v", what, kindOf(o), err)
			}
		}
	}
}

// An SRE needs no other role to block rollouts and to lift blocks.
func TestSREsWriteBlocks(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	bind(t, ns, team("sres"), sreRole)
	sre := inGroups(t, "sre", "sres")
	env.Eventually(t, "RBAC to know the binding", func(ctx context.Context) error {
		return sre.List(ctx, &shipper.RolloutBlockList{}, client.InNamespace(ns))
	})
	b := ask.Block(ns + "/dns-outage")
	b.CreationTimestamp = metav1.Time{}
	if err := sre.Create(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unblock(t, b) })
	narrower := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"allow":["Abort"]}}`))
	want := []shipper.RolloutBlockChange{shipper.RolloutBlockAbort}
	if err := sre.Patch(t.Context(), b, narrower); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, b.Spec.Allow, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("what passes (-want +got):\n%s", diff)
	}
	if err := sre.Delete(t.Context(), b.DeepCopy()); err != nil {
		t.Fatal(err)
	}
}
