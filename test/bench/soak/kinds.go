// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// broken is the tag of an image that cannot be pulled.
const broken = "broken"

// errNothing means that there was nothing to do the edit to.
var errNothing = errors.New("there is nothing to edit")

// values merges values into those of an Application, with a number that makes a Release of it.
func (e *editor) values(ctx context.Context, key client.ObjectKey, values map[string]any) error {
	e.made++
	values["upgrade"] = e.made
	return e.merge(ctx, key, map[string]any{"template": map[string]any{"values": values}})
}

// merge merges into the spec of an Application.
func (e *editor) merge(ctx context.Context, key client.ObjectKey, spec map[string]any) error {
	patch, err := json.Marshal(map[string]any{"spec": spec})
	if err != nil {
		return err
	}
	app := &shipper.Application{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	return e.world.Management.Patch(ctx, app, client.RawPatch(types.MergePatchType, patch))
}

func (e *editor) upgrade(ctx context.Context, key client.ObjectKey) error {
	return e.values(ctx, key, map[string]any{"image": map[string]any{"tag": "stable"}})
}

func (e *editor) breakImage(ctx context.Context, key client.ObjectKey) error {
	return e.values(ctx, key, map[string]any{"image": map[string]any{"tag": broken}})
}

func (e *editor) scale(ctx context.Context, key client.ObjectKey) error {
	return e.values(ctx, key, map[string]any{"replicaCount": 1 + e.random.IntN(4)})
}

// step goes forward or backward.
func (e *editor) step(ctx context.Context, key client.ObjectKey) error {
	step := e.random.Int32N(last + 1)
	rel := e.sight.Newest(key)
	if rel == nil {
		return errNothing
	}
	return e.world.Advance(ctx, rel, step)
}

func (e *editor) abort(ctx context.Context, key client.ObjectKey) error {
	rel := e.sight.Newest(key)
	if rel == nil {
		return errNothing
	}
	return e.world.Management.Delete(ctx, rel)
}

func (e *editor) rollback(ctx context.Context, key client.ObjectKey) error {
	how := shipper.RollbackSteps
	if e.random.IntN(2) == 0 {
		how = shipper.RollbackImmediate
	}
	return e.merge(ctx, key, map[string]any{"rollbackTo": map[string]any{"strategy": how}})
}

func (e *editor) block(ctx context.Context, key client.ObjectKey) error {
	return e.blockIn(ctx, key.Namespace, 10*time.Second)
}

func (e *editor) blockAll(ctx context.Context, _ client.ObjectKey) error {
	return e.blockIn(ctx, shipper.GlobalBlocksNamespace, time.Second)
}

// blockIn blocks a namespace for a while, which this editor spends with other edits of what it may edit still, and with those
// that are refused.
func (e *editor) blockIn(ctx context.Context, namespace string, most time.Duration) error {
	b := &shipper.RolloutBlock{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("soak-%d", e.random.Int32())},
		Spec:       shipper.RolloutBlockSpec{Message: "a while", Author: shipper.RolloutBlockAuthor{Type: "user", Name: "soak"}},
	}
	if err := e.world.Management.Create(ctx, b); err != nil {
		return err
	}
	until := time.Now().Add(time.Duration(e.random.Int64N(int64(most))))
	for time.Now().Before(until) && ctx.Err() == nil {
		key := e.keys[e.random.IntN(len(e.keys))]
		if namespace != shipper.GlobalBlocksNamespace {
			key.Namespace = namespace
		}
		e.done.note("step under a block", key, e.step(ctx, key))
		e.pass(ctx, time.Second)
	}
	return e.world.Management.Delete(ctx, b)
}

// cluster is one of those that are there now, by its number, and the Application's Pods in it.
func (e *editor) cluster() (int, error) {
	n := e.random.IntN(len(e.world.Clusters))
	e.done.mu.Lock()
	defer e.done.mu.Unlock()
	if e.done.down[n] {
		return 0, errNothing
	}
	return n, nil
}

// unlessDown forgets the error of a cluster that is not there now.
func (e *editor) unlessDown(n int, err error) error {
	e.done.mu.Lock()
	defer e.done.mu.Unlock()
	if e.done.down[n] && err != nil {
		return errNothing
	}
	return err
}

func (e *editor) deletePod(ctx context.Context, key client.ObjectKey) error {
	n, err := e.cluster()
	if err != nil {
		return err
	}
	pods := e.world.Clusters[n].CoreV1().Pods(key.Namespace)
	list, err := pods.List(ctx, metav1.ListOptions{})
	if err != nil {
		return e.unlessDown(n, err)
	}
	if len(list.Items) == 0 {
		return errNothing
	}
	pod := list.Items[e.random.IntN(len(list.Items))]
	return e.unlessDown(n, pods.Delete(ctx, pod.Name, metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)}))
}

// meddle scales a Deployment, which Shipper puts right.
func (e *editor) meddle(ctx context.Context, key client.ObjectKey) error {
	n, err := e.cluster()
	if err != nil {
		return err
	}
	deployments := e.world.Clusters[n].AppsV1().Deployments(key.Namespace)
	list, err := deployments.List(ctx, metav1.ListOptions{})
	if err != nil {
		return e.unlessDown(n, err)
	}
	if len(list.Items) == 0 {
		return errNothing
	}
	name := list.Items[e.random.IntN(len(list.Items))].Name
	patch := fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, e.random.IntN(4))
	_, err = deployments.Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{})
	return e.unlessDown(n, err)
}

// renew deletes an Application, and makes one of the same name: half of the time at once, when the old one's Releases are still
// there.
func (e *editor) renew(ctx context.Context, key client.ObjectKey) error {
	app := &shipper.Application{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	err := e.world.Management.Delete(ctx, app)
	if err != nil {
		return err // it is still there
	}
	if e.random.IntN(2) == 0 {
		e.pass(ctx, 10*time.Second)
	}
	for { // a block may hold; without an Application nothing could be edited
		anew := e.application(key)
		(*anew.Spec.Template.Values)["upgrade"] = int64(-100)
		err := e.world.Management.Create(ctx, anew)
		if err == nil || ctx.Err() != nil {
			return err
		}
		e.done.note("Application deleted and created again: not yet", key, err)
		e.pass(ctx, time.Second)
	}
}
