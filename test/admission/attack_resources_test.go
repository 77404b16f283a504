// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"shipper.dev/shipper/apis/rules/stamp"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/admission/ask"
	"shipper.dev/shipper/test/env"
)

// TestThePolicyAloneKeepsWhatOthersPlace changes and deletes, with both webhook configurations deleted, what an administrator has placed
// from other namespaces.
func TestThePolicyAloneKeepsWhatOthersPlace(t *testing.T) {
	ns := namespace(t)
	places(t, "placer", "", "namespaces", "payments")
	places(t, "placer", rbacv1.GroupName, "clusterroles", "guard")
	withoutWebhooks(t)
	placing := func(name string, edit func(*shipper.Application), selectors ...shipper.ResourceSelector) *shipper.Application {
		app := ask.Application(ask.Placing(selectors...))
		app.Namespace, app.Name, app.UID = ns, name, ""
		if edit != nil {
			edit(app)
		}
		create(t, admin, app)
		return app
	}
	keeps := func(app *shipper.Application) { app.Spec.Template.Resources.Removal = shipper.RemovalNone }
	payments := shipper.ResourceSelector{Kind: "ConfigMap", Namespace: "payments"}
	guard := shipper.ResourceSelector{Group: rbacv1.GroupName, Kind: "ClusterRole", Name: "guard"}
	own := shipper.ResourceSelector{Kind: "ConfigMap", Name: "web"}
	envelope := shipper.ResourceSelector{Group: shipper.GroupName, Kind: "Envelope", Name: "guard"}
	custom := shipper.ResourceSelector{Group: "example.com", Kind: "Widget", Name: "a"}
	others, mine := placing("others", nil, own, payments, guard), placing("mine", nil, own)
	enveloped := placing("enveloped", ask.Annotated(shipper.ContentRightsAnnotation,
		"namespaces/payments,clusterroles.rbac.authorization.k8s.io/guard"), envelope)
	unknown, kept := placing("unknown", nil, custom), placing("kept", keeps, payments)
	complete := func(of *shipper.Application, content string, status corev1.ConditionStatus, existing ...*shipper.Release) *shipper.Release {
		rel := release(t, stamp.WithContent(of, existing, strings.Repeat(content, 64)), existing...)
		create(t, admin, rel)
		rel.Status.Conditions = []shipper.Condition{{Type: shipper.ReleaseComplete, Status: status, LastTransitionTime: metav1.Now()}}
		if err := admin.Status().Update(t.Context(), rel); err != nil {
			t.Fatal(err)
		}
		return rel
	}
	served := complete(others, "a", corev1.ConditionTrue)
	begun := complete(others, "b", corev1.ConditionFalse, served)
	const lacks = `that needs the verb "place" on namespaces/payments, which user dev does not have`
	update := func(app *shipper.Application, edit func(*shipper.Application)) func(*user) error {
		return func(by *user) error {
			next := app.DeepCopy()
			delete(next.Annotations, shipper.AppSelectedByAnnotation)
			edit(next)
			return by.Update(t.Context(), next, client.DryRunAll)
		}
	}
	remove := func(o client.Object) func(*user) error {
		return func(by *user) error { return by.Delete(t.Context(), o, client.DryRunAll) }
	}
	drift := func(app *shipper.Application) { app.Spec.DriftPolicy = shipper.DriftCorrect }
	owned := func(app *shipper.Application) { app.OwnerReferences = ownedByNobody }
	env.Eventually(t, "the rights to be known", func(context.Context) error { return remove(others)(as(t, "placer")) })
	for name, tc := range map[string]struct {
		try     func(*user) error
		user    string
		message string
	}{
		"narrows what is selected": {update(others, func(app *shipper.Application) {
			app.Spec.Template.Resources.Select = app.Spec.Template.Resources.Select[:1]
		}), "dev", lacks},
		"a chart instead": {update(others, func(app *shipper.Application) {
			app.Spec.Template = ask.Application().Spec.Template
		}), "dev", lacks},
		"corrects drift":                {update(others, drift), "dev", lacks},
		"corrects drift with the right": {update(others, drift), "placer", ""},
		"takes it again":                {update(others, ask.Annotated(shipper.AppResourcesRefreshAnnotation, "1")), "dev", lacks},
		"gives it an owner":             {update(others, owned), "dev", lacks},
		"writes another annotation":     {update(others, ask.Annotated("note", "x")), "dev", ""},
		"deletes it":                    {remove(others), "dev", lacks},
		"deletes it with the right":     {remove(others), "placer", ""},
		"deletes it, as the collector":  {remove(others), collector, ""},
		"deletes what is kept":          {remove(kept), "dev", ""},
		"deletes their own":             {remove(mine), "dev", ""},
		"changes their own":             {update(mine, drift), "dev", ""},
		"corrects drift of an Envelope": {update(enveloped, drift), "dev", lacks},
		"gives an Envelope's an owner":  {update(enveloped, owned), "dev", lacks},
		"takes the record away": {update(enveloped, func(app *shipper.Application) {
			delete(app.Annotations, shipper.ContentRightsAnnotation)
		}), "dev", shipper.ContentRightsAnnotation + " is written by Shipper"},
		"deletes an Envelope's":                {remove(enveloped), "dev", lacks},
		"deletes an Envelope's with the right": {remove(enveloped), "placer", ""},
		"deletes a kind that may be anything":  {remove(unknown), "dev", `"place" on widgets.example.com/a`},
		"deletes a complete Release":           {remove(served), "dev", lacks},
		"deletes one with the right":           {remove(served), "placer", ""},
		"aborts a rollout":                     {remove(begun), "dev", ""},
	} {
		t.Run(name, func(t *testing.T) {
			err := tc.try(as(t, tc.user))
			if tc.message == "" && err != nil {
				t.Errorf("refused: %v", err)
			}
			if tc.message != "" {
				checkRefused(t, err, refused{403, tc.message})
			}
		})
	}
}

