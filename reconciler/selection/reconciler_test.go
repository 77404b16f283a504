// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/event"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

func TestAnApplicationThatIsAsBeforeAFailedPassIsRead(t *testing.T) {
	app := &shipper.Application{ObjectMeta: metav1.ObjectMeta{Namespace: "work", Name: "web", UID: "app"}}
	app.Spec.Template.Resources = &shipper.Resources{Select: []shipper.ResourceSelector{{Kind: "ConfigMap"}}}
	selected := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "work", Name: "a"}}
	c := newCluster(t, app, selected)
	r := c.process(t)
	// reconcile sets the refresh annotation, and returns the reason of the condition; empty if it is True.
	reconcile := func(refresh string) string {
		t.Helper()
		if err := c.Get(t.Context(), key("web"), app); err != nil {
			t.Fatal(err)
		}
		metav1.SetMetaDataAnnotation(&app.ObjectMeta, shipper.AppResourcesRefreshAnnotation, refresh)
		if err := c.Update(t.Context(), app); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: key("web")}); err != nil {
				t.Fatal(err)
			}
		}
		if err := c.Get(t.Context(), key("web"), app); err != nil {
			t.Fatal(err)
		}
		return shipper.FindCondition(app.Status.Conditions, shipper.ApplicationResourcesSelected).Reason
	}
	if reason := reconcile(""); reason != "" {
		t.Fatalf("at first it is False: %s", reason)
	}
	if err := c.Delete(t.Context(), selected); err != nil {
		t.Fatal(err)
	}
	if reason := reconcile("x"); reason != shipper.SelectionEmpty {
		t.Fatalf("without objects the reason is %q", reason)
	}
	selected.ResourceVersion = ""
	if err := c.Create(t.Context(), selected); err != nil {
		t.Fatal(err)
	}
	if reason := reconcile(""); reason != "" {
		t.Errorf("it stays False: %s", reason)
	}
}

func TestContentIsTakenAfterTheFirstStatus(t *testing.T) {
	app := &shipper.Application{ObjectMeta: metav1.ObjectMeta{Namespace: "work", Name: "web", UID: "app"}}
	app.Spec.Template.Resources = &shipper.Resources{Select: []shipper.ResourceSelector{{Kind: "ConfigMap"}}}
	c := newCluster(t, app, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "work", Name: "a"}})
	r := c.process(t)
	begun := app.DeepCopy()
	app.Status.Conditions = nil
	if err := c.Status().Update(t.Context(), app); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: key("web")}); err != nil || c.writes > 0 {
		t.Fatalf("before there is a status: %d writes, %v", c.writes, err)
	}
	if !concernsResources().Update(event.UpdateEvent{ObjectOld: app, ObjectNew: begun}) {
		t.Error("the first status makes no pass")
	}
	if concernsResources().Update(event.UpdateEvent{ObjectOld: begun, ObjectNew: begun}) {
		t.Error("a later status makes a pass")
	}
}
