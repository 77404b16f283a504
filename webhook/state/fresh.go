// SPDX-License-Identifier: Apache-2.0

package state

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// askTime bounds the request for the RolloutBlocks, because a review waits for it.
const askTime = time.Second

var errNotSynced = errors.New("shipper's webhook has just started and does not know the RolloutBlocks yet")

// confirmation holds the RolloutBlocks that the API server listed at a time while the watch was down.
type confirmation struct {
	at     time.Time
	blocks cache.Indexer
}

// Ready is nil when the cache is complete and no older than MaxStaleness. While the watch of RolloutBlocks is down, it lists
// them from the API server, at most once a second. If that fails, the webhook refuses: an old list must not let changes pass.
func (w *Watched) Ready(ctx context.Context) error {
	switch {
	case !w.Synced():
		return errNotSynced
	case w.stream.Up():
		w.confirmed.Store(nil)
		return nil
	case w.recent():
		return nil
	}
	done := w.confirming.DoChan("", func() (any, error) { return nil, w.confirm(context.WithoutCancel(ctx)) })
	select {
	case answer := <-done:
		return answer.Err
	case <-ctx.Done():
		return fmt.Errorf("waiting for the RolloutBlocks: %w", ctx.Err())
	}
}

// recent reports whether the last list is at most tolerated old.
func (w *Watched) recent() bool {
	a := w.confirmed.Load()
	return a != nil && w.stream.clock.Since(a.at) <= tolerated
}

func (w *Watched) confirm(ctx context.Context) error {
	if w.recent() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	at := w.stream.clock.Now()
	found := &shipper.RolloutBlockList{}
	if err := w.live.List(ctx, found); err != nil {
		return fmt.Errorf("shipper's webhook has lost the API server and does not know the RolloutBlocks of this moment: %w", err)
	}
	a := &confirmation{at: at, blocks: NewIndexers().Blocks}
	for i := range found.Items {
		if err := a.blocks.Add(&found.Items[i]); err != nil {
			return fmt.Errorf("keeping RolloutBlock %s: %w", client.ObjectKeyFromObject(&found.Items[i]), err)
		}
	}
	w.confirmed.Store(a)
	return nil
}

// blocks are the RolloutBlocks to use: the last list, else the cache of the watch.
func (f *Reader) blocks() cache.Indexer {
	if a := f.confirmed.Load(); a != nil {
		return a.blocks
	}
	return f.cached.Blocks
}

// Register registers the metric of how long the watch of RolloutBlocks has been down.
func (s *Stream) Register(registry prometheus.Registerer) error {
	gauge := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "shipper_webhook_blocks_watch_down_seconds",
		Help: "Seconds since this replica lost its RolloutBlock watch, during which it lists them; 0 while connected.",
	}, func() float64 { return s.Down().Seconds() })
	if err := registry.Register(gauge); err != nil {
		return fmt.Errorf("registering the metric of the watch: %w", err)
	}
	return nil
}
