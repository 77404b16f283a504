// SPDX-License-Identifier: Apache-2.0

package replicas

import (
	"cmp"
	"context"
	"errors"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"shipper.dev/shipper/test/charts"
	"shipper.dev/shipper/test/env"
)

// The load: so many requests a second, by so many users who each wait for their answers.
const (
	rate  = 200
	users = 40
)

// propagation is what a Service takes to learn that an endpoint is leaving.
const propagation = 200 * time.Millisecond

// TestRollingRestartUnderLoad replaces all replicas as a Deployment does, maxSurge 1 and maxUnavailable 0, the one that is
// being asked each time, while users write all kinds of things. Every request is answered, and as it should be.
func TestRollingRestartUnderLoad(t *testing.T) {
	env.Nightly(t, "200 requests a second leave no room to other tests; TestARequestOnItsWayIsAnswered ends a replica amid a request")
	sequences := newSequences(t, users)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var wg sync.WaitGroup
	for i, s := range sequences {
		wg.Go(func() { s.play(ctx, time.Duration(i)*time.Second/rate, users*time.Second/rate) })
	}
	began := time.Now()
	for _, old := range slices.Clone(world.replicas) {
		before := world.service.Made(old.Address)
		replace(t, old)
		if before == 0 {
			t.Errorf("%s was not being asked when it was stopped", old.Name)
		}
	}
	took := time.Since(began)
	stop()
	wg.Wait()

	var all []time.Duration
	count := map[string]int{}
	for _, s := range sequences {
		for _, wrong := range s.wrong {
			t.Error(wrong)
		}
		for what, times := range s.took {
			count[what] += len(times)
			all = append(all, times...)
		}
	}
	slices.Sort(all)
	t.Logf("%d requests in %s (%.0f/s), p50 %s, p99 %s, longest %s", len(all), took.Round(time.Millisecond),
		float64(len(all))/took.Seconds(), quantile(all, 50), quantile(all, 99), all[len(all)-1].Round(time.Millisecond))
	for _, what := range slices.SortedFunc(mapKeys(count), cmp.Compare) {
		t.Logf("%5d × %s", count[what], what)
	}
}

// replace starts a replica, and ends old once the new one is ready.
func replace(t *testing.T, old *replica) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), env.Patience)
	defer cancel()
	r, err := startReplica()
	if err != nil {
		t.Fatal(err)
	}
	if err := r.AwaitReady(ctx); err != nil {
		t.Fatal(err)
	}
	world.replicas = append(world.replicas, r)
	lead()
	old.Terminate()
	env.Eventually(t, "it not to be ready", func(ctx context.Context) error {
		if old.Ready(ctx) {
			return errors.New("it is")
		}
		return nil
	})
	time.Sleep(propagation) // it is asked for some time more, on new connections too
	world.replicas = slices.DeleteFunc(world.replicas, func(r *replica) bool { return r == old })
	lead()
	select {
	case <-old.Exited():
	case <-ctx.Done():
		t.Fatalf("%s does not end:\n%s", old.Name, old.Tail())
	}
	old.api.Close()
}

// A request that waits for a chart repository when its replica is stopped is answered as if nothing had happened.
func TestARequestOnItsWayIsAnswered(t *testing.T) {
	r, err := startReplica("--shutdown-delay=0s")
	if err != nil {
		t.Fatal(err)
	}
	defer r.api.Close()
	if err := r.AwaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	slow := charts.Serve(t)
	slow.Break(charts.Stalled)
	app := application("default", "patient")
	app.Spec.Template.Chart.RepoURL = slow.URL
	answered := make(chan error)
	go func() {
		answer, err := r.review(t.Context(), "/mutate-application?timeout=20s", app)
		if err == nil && !answer.Allowed {
			err = errors.New(answer.Result.Message)
		}
		answered <- err
	}()
	env.Eventually(t, "the repository to be asked", func(context.Context) error {
		if slow.Requests("index.yaml") == 0 {
			return errors.New("nobody asks")
		}
		return nil
	})
	r.Terminate()
	env.Eventually(t, "its door to be shut", func(context.Context) error {
		c, err := net.Dial("tcp", r.Address)
		if err != nil {
			return nil //nolint:nilerr // that is what is waited for
		}
		return errors.Join(errors.New("it is open"), c.Close())
	})
	slow.Heal()
	if err := <-answered; err != nil {
		t.Errorf("the answer is: %v", err)
	}
	<-r.Exited()
}

func quantile(sorted []time.Duration, percent int) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(len(sorted)*percent/100, len(sorted)-1)].Round(10 * time.Microsecond)
}

func mapKeys[V any](m map[string]V) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}
