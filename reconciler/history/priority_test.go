// SPDX-License-Identifier: Apache-2.0

package history

import (
	"context"
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"shipper.dev/shipper/reconciler/queue"
)

// filling is a cache that never syncs: a read would wait for ever.
type filling struct {
	*testing.T
	cache.Cache
	cache.Informer
}

func (f filling) GetInformer(context.Context, client.Object, ...cache.InformerGetOption) (cache.Informer, error) {
	return f, nil
}

func (filling) HasSynced() bool { return false }

func (f filling) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	f.Error("the cache is read")
	return errors.New("it never syncs")
}

func TestPriorityDoesNotWaitForACacheThatIsBeingFilled(t *testing.T) {
	priorities, err := NewPriorities(t.Context(), filling{T: t}, nil)
	if err != nil {
		t.Fatal(err)
	}
	made := queue.Objects(8, priorities.OfApplication)("", workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	web := reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "a", Name: "web"}}
	made.Add(web)
	made.ShutDown()
	if got, _ := made.Get(); got != web {
		t.Errorf("got %v", got)
	}
}
