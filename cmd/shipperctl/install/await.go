// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// between is how long to wait before a watch that broke off is started again.
const between = time.Second

// await watches the object that has the namespace and name of like until done says that it is as wanted. list is an
// empty list of its kind. It is false, without an error, when patience is over first.
func await(
	ctx context.Context, c client.WithWatch, like client.Object, list client.ObjectList, patience time.Duration,
	done func(runtime.Object) bool,
) (bool, error) {
	within, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		ok, err := watchOnce(within, c, like, list, done)
		switch {
		case ok:
			return true, nil
		case ctx.Err() != nil:
			return false, ctx.Err()
		case within.Err() != nil:
			return false, nil
		case err != nil:
			return false, err
		}
		select {
		case <-within.Done():
		case <-time.After(between):
		}
	}
}

// watchOnce reads the object and watches it from there until it is as wanted or the watch ends.
func watchOnce(
	ctx context.Context, c client.WithWatch, like client.Object, list client.ObjectList, done func(runtime.Object) bool,
) (bool, error) {
	only := &client.ListOptions{
		Namespace:     like.GetNamespace(),
		FieldSelector: fields.OneTermEqualSelector("metadata.name", like.GetName()),
	}
	if err := c.List(ctx, list, only); err != nil {
		return false, err
	}
	items, err := meta.ExtractList(list)
	if err != nil {
		return false, err
	}
	for _, o := range items {
		if done(o) {
			return true, nil
		}
	}
	only.Raw = &metav1.ListOptions{ResourceVersion: list.GetResourceVersion()}
	w, err := c.Watch(ctx, list, only)
	if err != nil {
		return false, err
	}
	defer w.Stop()
	for e := range w.ResultChan() {
		if (e.Type == watch.Added || e.Type == watch.Modified) && done(e.Object) {
			return true, nil
		}
	}
	return false, nil
}
