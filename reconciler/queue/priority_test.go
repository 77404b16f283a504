// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"context"
	"errors"
	"testing"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
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
	applications, err := NewApplications(t.Context(), filling{T: t}, nil)
	if err != nil {
		t.Fatal(err)
	}
	queue := Objects(8, applications.OfApplication)("", workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	queue.Add(requests("a/web")[0])
	queue.ShutDown()
	if got, _ := queue.Get(); got != requests("a/web")[0] {
		t.Errorf("got %v", got)
	}
}
