// SPDX-License-Identifier: Apache-2.0

package neighbours

import (
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"shipper.dev/shipper/apis/rules/shipyard"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/bench/runs"
	"shipper.dev/shipper/test/bench/world"
	"shipper.dev/shipper/test/pod"
)

// What the tenant does, in the order of the table.
const write, refresh, delivery = "a write", "a refresh", "a run"

var operations = []string{write, refresh, delivery}

// tenant is the one that is measured. Each of its operations is done by one goroutine at a time.
type tenant struct {
	client.WithWatch
	namespace             string
	world                 *world.World
	sight                 *world.Sight
	writes, changes, runs int
}

// newTenant makes the tenant, with an Application that places a ConfigMap.
func newTenant(ctx context.Context, w *world.World) (*tenant, error) {
	t := &tenant{namespace: "tenant", world: w}
	var err error
	if t.WithWatch, err = newUser(ctx, w, t.namespace); err != nil {
		return nil, err
	}
	if err := errors.Join(selects(ctx, w), runs.MakeYards(ctx, w, t.namespace)); err != nil {
		return nil, err
	}
	if t.sight, err = w.Look(ctx); err != nil {
		return nil, err
	}
	content := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: t.namespace, Name: "content"}}
	if err := errors.Join(t.Create(ctx, content), t.Create(ctx, placing(w, t.namespace, "app", "content"))); err != nil {
		return nil, err
	}
	return t, t.sight.Until(ctx, []client.ObjectKey{t.app()}, func(_ *shipper.Application, rel *shipper.Release) bool { return rel != nil })
}

// newUser makes a namespace, and a client of a user who may do everything in it: requests of an administrator would have no turns in the
// API server.
func newUser(ctx context.Context, w *world.World, namespace string) (client.WithWatch, error) {
	if err := w.MakeNamespace(ctx, namespace, 1); err != nil {
		return nil, err
	}
	err := w.Management.Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "all"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: namespace}},
	})
	if err != nil {
		return nil, fmt.Errorf("granting rights in namespace %s: %w", namespace, err)
	}
	config := rest.CopyConfig(w.Fleet.Management.Config)
	config.QPS, config.WarningHandler = -1, rest.NoWarnings{}
	config.Impersonate = rest.ImpersonationConfig{UserName: namespace, Groups: []string{"system:authenticated"}}
	return pod.NewClient(config)
}

// selects lets Shipper read what is selected.
func selects(ctx context.Context, w *world.World) error {
	return w.Management.Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: shipper.ResourceSelectorRole},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: shipper.ResourceSelectorRole},
		Subjects: []rbacv1.Subject{{
			Kind: rbacv1.ServiceAccountKind, Namespace: shipper.SystemNamespace, Name: shipper.ManagementServiceAccount,
		}},
	})
}

// placing is an Application that places the ConfigMap of a name, or if that is empty those with its own name as a label.
func placing(w *world.World, namespace, name, configMap string) *shipper.Application {
	app := w.Application(namespace, 1, 1)
	app.Name = name
	app.Spec.Template.Chart, app.Spec.Template.Values, app.Spec.Template.Strategy = shipper.Chart{}, nil, nil
	selector := shipper.ResourceSelector{Kind: "ConfigMap", Name: configMap}
	if configMap == "" {
		selector.LabelSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"of": name}}
	}
	app.Spec.Template.Resources = &shipper.Resources{Select: []shipper.ResourceSelector{selector}, Removal: shipper.RemovalNone}
	return app
}

func (t *tenant) app() client.ObjectKey { return client.ObjectKey{Namespace: t.namespace, Name: "app"} }

// operations are what is measured, by name.
func (t *tenant) operations() map[string]func(context.Context) error {
	return map[string]func(context.Context) error{write: t.write, refresh: t.refresh, delivery: t.deliver}
}

// write has a Check with a new query and expression judged, and an Application that names a kind which is not served.
func (t *tenant) write(ctx context.Context) error {
	t.writes++
	c := &shipper.Check{
		ObjectMeta: metav1.ObjectMeta{Namespace: t.namespace, Name: "own"},
		Spec: shipper.CheckSpec{
			Prometheus: &shipper.PrometheusCheck{Queries: map[string]shipper.CheckQuery{
				"new": shipper.CheckQuery(fmt.Sprintf("sum(up) + %d", t.writes)),
			}},
			Pass: fmt.Sprintf("new > %d.0", t.writes),
		},
	}
	if err := t.Create(ctx, c, client.DryRunAll); err != nil {
		return err
	}
	app := placing(t.world, t.namespace, "own", "a")
	app.Spec.Template.Resources.Select[0].Group, app.Spec.Template.Resources.Select[0].Kind = "example.net", fmt.Sprintf("Own%d", t.writes)
	if err := t.Create(ctx, app, client.DryRunAll); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "does not serve") {
		return fmt.Errorf("a kind that is not served: %w", err)
	}
	return nil
}

// refresh changes what is selected, and waits for the Release of it.
func (t *tenant) refresh(ctx context.Context) error {
	t.changes++
	was := t.sight.Newest(t.app()).Name
	content := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: t.namespace, Name: "content"}}
	patch := fmt.Appendf(nil, `{"data":{"n":"%d"}}`, t.changes)
	if err := t.Patch(ctx, content, client.RawPatch(types.MergePatchType, patch)); err != nil {
		return err
	}
	return t.sight.Until(ctx, []client.ObjectKey{t.app()}, func(_ *shipper.Application, rel *shipper.Release) bool {
		return rel != nil && rel.Name != was
	})
}

// deliver starts a run, and waits until it has finished.
func (t *tenant) deliver(ctx context.Context) error {
	t.runs++
	run := runs.Delivery(t.namespace, t.runs)
	watch, err := t.Watch(ctx, &shipper.SequenceRunList{}, client.InNamespace(t.namespace), client.MatchingFields{"metadata.name": run.Name})
	if err != nil {
		return err
	}
	defer watch.Stop()
	if err := t.Create(ctx, run); err != nil {
		return err
	}
	for event := range watch.ResultChan() {
		if is, ok := event.Object.(*shipper.SequenceRun); ok && shipyard.IsFinished(is) {
			return nil
		}
	}
	return fmt.Errorf("the watch of run %s ended: %w", run.Name, context.Cause(ctx))
}
