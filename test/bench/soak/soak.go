// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/bench/world"
)

const (
	creators = 32               // writes at a time, before the edits begin
	patience = 30 * time.Minute // until all that was asked for has come about
	history  = 2                // of an Application: with more, there would be more to remember at the end than at the beginning
)

// steps are those of every Application.
var steps = []shipper.RolloutStrategyStep{
	world.Step("staging", 100, 1, 100, 0),
	world.Step("50/50", 50, 50, 50, 50),
	world.Step("full on", 0, 100, 0, 100),
}

// last is the index of the last step.
var last = int32(len(steps) - 1)

// soak is what is done.
type soak struct {
	applications, clusters int
	time, every, forget    time.Duration
	seed                   uint64
	logs, profiles         string
	out                    io.Writer

	world *world.World
	sight *world.Sight
	keys  []client.ObjectKey
	begun map[string]int64 // of each process, how much it had logged before the edits
}

// run edits, and returns what was missed.
func (s *soak) run(ctx context.Context) (err error) {
	fmt.Fprintf(s.out, "%d Applications on %d clusters, edited for %s; -seed %d makes the same edits again\n",
		s.applications, s.clusters, s.time, s.seed)
	s.world, err = world.Begin(ctx, world.Options{Clusters: s.clusters, Profiles: s.profiles})
	defer func() { err = errors.Join(err, s.keepLogs(), s.world.End()) }()
	if err != nil {
		return err
	}
	if s.sight, err = s.world.Look(ctx); err != nil {
		return err
	}
	if err := s.begin(ctx); err != nil {
		return err
	}
	before, err := s.quiet(ctx)
	if err != nil {
		return err
	}
	if err := s.world.Heaps(ctx, "before"); err != nil {
		return err
	}
	if err := s.listen(); err != nil {
		return err
	}
	done, err := s.edit(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintln(s.out, done)
	stuck := s.waitForRest(ctx)
	after, err := s.quiet(ctx)
	if err != nil {
		return errors.Join(stuck, err)
	}
	if err := s.world.Heaps(ctx, "after"); err != nil {
		return errors.Join(stuck, err)
	}
	said, err := s.read()
	if err != nil {
		return errors.Join(stuck, err)
	}
	fmt.Fprint(s.out, compare(before, after), said)
	return errors.Join(stuck, s.leftovers(ctx), done.missed(), s.grown(before, after), said.missed())
}

// begin creates the Applications and upgrades each as often as its history is long: from then on it is no longer.
func (s *soak) begin(ctx context.Context) error {
	began := time.Now()
	for i := range s.applications {
		s.keys = append(s.keys, client.ObjectKey{Namespace: fmt.Sprintf("soak-%d", i), Name: "app"})
	}
	err := world.AtMost(creators, len(s.keys), func(i int) error {
		if err := s.world.MakeNamespace(ctx, s.keys[i].Namespace, s.clusters); err != nil {
			return err
		}
		return s.world.Management.Create(ctx, s.application(s.keys[i]))
	})
	for generation := 0; err == nil && generation <= history; generation++ {
		if err = s.complete(ctx, generation); err != nil || generation == history {
			break
		}
		fmt.Fprintf(s.out, "Release %d of %d of each was there after %s\n", generation+1, history+1, time.Since(began).Round(time.Second))
		err = world.AtMost(creators, len(s.keys), func(i int) error {
			return s.world.Upgrade(ctx, s.keys[i], -1-generation, steps...)
		})
	}
	fmt.Fprintf(s.out, "%d Applications of %d Releases each were there after %s\n",
		len(s.keys), history+1, time.Since(began).Round(time.Second))
	return err
}

// application is one as it is made.
func (s *soak) application(key client.ObjectKey) *shipper.Application {
	app := s.world.Application(key.Namespace, s.clusters, 1, steps...)
	app.Name = key.Name
	app.Spec.RevisionHistoryLimit = ptr.To[int32](history)
	return app
}

// complete asks for the last step of the Releases of a generation, and waits until all are there.
func (s *soak) complete(ctx context.Context, generation int) error {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("it takes longer than %s", patience))
	defer cancel()
	for _, step := range []int32{0, last} {
		if step == last {
			err := world.AtMost(creators, len(s.keys), func(i int) error { return s.world.Advance(ctx, s.sight.Newest(s.keys[i]), last) })
			if err != nil {
				return fmt.Errorf("asking for the last step: %w", err)
			}
		}
		err := s.sight.Until(ctx, s.keys, func(_ *shipper.Application, rel *shipper.Release) bool {
			return world.Achieved(rel, generation, step)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// waitForRest waits until everything is at rest, and returns what is not.
func (s *soak) waitForRest(ctx context.Context) error {
	began := time.Now()
	bounded, cancel := context.WithTimeout(ctx, settling)
	defer cancel()
	err := s.sight.Until(bounded, s.keys, func(app *shipper.Application, rel *shipper.Release) bool { return stuck(app, rel) == "" })
	if err == nil {
		fmt.Fprintf(s.out, "all were at rest %s after the last edit\n", time.Since(began).Round(time.Second))
		return nil
	}
	errs := []error{fmt.Errorf("%s after the last edit: %w", settling, err)}
	for _, key := range s.keys {
		if why := stuck(s.sight.Application(key), s.sight.Newest(key)); why != "" {
			errs = append(errs, fmt.Errorf("%s: %s", key, why))
		}
	}
	return errors.Join(errs[:min(len(errs), 20)]...)
}

// keepLogs copies Shipper's logs to the folder that was asked for.
func (s *soak) keepLogs() error {
	if s.logs == "" || s.world.Pod == nil {
		return nil
	}
	if err := os.MkdirAll(s.logs, 0o755); err != nil {
		return fmt.Errorf("keeping the logs: %w", err)
	}
	for _, p := range s.processes() {
		text, err := os.ReadFile(p.Log)
		if err == nil {
			err = os.WriteFile(filepath.Join(s.logs, p.Name+".log"), text, 0o600)
		}
		if err != nil {
			return fmt.Errorf("keeping the logs: %w", err)
		}
	}
	return nil
}