// keepsWhatOthersPlace tries, as a user with edit in a namespace, to use an administrator's rights to place Roles of no namespace.
func keepsWhatOthersPlace(t *testing.T, ns string, by client.Client) {
	t.Helper()
	bind(t, "", rbacv1.Subject{
		Kind: rbacv1.ServiceAccountKind, Namespace: shipper.SystemNamespace, Name: shipper.ManagementServiceAccount,
	}, "shipper-selector")
	app := ask.Application(ask.Placing(
		shipper.ResourceSelector{Kind: "ConfigMap", Name: "web"},
		shipper.ResourceSelector{Group: rbacv1.GroupName, Kind: "ClusterRole", Name: "guard"},
	))
	app.Namespace, app.Name, app.UID = ns, "others", ""
	env.Eventually(t, "Shipper to read what is selected", func(ctx context.Context) error { return admin.Create(ctx, app) })
	cleanUp(t, app)
	const lacks = `you may not place clusterroles.rbac.authorization.k8s.io "guard" on clusters: that needs the verb "place" on it`
	enveloped := ask.Application(ask.Annotated(shipper.ContentRightsAnnotation, "namespaces/payments"), ask.Placing(
		shipper.ResourceSelector{Group: shipper.GroupName, Kind: "Envelope", Name: "guard"}))
	enveloped.Namespace, enveloped.Name, enveloped.UID = ns, "enveloped", ""
	create(t, admin, enveloped)
	drifts := enveloped.DeepCopy()
	drifts.Spec.DriftPolicy = shipper.DriftCorrect
	checkRefused(t, by.Update(t.Context(), drifts, client.DryRunAll), refused{403, "an Envelope has objects of others: you may not place"})
	for name, edit := range map[string]func(*shipper.Application){
		"narrows": func(app *shipper.Application) {
			app.Spec.Template.Resources.Select = app.Spec.Template.Resources.Select[:1]
		},
		"takes over": func(app *shipper.Application) {
			app.Spec.Template.Apply = &shipper.Apply{TakeOver: shipper.TakeOverAlways}
		},
		"keeps":         func(app *shipper.Application) { app.Spec.Template.Resources.Removal = shipper.RemovalNone },
		"corrects":      func(app *shipper.Application) { app.Spec.DriftPolicy = shipper.DriftCorrect },
		"refreshes":     ask.Annotated(shipper.AppResourcesRefreshAnnotation, "1"),
		"gets an owner": func(app *shipper.Application) { app.OwnerReferences = ownedByNobody },
	} {
		next := app.DeepCopy()
		edit(next)
		t.Run(name, func(t *testing.T) {
			checkRefused(t, by.Update(t.Context(), next, client.DryRunAll), refused{403, lacks})
		})
	}
	checkRefused(t, by.Delete(t.Context(), app, client.DryRunAll), refused{403, "deleting it removes what it has placed: " +
		"spec.template.resources.select[1]: " + lacks})
	if err := as(t, collector).Delete(t.Context(), app, client.DryRunAll); err != nil {
		t.Errorf("with its owner: %v", err)
	}
}

// ownedByNobody is an owner that does not exist: the garbage collector would delete the object at once.
var ownedByNobody = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "none", UID: "none"}}
