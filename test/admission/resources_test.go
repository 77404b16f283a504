// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"shipper.dev/shipper/apis/rules/rights"
	"shipper.dev/shipper/apis/rules/stamp"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/admission/ask"
	"shipper.dev/shipper/test/env"
)

// The webhook, the schema and the policies agree on an Application without a chart.
func TestResourcesAreAdmittedWithTheRightsOfTheirAuthor(t *testing.T) {
	t.Parallel()
	aggregated(t)
	ns := namespace(t)
	bind(t, ns, person("placer"), editRole)
	bind(t, ns, rbacv1.Subject{
		Kind: rbacv1.ServiceAccountKind, Namespace: shipper.SystemNamespace, Name: shipper.ManagementServiceAccount,
	}, "shipper-selector")
	create(t, admin, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "web"}})
	placer := inGroups(t, "placer", "team-a", `a "quoted" group`)
	app := ask.Application(ask.Placing(shipper.ResourceSelector{Kind: "ConfigMap", Name: "web"}))
	app.Namespace, app.UID = ns, ""
	env.Eventually(t, "the rights to be known", func(ctx context.Context) error { return placer.Create(ctx, app) })
	cleanUp(t, app)
	var by shipper.Selector
	if err := json.Unmarshal([]byte(app.Annotations[shipper.AppSelectedByAnnotation]), &by); err != nil {
		t.Fatal(err)
	}
	want := shipper.Selector{Username: "placer", Groups: []string{"team-a", `a "quoted" group`, "system:authenticated"}}
	if diff := cmp.Diff(want, by); diff != "" {
		t.Errorf("selected by (-want +got):\n%s", diff)
	}

	other := app.DeepCopy()
	other.Spec.Template.Resources.Select[0] = shipper.ResourceSelector{Kind: "Secret", Namespace: "payments", Name: "web"}
	checkRefused(t, placer.Update(t.Context(), other), refused{403, `you may not place namespaces "payments" on clusters`})
	digested := app.DeepCopy()
	ask.Content("a")(digested)
	for _, user := range []client.Client{placer, as(t, reconcilerUser)} {
		checkRefused(t, user.Update(t.Context(), digested.DeepCopy()), refused{422, "Shipper writes it in Releases: leave it out"})
	}
	t.Run("what an administrator selected", func(t *testing.T) { keepsWhatOthersPlace(t, ns, placer) })
	role := &shipper.Envelope{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "hidden"}, Spec: shipper.EnvelopeSpec{
		Manifests: []shipper.Manifest{{
			"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": map[string]any{"name": "admin"},
		}},
	}}
	checkRefused(t, placer.Create(t.Context(), role), refused{403, `that needs the verb "place" on it`})
}

// placeContent creates an Application with resources in a namespace, and a Release of content.
func placeContent(t *testing.T, ns string) rolledOut {
	t.Helper()
	bind(t, ns, rbacv1.Subject{
		Kind: rbacv1.ServiceAccountKind, Namespace: shipper.SystemNamespace, Name: shipper.ManagementServiceAccount,
	}, "shipper-selector")
	r := rolledOut{app: ask.Application(ask.Placing(shipper.ResourceSelector{Kind: "ConfigMap", Name: "web"}))}
	r.app.Namespace, r.app.Name, r.app.UID = ns, "placing", ""
	env.Eventually(t, "the rights to be known", func(ctx context.Context) error { return admin.Create(ctx, r.app) })
	cleanUp(t, r.app)
	r.rel = release(t, stamp.WithContent(r.app, nil, strings.Repeat("a", 64)))
	create(t, as(t, reconcilerUser), r.rel)
	return r
}

// placingContent creates a Release of other content, as Shipper does when what is selected has changed.
func placingContent(at *lineCase, by *user) error {
	existing := []*shipper.Release{at.content.rel}
	rel := release(at.T, stamp.WithContent(at.content.app, existing, strings.Repeat("b", 64)), existing...)
	return by.Create(at.Context(), rel, client.DryRunAll)
}

