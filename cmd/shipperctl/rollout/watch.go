// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/cmd/shipperctl/cli"
	"shipper.dev/shipper/cmd/shipperctl/screen"
)

// collectInterval is how long changes are collected before they are shown: a step of one rollout changes many objects.
const collectInterval = 200 * time.Millisecond

// redrawInterval is how long a view stands on a terminal before it is drawn again, that the ages in it are right.
const redrawInterval = time.Second

// watch shows the rollout whenever something of it changes, until it is complete. Nothing is polled. Being interrupted is no
// error.
func (s *show) watch(ctx context.Context) error {
	if s.format.ForPeople() {
		if screen.Draws(s.out) {
			return s.live(ctx)
		}
	}
	return s.follow(ctx, until(s, s.print))
}

// live draws the rollout on the terminal's alternate screen, and prints the last view on the first when it ends.
func (s *show) live(ctx context.Context) error {
	canvas := screen.Open(s.out)
	var mu sync.Mutex
	var latest *View
	draw := func() error {
		mu.Lock()
		defer mu.Unlock()
		if latest == nil {
			return nil
		}
		width, _ := screen.Of(s.out)
		return canvas.Draw(latest.Screen(width, s.clock.Now()))
	}
	ended, stop := context.WithCancel(ctx)
	var redrawing sync.WaitGroup
	redrawing.Go(func() { // ages grow, and the window may have another size
		wait.UntilWithContext(ended, func(context.Context) { _ = draw() }, redrawInterval) // s.print reports what cannot be written
	})
	err := s.follow(ctx, until(s, func(p *View) error {
		mu.Lock()
		latest = p
		mu.Unlock()
		return draw()
	}))
	stop()
	redrawing.Wait()
	canvas.Close()
	if latest != nil {
		err = errors.Join(err, s.print(latest))
	}
	return err
}

// until shows each view, and is done when the rollout is complete.
func until(s *show, do func(*View) error) func(*observed) (bool, error) {
	return func(o *observed) (bool, error) {
		p := viewOf(o, s.clock.Now())
		return p.over(), do(p)
	}
}

// follow observes the rollout whenever something changes, until do is done. Being interrupted is no error.
func (s *show) follow(ctx context.Context, do func(*observed) (done bool, err error)) error {
	for ctx.Err() == nil {
		if done, err := s.through(ctx, do); (done || err != nil) && ctx.Err() == nil {
			return err
		}
	}
	return nil
}

// through is follow for as long as watches last.
func (s *show) through(ctx context.Context, do func(*observed) (done bool, err error)) (done bool, err error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	changed, err := s.changes(ctx)
	if err != nil {
		return false, err
	}
	for open := true; open; _, open = <-changed {
		collect(ctx)
		o, err := observe(ctx, s.client, s.key)
		if err != nil {
			return false, err
		}
		if done, err := do(o); done || err != nil {
			return done, err
		}
	}
	return false, nil
}

// followFor follows for a time at most; 0 has no bound. It reports whether do is done.
func (s *show) followFor(ctx context.Context, timeout time.Duration, do func(*observed) (bool, error)) (done bool, err error) {
	within := ctx
	if timeout > 0 {
		var cancel context.CancelFunc
		within, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	err = s.follow(within, func(o *observed) (bool, error) {
		var err error
		done, err = do(o)
		return done, err
	})
	if err == nil && !done {
		err = ctx.Err()
	}
	return done, err
}

// collect waits, so that related changes are shown at once.
func collect(ctx context.Context) {
	timer := time.NewTimer(collectInterval)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// changes reports when something changes that the view shows. API servers end watches now and then: when one has ended, all
// are, and the channel is closed.
func (s *show) changes(ctx context.Context) (<-chan struct{}, error) {
	ctx, cancel := context.WithCancel(ctx)
	changed := make(chan struct{}, 1)
	var watches sync.WaitGroup
	open := func(list client.ObjectList, options ...client.ListOption) error {
		w, err := s.client.Watch(ctx, list, options...)
		if err != nil {
			return fmt.Errorf("watching %T: %w", list, err)
		}
		watches.Go(func() {
			defer cancel()
			for range w.ResultChan() {
				select {
				case changed <- struct{}{}:
				default:
				}
			}
		})
		return nil
	}
	own := cli.OfApplication(s.key)
	err := errors.Join(
		open(&shipper.ApplicationList{}, client.InNamespace(s.key.Namespace), client.MatchingFields{"metadata.name": s.key.Name}),
		open(&shipper.ReleaseList{}, own...),
		open(&shipper.InstallationTargetList{}, own...),
		open(&shipper.CapacityTargetList{}, own...),
		open(&shipper.TrafficTargetList{}, own...),
	)
	if err != nil {
		cancel()
		return nil, err
	}
	// An older management cluster has no such kind; the Release's status says when a check is decided, too.
	_ = open(&shipper.CheckTargetList{}, own...)
	// Not every user may read blocks; the Application's conditions report one in effect, too.
	for _, namespace := range []string{shipper.GlobalBlocksNamespace, s.key.Namespace} {
		_ = open(&shipper.RolloutBlockList{}, client.InNamespace(namespace))
	}
	go func() {
		watches.Wait()
		cancel()
		close(changed)
	}()
	return changed, nil
}
