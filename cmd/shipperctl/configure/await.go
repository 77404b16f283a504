// SPDX-License-Identifier: Apache-2.0

package configure

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// await watches the object that has the kind, namespace and name of like until done says that it is as wanted. It is
// false, without an error, when patience is over first.
func await(
	ctx context.Context, c client.WithWatch, like client.Object, list func() client.ObjectList, patience time.Duration,
	done func(runtime.Object) bool,
) (bool, error) {
	within, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	only := func(raw metav1.ListOptions) *client.ListOptions {
		return &client.ListOptions{
			Namespace:     like.GetNamespace(),
			FieldSelector: fields.OneTermEqualSelector("metadata.name", like.GetName()),
			Raw:           &raw,
		}
	}
	lw := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, raw metav1.ListOptions) (runtime.Object, error) {
			found := list()
			return found, c.List(ctx, found, only(raw))
		},
		WatchFuncWithContext: func(ctx context.Context, raw metav1.ListOptions) (watch.Interface, error) {
			return c.Watch(ctx, list(), only(raw))
		},
	}
	_, err := watchtools.UntilWithSync(within, lw, like, nil, func(e watch.Event) (bool, error) {
		return e.Type != watch.Deleted && done(e.Object), nil
	})
	switch {
	case err == nil:
		return true, nil
	case ctx.Err() != nil:
		return false, ctx.Err()
	case within.Err() != nil:
		return false, nil
	default:
		return false, err
	}
}
