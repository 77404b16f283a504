// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/admission/ask"
	"shipper.dev/shipper/test/env"
)

// The webhook, the schema and the policies agree on an Application without a chart.
func TestResourcesAreAdmittedWithTheRightsOfTheirAuthor(t *testing.T) {
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
	pinned := app.DeepCopy()
	ask.PinnedTo("a")(pinned)
	checkRefused(t, placer.Update(t.Context(), pinned.DeepCopy()), refused{403, "pins are written by Shipper: leave them out"})
	if err := as(t, reconcilerUser).Update(t.Context(), pinned.DeepCopy()); err != nil {
		t.Errorf("the reconciler pins content: %v", err)
	}
	role := &shipper.Envelope{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "hidden"}, Spec: shipper.EnvelopeSpec{
		Manifests: []shipper.Manifest{{
			"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": map[string]any{"name": "admin"},
		}},
	}}
	checkRefused(t, placer.Create(t.Context(), role), refused{403, `that needs the verb "place" on it`})
}

// Content of Secrets is kept in a type of Secret that users may not create.
func TestSecretsOfSnapshotsAreMadeByShipper(t *testing.T) {
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
