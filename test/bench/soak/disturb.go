// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

const (
	away   = 10 * time.Second // an API server that is restarted
	silent = 15 * time.Second // one that takes connections and does not answer
)

// disturb takes two application clusters away for a while: a third into the edits the API server of the last one is restarted,
// and at two thirds that of the first answers nothing. All of it is undone, also when the time is over.
func (s *soak) disturb(ctx, bounded context.Context, c *course) error {
	last := len(s.world.Clusters) - 1
	restarted, frozen := s.world.Fleet.Applications[last], s.world.Fleet.Applications[0]
	wait(bounded, s.time/3)
	c.takeDown(last, true)
	if err := restarted.StopAPIServer(); err != nil {
		return fmt.Errorf("stopping an API server: %w", err)
	}
	wait(bounded, away)
	if err := restarted.StartAPIServer(ctx); err != nil {
		return fmt.Errorf("starting an API server again: %w", err)
	}
	c.takeDown(last, false)
	fmt.Fprintf(s.out, "the API server of %s was restarted\n", restarted.Name)

	wait(bounded, s.time/3)
	c.takeDown(0, true)
	err := frozen.Pause()
	wait(bounded, silent)
	if err := errors.Join(err, frozen.Resume()); err != nil {
		return fmt.Errorf("pausing an API server: %w", err)
	}
	c.takeDown(0, false)
	fmt.Fprintf(s.out, "the API server of %s was silent for a while\n", frozen.Name)
	return nil
}

func (c *course) takeDown(cluster int, down bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.down[cluster] = down
}

// wait lets time pass, as long as ctx has any.
func wait(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
