// SPDX-License-Identifier: Apache-2.0

package fairqueue

import (
	"context"
	"errors"
	"testing"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// filling is a cache that is being filled and never is: who reads from it would wait for ever.
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
	f.Error("somebody waits for the cache")
	return errors.New("it is never filled")
}

func TestNobodyWaitsForACacheThatIsBeingFilled(t *testing.T) {
	turns, err := New(t.Context(), filling{T: t}, nil)
	if err != nil {
		t.Fatal(err)
	}
	queue := turns.Applications(8)("", workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	queue.Add(requests("a/web")[0])
	queue.ShutDown()
	if got, _ := queue.Get(); got != requests("a/web")[0] {
		t.Errorf("got %v", got)
	}
}