// TestThePolicyAloneKeepsTheUserWhoSelects changes what another user's Application selects, with both webhook configurations deleted.
func TestThePolicyAloneKeepsTheUserWhoSelects(t *testing.T) {
	ns := namespace(t)
	grant(t, "stamper", "stamp", "applications")
	app := ask.Application(ask.Placing(shipper.ResourceSelector{Kind: "ConfigMap", Name: "web"}), ask.SelectedBy("ann"))
	app.Namespace, app.UID = ns, ""
	withoutWebhooks(t)
	created := app.DeepCopy()
	delete(created.Annotations, shipper.AppSelectedByAnnotation)
	create(t, as(t, "dev"), created)
	created.Annotations = app.Annotations
	env.Eventually(t, "a record of the user, from a user who may stamp", func(ctx context.Context) error {
		return as(t, "stamper").Update(ctx, created)
	})
	own, err := rights.FormatSelector(authenticationv1.UserInfo{Username: "dev", Groups: []string{editors, "system:authenticated"}})
	if err != nil {
		t.Fatal(err)
	}
	selects := func(app *shipper.Application) { app.Spec.Template.Resources.Select[0].Name = "other" }
	by := func(text string) func(*shipper.Application) {
		return ask.Annotated(shipper.AppSelectedByAnnotation, text)
	}
	unrecorded := func(app *shipper.Application) { delete(app.Annotations, shipper.AppSelectedByAnnotation) }
	refreshes := ask.Annotated(shipper.AppResourcesRefreshAnnotation, "1")
	applies := func(app *shipper.Application) {
		app.Spec.Template.Apply = &shipper.Apply{TakeOver: shipper.TakeOverAlways}
	}
	moves := func(app *shipper.Application) {
		app.Spec.Template.ClusterRequirements = shipper.ClusterRequirements{Placement: &shipper.Placement{Type: shipper.PickAll}}
	}
	rollsBack := ask.Annotated(shipper.AppRolledBackToAnnotation, "web-1-0")
	const chooses = "remove the annotation. Shipper takes no content without it; set annotation " + shipper.AppResourcesRefreshAnnotation
	for name, tc := range map[string]struct {
		user    string
		edits   []func(*shipper.Application)
		message string
	}{
		"selects with the rights of another":                   {"dev", []func(*shipper.Application){selects}, chooses},
		"refreshes with the rights of another":                 {"dev", []func(*shipper.Application){refreshes}, chooses},
		"changes how it is written with the rights of another": {"dev", []func(*shipper.Application){applies}, chooses},
		"places it elsewhere with the rights of another":       {"dev", []func(*shipper.Application){moves}, chooses},
		"rolls back with the rights of another":                {"dev", []func(*shipper.Application){rollsBack}, chooses},
		"changes how it is written without a record":           {"dev", []func(*shipper.Application){applies, unrecorded}, ""},
		"selects for a third user":                             {"dev", []func(*shipper.Application){selects, by(`{"username":"bob"}`)}, chooses},
		"selects without a record":                             {"dev", []func(*shipper.Application){selects, unrecorded}, ""},
		"refreshes without a record":                           {"dev", []func(*shipper.Application){refreshes, unrecorded}, ""},
		"selects as the recorded user":                         {"dev", []func(*shipper.Application){selects, by(own)}, ""},
		"removes the record alone": {
			"dev", []func(*shipper.Application){unrecorded}, "is written by Shipper: leave it as it is",
		},
		"writes another annotation":       {"dev", []func(*shipper.Application){ask.Annotated("note", "x")}, ""},
		"selects as a user who may stamp": {"stamper", []func(*shipper.Application){selects}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			next := created.DeepCopy()
			for _, edit := range tc.edits {
				edit(next)
			}
			err := as(t, tc.user).Update(t.Context(), next, client.DryRunAll)
			if tc.message == "" && err != nil {
				t.Errorf("refused: %v", err)
			}
			if tc.message != "" {
				checkRefused(t, err, refused{403, tc.message})
			}
		})
	}
	forged := app.DeepCopy()
	forged.Name += "-2"
	checkRefused(t, as(t, "dev").Create(t.Context(), forged, client.DryRunAll), refused{403, chooses})
}

