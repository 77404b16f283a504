// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"time"

	"shipper.dev/shipper/test/bench/world"
)

// Hand is the program written by hand in some clusters. It measures what the machine needs for a rollout without Shipper.
type Hand struct{ floors []*floor }

// NewHand has it make its first version in a namespace of the first clusters of w, with so many Pods in each.
func NewHand(ctx context.Context, w *world.World, namespace string, clusters int, replicas int32) (*Hand, error) {
	h := &Hand{floors: make([]*floor, clusters)}
	return h, world.InParallel(clusters, func(i int) (err error) {
		h.floors[i], err = newFloor(ctx, w.Clusters[i], namespace, replicas)
		return err
	})
}

// Upgrade goes to the next version in three steps, and returns how long that took.
func (h *Hand) Upgrade(ctx context.Context) (time.Duration, error) { return timed(ctx, h.steps()) }

// steps are those of an upgrade in each cluster.
func (h *Hand) steps() [][]func(context.Context) error {
	var out [][]func(context.Context) error
	for _, f := range h.floors {
		out = append(out, f.steps())
	}
	return out
}
