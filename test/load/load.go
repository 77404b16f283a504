// SPDX-License-Identifier: Apache-2.0

// Package load asks an API server for writes of Applications at a steady rate and reports which of them failed.
package load

import (
	"context"
	"fmt"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/admission/ask"
)

// workers is how many requests may be under way at the same time.
const workers = 8

// Load is writes that go on until Stop.
type Load struct {
	client    client.Client
	namespace string
	repoURL   string

	stop  context.CancelFunc
	done  sync.WaitGroup
	quiet sync.RWMutex // held for writing while no request may be under way

	mu     sync.Mutex
	result Result
}

// Result is what came of the writes.
type Result struct {
	// Requests is how many were made, dry runs included.
	Requests int
	// Failed are those that were not answered as they should be.
	Failed []Failure
	// Longest is how long the slowest took.
	Longest time.Duration
}

// Failure is a request that failed.
type Failure struct {
	At  time.Time
	Err error
}

// String is the time and the error.
func (f Failure) String() string { return f.At.Format("15:04:05.000 ") + f.Err.Error() }

// Start has perSecond requests made every second, as the user of c: creations, changes and deletions of Applications in
// namespace, half of them as dry runs. Their chart is nginx 0.0.1 of repoURL.
func Start(ctx context.Context, c client.Client, namespace, repoURL string, perSecond int) *Load {
	l := &Load{client: c, namespace: namespace, repoURL: repoURL}
	ctx, l.stop = context.WithCancel(ctx)
	turns := make(chan struct{}, perSecond) // a second's requests are caught up with after a pause
	l.done.Go(func() {
		tick := time.NewTicker(time.Second / time.Duration(perSecond))
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				close(turns)
				return
			case <-tick.C:
				select {
				case turns <- struct{}{}:
				default:
				}
			}
		}
	})
	for i := range workers {
		l.done.Go(func() { l.work(context.WithoutCancel(ctx), fmt.Sprintf("load-%d", i), turns) })
	}
	return l
}

// Once makes one request: a creation, as a dry run.
func Once(ctx context.Context, c client.Client, namespace, repoURL string) error {
	l := &Load{namespace: namespace, repoURL: repoURL}
	return c.Create(ctx, l.application("once"), client.DryRunAll)
}

// Stop ends the writes, those under way being finished, and returns what came of all of them.
func (l *Load) Stop() Result {
	l.stop()
	l.done.Wait()
	return l.result
}

// SoFar is what came of the writes until now.
func (l *Load) SoFar() Result {
	l.mu.Lock()
	defer l.mu.Unlock()
	result := l.result
	result.Failed = append([]Failure(nil), result.Failed...)
	return result
}

// Pause waits until no request is under way, and lets none begin while do runs.
func (l *Load) Pause(do func()) {
	l.quiet.Lock()
	defer l.quiet.Unlock()
	do()
}

// work makes one request whenever it is its turn.
func (l *Load) work(ctx context.Context, name string, turns <-chan struct{}) {
	var live *shipper.Application // nil when there is none
	round := 0
	for range turns {
		l.quiet.RLock()
		began := time.Now()
		var err error
		switch round % 6 {
		case 0:
			err = l.client.Create(ctx, l.application(name), client.DryRunAll)
		case 1:
			live = l.application(name)
			if err = l.client.Create(ctx, live); err != nil {
				round-- // there is nothing to change or delete
			}
		case 2, 4:
			err = l.client.Update(ctx, l.changed(live, int64(round)), client.DryRunAll)
		case 3:
			live = l.changed(live, int64(round))
			err = l.client.Update(ctx, live)
		case 5:
			if err = l.client.Delete(ctx, live); err != nil {
				round--
			}
		}
		round++
		l.note(began, err)
		l.quiet.RUnlock()
	}
}

func (l *Load) note(began time.Time, err error) {
	took := time.Since(began)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.result.Requests++
	l.result.Longest = max(l.result.Longest, took)
	if err != nil {
		l.result.Failed = append(l.result.Failed, Failure{At: time.Now(), Err: err})
	}
}

func (l *Load) application(name string) *shipper.Application {
	app := ask.Application()
	app.Namespace, app.Name, app.UID = l.namespace, name, ""
	app.Spec.Template.Chart.RepoURL = l.repoURL
	return app
}

// changed is a copy of app that asks for another rollout.
func (l *Load) changed(app *shipper.Application, replicas int64) *shipper.Application {
	out := app.DeepCopy()
	out.Spec.Template.Values = &shipper.ChartValues{"replicaCount": replicas}
	return out
}
