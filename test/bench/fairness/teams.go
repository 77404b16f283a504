// SPDX-License-Identifier: Apache-2.0

package fairness

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/bench/world"
)

const (
	clusters = 2
	writers  = 32            // writes at a time, when all Applications are edited
	patience = 2 * time.Hour // for all of them
	maxWait  = 4             // times as long as with nothing else going on
	crowded  = "team-a"
	other    = "team-b"
	// replicas is how many Pods what is aborted has in each cluster: an abort has to bring one of them back.
	replicas = 2
)

var (
	fullOn = world.Step("full on", 0, 100, 0, 100)
	half   = world.Step("half", 50, 50, 50, 50)
)

// teams are two, in a world.
type teams struct {
	*world.World
	sight *world.Sight
	all   []client.ObjectKey // the Applications of the first
	one   client.ObjectKey   // that of the second
	edits int                // of it
}

// newTeams makes them, and waits until all of theirs is rolled out.
func newTeams(ctx context.Context, w *world.World, f Fairness) (*teams, error) {
	sight, err := w.Look(ctx)
	if err != nil {
		return nil, err
	}
	t := &teams{World: w, sight: sight, one: client.ObjectKey{Namespace: other, Name: "app"}}
	for i := range f.Applications {
		t.all = append(t.all, client.ObjectKey{Namespace: crowded, Name: fmt.Sprint("app-", i)})
	}
	for _, namespace := range []string{crowded, other} {
		if err := w.MakeNamespace(ctx, namespace, clusters); err != nil {
			return nil, err
		}
	}
	ctx, cancel := bounded(ctx)
	defer cancel()
	there := append([]client.ObjectKey{t.one}, t.all...)
	for i := range 2 * (f.Rounds + 1) {
		there = append(there, aborted(i))
	}
	err = world.AtMost(writers, len(there), func(i int) error { return w.Management.Create(ctx, t.application(there[i])) })
	if err != nil {
		return nil, err
	}
	return t, t.until(ctx, there, 0)
}

func bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, patience, fmt.Errorf("it takes longer than %s", patience))
}

// aborted is the i-th Application to abort, of the first team: each is once.
func aborted(i int) client.ObjectKey {
	return client.ObjectKey{Namespace: crowded, Name: fmt.Sprint("back-", i)}
}

// application is one that shares its namespace with others.
func (t *teams) application(key client.ObjectKey) *shipper.Application {
	app := t.Application(key.Namespace, clusters, replicas, fullOn)
	app.Name = key.Name
	values := *app.Spec.Template.Values
	values["nameOverride"], values["service"] = key.Name, map[string]any{"name": key.Name}
	return app
}

// until waits until the n-th Release of all is where it is to be.
func (t *teams) until(ctx context.Context, of []client.ObjectKey, n int) error {
	return t.sight.Until(ctx, of, func(_ *shipper.Application, rel *shipper.Release) bool { return world.Achieved(rel, n, 0) })
}

// editAll writes an edit of all Applications of the first team, and edited waits until all have been rolled out.
func (t *teams) editAll(ctx context.Context, n int) error {
	return world.AtMost(writers, len(t.all), func(i int) error { return t.Upgrade(ctx, t.all[i], n, fullOn) })
}

func (t *teams) edited(ctx context.Context, n int) error {
	ctx, cancel := bounded(ctx)
	defer cancel()
	return t.until(ctx, t.all, n)
}

// left is how many have not been.
func (t *teams) left(n int) int {
	left := 0
	for _, key := range t.all {
		if !world.Achieved(t.sight.Newest(key), n, 0) {
			left++
		}
	}
	return left
}

// others measures an edit of the second team and an abort of the first.
func (t *teams) others(ctx context.Context, i int) (edit, abort time.Duration, err error) {
	if err := t.stage(ctx, i); err != nil {
		return 0, 0, err
	}
	return t.measure(ctx, i)
}

// stage brings the i-th Application to abort half way to its second Release.
func (t *teams) stage(ctx context.Context, i int) error {
	ctx, cancel := bounded(ctx)
	defer cancel()
	if err := t.Upgrade(ctx, aborted(i), 1, half, fullOn); err != nil {
		return err
	}
	return t.until(ctx, []client.ObjectKey{aborted(i)}, 1)
}

// measure edits the one, and aborts the other, side by side.
func (t *teams) measure(ctx context.Context, i int) (edit, abort time.Duration, err error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	t.edits++
	began := time.Now()
	err = world.InParallel(2, func(which int) error {
		if which == 0 {
			if err := t.Upgrade(ctx, t.one, t.edits, fullOn); err != nil {
				return err
			}
			err := t.until(ctx, []client.ObjectKey{t.one}, t.edits)
			edit = time.Since(began)
			return err
		}
		err := t.abort(ctx, aborted(i))
		abort = time.Since(began)
		return err
	})
	return edit, abort, err
}

// abort deletes the newest Release, and waits until the Application says that it is back, and the earlier one has all its Pods.
func (t *teams) abort(ctx context.Context, key client.ObjectKey) error {
	rel := t.sight.Newest(key)
	if err := t.Management.Delete(ctx, rel, client.Preconditions{UID: ptr.To(rel.UID)}); err != nil {
		return fmt.Errorf("aborting %s: %w", key, err)
	}
	err := t.sight.Until(ctx, []client.ObjectKey{key}, func(app *shipper.Application, newest *shipper.Release) bool {
		return newest != nil && newest.Name != rel.Name && app.Status.ObservedGeneration == app.Generation &&
			isFalse(app, shipper.ApplicationAborting) && isFalse(app, shipper.ApplicationRollingOut)
	})
	if err != nil {
		return err
	}
	deployment := t.sight.Newest(key).Name + "-" + key.Name
	return world.InParallel(clusters, func(i int) error { return t.whole(ctx, i, deployment) })
}

func isFalse(app *shipper.Application, condition string) bool {
	c := shipper.FindCondition(app.Status.Conditions, condition)
	return c != nil && c.Status == corev1.ConditionFalse
}

// whole waits until a Deployment of the first team has all its Pods in a cluster.
func (t *teams) whole(ctx context.Context, cluster int, name string) error {
	events, err := t.Clusters[cluster].AppsV1().Deployments(crowded).Watch(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, name).String(),
	})
	if err != nil {
		return fmt.Errorf("watching Deployment %s: %w", name, err)
	}
	defer events.Stop()
	for e := range events.ResultChan() {
		if d, ok := e.Object.(*appsv1.Deployment); ok && *d.Spec.Replicas == replicas && d.Status.AvailableReplicas == replicas &&
			d.Status.ObservedGeneration == d.Generation {
			return nil
		}
	}
	return fmt.Errorf("the watch of Deployment %s has ended: %w", name, context.Cause(ctx))
}