// TestThePolicyAloneJudgesEnvelopes writes manifests that their author may not place, with both webhook configurations deleted.
func TestThePolicyAloneJudgesEnvelopes(t *testing.T) {
	ns := namespace(t)
	places(t, "placer", "", "namespaces", "payments")
	places(t, "placer", rbacv1.GroupName, "clusterroles", "guard")
	places(t, "placer", "networking.example.com", "widgetpolicies", "")
	places(t, "mover", "", "namespaces", "")
	bind(t, "", person("root"), "cluster-admin")
	withoutWebhooks(t)
	manifest := func(apiVersion, kind, namespace, name string) shipper.Manifest {
		meta := map[string]any{"name": name}
		if namespace != "" {
			meta["namespace"] = namespace
		}
		return shipper.Manifest{"apiVersion": apiVersion, "kind": kind, "metadata": meta}
	}
	const rbac = "rbac.authorization.k8s.io/v1"
	own := manifest("v1", "ConfigMap", "", "a")
	elsewhere, guard := manifest("v1", "ConfigMap", "payments", "a"), manifest(rbac, "ClusterRole", "", "guard")
	var many []shipper.Manifest
	for i := range 200 {
		many = append(many, manifest("v1", "ConfigMap", fmt.Sprintf("team-%d", i), "a"), manifest("v1", "ConfigMap", "", fmt.Sprint(i)))
	}
	judged := func(user string, manifests ...shipper.Manifest) error {
		return as(t, user).Create(t.Context(), &shipper.Envelope{
			ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "new"}, Spec: shipper.EnvelopeSpec{Manifests: manifests},
		}, client.DryRunAll)
	}
	env.Eventually(t, "the rights to be known", func(context.Context) error {
		return errors.Join(judged("placer", elsewhere, guard), judged("mover", elsewhere), judged("root", many[:200]...))
	})
	denied := func(object string) string {
		return "may not place " + object + ` on clusters: that needs the verb "place" on it`
	}
	for name, tc := range map[string]struct {
		user      string
		manifests []shipper.Manifest
		message   string
	}{
		"of the own namespace": {"dev", []shipper.Manifest{
			own, manifest("v1", "ConfigMap", ns, "b"), manifest("example.com/v1", "Widget", ns, "a"),
		}, ""},
		"of another namespace":                           {"dev", []shipper.Manifest{own, elsewhere}, denied(`namespaces "payments"`)},
		"of another namespace, by a user with the right": {"placer", slices.Repeat([]shipper.Manifest{elsewhere}, 200), ""},
		"of a third namespace": {
			"placer", []shipper.Manifest{elsewhere, manifest("v1", "ConfigMap", "vault", "a")}, denied(`namespaces "vault"`),
		},
		"of a kind without a namespace": {
			"dev", []shipper.Manifest{guard}, denied(`clusterroles.rbac.authorization.k8s.io "guard"`),
		},
		"of a kind without a namespace, by another name": {
			"placer", []shipper.Manifest{manifest(rbac, "ClusterRole", "", "admin")}, denied(`clusterroles.rbac.authorization.k8s.io "admin"`),
		},
		"of a Namespace": {"placer", []shipper.Manifest{manifest("v1", "Namespace", "", "payments")}, ""},
		"of a kind that may have a namespace": {
			"dev", []shipper.Manifest{manifest("example.com/v1", "Widget", "", "a")},
			"or metadata.namespace in the manifest if its kind has namespaces",
		},
		"of a kind with another plural": {
			"placer", []shipper.Manifest{manifest("networking.example.com/v1", "WidgetPolicy", "", "a")}, "",
		},
		"of a Secret": {
			"root", []shipper.Manifest{manifest("v1", "Secret", "", "a")}, "an Envelope shows its content to all who may read it",
		},
		"of a Role in the own namespace": {"placer", []shipper.Manifest{manifest(rbac, "Role", "", "a")}, denied(`namespaces "` + ns + `"`)},
		"of a RoleBinding in the own namespace": {
			"placer", []shipper.Manifest{manifest(rbac, "RoleBinding", ns, "a")}, denied(`namespaces "` + ns + `"`),
		},
		"of a Role, by a user with the right": {"mover", []shipper.Manifest{manifest(rbac, "Role", "", "a")}, ""},
		"of a kind of another group": {
			"dev", []shipper.Manifest{manifest("example.com/v1", "ConfigMap", "", "a")}, denied(`configmaps.example.com "a"`),
		},
		"of many namespaces": {"mover", many[:200], "these manifests need more than 12 rights to place an object or a namespace"},
	} {
		t.Run(name, func(t *testing.T) {
			err := judged(tc.user, tc.manifests...)
			if tc.message == "" && err != nil {
				t.Errorf("refused: %v", err)
			}
			if tc.message != "" {
				checkRefused(t, err, refused{403, tc.message})
			}
		})
	}
	t.Run("of which some were there", func(t *testing.T) {
		envelope := &shipper.Envelope{
			ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "old"}, Spec: shipper.EnvelopeSpec{Manifests: []shipper.Manifest{elsewhere, guard}},
		}
		create(t, as(t, "placer"), envelope)
		next := envelope.DeepCopy()
		next.Spec.Manifests = append(next.Spec.Manifests, own)
		if err := as(t, "dev").Update(t.Context(), next, client.DryRunAll); err != nil {
			t.Errorf("refused: %v", err)
		}
		next.Spec.Manifests[0]["data"] = map[string]any{"a": "b"}
		checkRefused(t, as(t, "dev").Update(t.Context(), next, client.DryRunAll), refused{403, denied(`namespaces "payments"`)})
		for name, edit := range map[string]func(*shipper.Envelope){
			"one that is taken away": func(e *shipper.Envelope) { e.Spec.Manifests = []shipper.Manifest{own, guard} },
			"other labels":           func(e *shipper.Envelope) { e.Labels = map[string]string{"a": "b"} },
			"an owner": func(e *shipper.Envelope) {
				e.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "own", UID: "own"}}
			},
		} {
			changed := envelope.DeepCopy()
			edit(changed)
			if err := as(t, "placer").Update(t.Context(), changed.DeepCopy(), client.DryRunAll); err != nil {
				t.Errorf("%s, with the right: %v", name, err)
			}
			err := as(t, "dev").Update(t.Context(), changed, client.DryRunAll)
			checkRefused(t, err, refused{403, denied(`namespaces "payments"`)})
		}
		checkRefused(t, as(t, "dev").Delete(t.Context(), envelope, client.DryRunAll), refused{403, denied(`namespaces "payments"`)})
		for _, by := range []string{"placer", collector} {
			if err := as(t, by).Delete(t.Context(), envelope, client.DryRunAll); err != nil {
				t.Errorf("deleted by %s: %v", by, err)
			}
		}
	})
}

