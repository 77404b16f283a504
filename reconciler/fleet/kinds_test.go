// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
)

// lateRight is a cluster whose account may watch a kind from a time on.
type lateRight struct {
	cluster.Cluster
	caches *lateCache
}

func (l lateRight) GetCache() cache.Cache { return l.caches }

// lateCache is its cache.
type lateCache struct {
	cache.Cache
	granted time.Time
	asked   int
}

func (l *lateCache) GetInformer(context.Context, client.Object, ...cache.InformerGetOption) (cache.Informer, error) {
	if l.asked++; time.Now().Before(l.granted) {
		return nil, apierrors.NewForbidden(schema.GroupResource{Resource: "resourcequotas"}, "", nil)
	}
	return struct{ cache.Informer }{}, nil
}

func (l *lateCache) RemoveInformer(context.Context, client.Object) error { return nil }

func TestAKindIsWatchedWithinMinutesOfTheRightToDoSo(t *testing.T) {
	quota := schema.GroupVersionKind{Version: "v1", Kind: "ResourceQuota"}
	synctest.Test(t, func(t *testing.T) {
		const late = 10*time.Hour + time.Second
		of, done := &lateCache{granted: time.Now().Add(late)}, make(chan struct{})
		s := &session{
			clock: clock.RealClock{}, cluster: lateRight{caches: of}, done: done, watches: func() []*watch { return nil },
			kinds: map[schema.GroupVersionKind]*kind{},
		}
		watched := func() bool {
			k, err := s.use(t.Context(), quota)
			if err != nil {
				t.Fatal(err)
			}
			return k.informer != nil
		}
		if watched() {
			t.Fatal("a kind is watched without the right to do so")
		}
		time.Sleep(late)
		synctest.Wait()
		if most := int(late/kindRetryMost) + 4; of.asked > most || watched() {
			t.Errorf("it was tried %d times in %s, at most %d are expected; watched: %t", of.asked, late, most, watched())
		}
		time.Sleep(kindRetryMost)
		synctest.Wait()
		if !watched() {
			t.Errorf("the kind is not watched %s after the right was granted", kindRetryMost)
		}
		close(done)
	})
}
