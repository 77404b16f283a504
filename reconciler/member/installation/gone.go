// SPDX-License-Identifier: Apache-2.0

package installation

import (
	"context"
	"fmt"
	"sync"

	"golang.org/x/sync/singleflight"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/targets"
)

// goneTargets remembers targets that the API server has said to be no longer in effect. A Release that is gone does not come back, so
// the API server is asked once for all passes and clusters.
type goneTargets struct {
	asks  singleflight.Group
	known sync.Map // the UID of a target by its name
	// released has the version at which a target was let go, which caches may show for a moment longer.
	released sync.Map
}

func (g *goneTargets) forget(target types.NamespacedName) {
	g.known.Delete(target)
	g.released.Delete(target)
}

// release lets a target go once.
func (g *goneTargets) release(it *shipper.InstallationTarget, do func() error) error {
	key, version := client.ObjectKeyFromObject(it), it.ResourceVersion
	if was, done := g.released.Load(key); done && was == version {
		return nil
	}
	err := do()
	if err == nil {
		g.released.Store(key, version)
	}
	return err
}

// releaseGone reports whether what a target installed is to be removed: it was deleted and its Release is gone. The API server is asked,
// for a cache that does not show a Release yet must not take down what it runs.
func (w *Worker) releaseGone(ctx context.Context, it *shipper.InstallationTarget) (bool, error) {
	if it.DeletionTimestamp == nil {
		return false, nil
	}
	// The cache is asked each time: an API server that was put back to an earlier time has the Release again.
	if ended, err := targets.Ended(ctx, w.client, it); err != nil || !ended {
		return false, err
	}
	key := client.ObjectKeyFromObject(it)
	if uid, known := w.gone.known.Load(key); known && uid == it.UID {
		return true, nil
	}
	ended, err, _ := w.gone.asks.Do(fmt.Sprint(key, " ", it.UID), func() (any, error) { return targets.Ended(ctx, w.live, it) })
	if err != nil {
		return false, err
	}
	if ended == true {
		w.gone.known.Store(key, it.UID)
	}
	return ended == true, nil
}