// places grants a user the verb place on an object, or on all of a resource.
func places(t *testing.T, name, group, resource, object string) {
	t.Helper()
	rule := rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: []string{"place"}}
	if object != "" {
		rule.ResourceNames = []string{object}
	}
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}, Rules: []rbacv1.PolicyRule{rule}}
	create(t, admin, role)
	bind(t, "", person(name), role.Name)
}

// TestShipperWritesNothingOfAClusterButItsFinalizer tries, as Shipper's account, what RBAC allows it and the policy does not.
func TestShipperWritesNothingOfAClusterButItsFinalizer(t *testing.T) {
	t.Parallel()
	cluster := &shipper.Cluster{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "test-", Finalizers: []string{"example.com/other"}},
		Spec:       shipper.ClusterSpec{Region: "eu", APIMaster: "https://10.0.0.1"},
	}
	create(t, admin, cluster)
	const message = "Shipper changes nothing in a Cluster but its finalizer, shipper.booking.com/cluster, and its status"
	for name, tc := range map[string]struct {
		edit    func(*shipper.Cluster)
		message string
	}{
		"its finalizer": {func(c *shipper.Cluster) { c.Finalizers = append(c.Finalizers, shipper.ClusterFinalizer) }, ""},
		"the address":   {func(c *shipper.Cluster) { c.Spec.APIMaster = "https://10.0.0.2" }, message},
		"the address of its metrics": {func(c *shipper.Cluster) {
			c.Spec.Metrics = &shipper.ClusterMetrics{Address: "https://10.0.0.2"}
		}, message},
		"a taint": {func(c *shipper.Cluster) {
			c.Spec.Taints = []shipper.ClusterTaint{{Key: "a", Effect: shipper.TaintNoSchedule}}
		}, message},
		"what becomes of its content": {func(c *shipper.Cluster) { c.Spec.OnLeave = shipper.OnLeaveRemove }, message},
		"a label":                     {func(c *shipper.Cluster) { c.Labels = map[string]string{"a": "b"} }, message},
		"an annotation":               {func(c *shipper.Cluster) { c.Annotations = map[string]string{"a": "b"} }, message},
		"another finalizer":           {func(c *shipper.Cluster) { c.Finalizers = nil }, message},
		"an owner": {func(c *shipper.Cluster) {
			c.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Namespace", Name: "a", UID: "a"}}
		}, message},
	} {
		t.Run(name, func(t *testing.T) {
			now := cluster.DeepCopy()
			tc.edit(now)
			err := as(t, reconcilerUser).Patch(t.Context(), now, client.MergeFrom(cluster), client.DryRunAll)
			if tc.message == "" && err != nil {
				t.Errorf("refused: %v", err)
			}
			if tc.message != "" {
				checkRefused(t, err, refused{403, tc.message})
			}
		})
	}
}

// Content of Secrets is kept in a type of Secret that users may not create.
func TestSecretsOfSnapshotsAreMadeByShipper(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	bind(t, ns, person("keeper"), adminRole)
	keeper := inGroups(t, "keeper")
	kept := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "a"}, Type: shipper.ResourcesSecretType}
	env.Eventually(t, "the policy to refuse it", func(ctx context.Context) error {
		err := keeper.Create(ctx, kept.DeepCopy(), client.DryRunAll)
		if err == nil || !strings.Contains(err.Error(), "Secrets of type shipper.booking.com/resources are made by Shipper") {
			return fmt.Errorf("it says: %w", err) // RBAC, until it knows the binding
		}
		return nil
	})
	other := kept.DeepCopy()
	other.Type = corev1.SecretTypeOpaque
	create(t, keeper, other)
}
