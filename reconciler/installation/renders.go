// SPDX-License-Identifier: Apache-2.0

package installation

import (
	"context"
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/fleet"
)

// renderTimeout is how long a pass waits for a chart, which is long enough for one that is in memory or on the disk.
const renderTimeout = 100 * time.Millisecond

// errRendering is why a pass ends that cannot wait longer for its chart.
var errRendering error = &problem{shipper.InProgress, fleet.Wait, "the chart is being fetched or rendered"}

// backgroundRenderer renders while nobody waits: a chart that its repository is slow to send, or that takes long to render, keeps neither a
// worker nor places in clusters. The pass ends, and another is made when it is done. What was rendered is kept until then, for
// it may be too much to be remembered elsewhere.
type backgroundRenderer struct {
	mu    sync.Mutex
	queue workqueue.TypedRateLimitingInterface[reconcile.Request]
	jobs  map[reconcile.Request]map[string]*job // by what they are rendered from
}

// job is one rendering.
type job struct {
	// done is closed when these are what came of it.
	done    chan struct{}
	objects []wanted
	err     error
	// left is set when the pass that began it has ended.
	left bool
}

func newBackgroundRenderer() *backgroundRenderer {
	return &backgroundRenderer{jobs: map[reconcile.Request]map[string]*job{}}
}

// source makes the requests that wait for their charts.
func (a *backgroundRenderer) source() source.Source {
	return source.Func(func(_ context.Context, q workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.queue = q
		return nil
	})
}

// get is what render gives, or errRendering when that is not there yet.
func (a *backgroundRenderer) get(ctx context.Context, req reconcile.Request, fingerprint string, render func() ([]wanted,
	error)) ([]wanted, error) {
	j := a.job(req, fingerprint, render)
	patience, cancel := context.WithTimeout(ctx, renderTimeout)
	defer cancel()
	select {
	case <-j.done:
	case <-patience.Done():
		if !a.leave(j) {
			return nil, errRendering
		}
	}
	return j.objects, j.err
}

// job is the one that is under way, or a new one.
func (a *backgroundRenderer) job(req reconcile.Request, fingerprint string, render func() ([]wanted, error)) *job {
	a.mu.Lock()
	defer a.mu.Unlock()
	if j := a.jobs[req][fingerprint]; j != nil {
		return j
	}
	if a.jobs[req] == nil {
		a.jobs[req] = map[string]*job{}
	}
	j := &job{done: make(chan struct{})}
	a.jobs[req][fingerprint] = j
	go func() {
		objects, err := render()
		a.mu.Lock()
		defer a.mu.Unlock()
		j.objects, j.err = objects, err
		close(j.done)
		if j.left {
			a.queue.Add(req)
		}
	}()
	return j
}

// leave has a request made when a job is done, unless it is already.
func (a *backgroundRenderer) leave(j *job) (done bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	select {
	case <-j.done:
		return true
	default:
		j.left = true
		return false
	}
}

// forget forgets what was rendered for a request. What is under way goes on, for nobody.
func (a *backgroundRenderer) forget(req reconcile.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, j := range a.jobs[req] {
		j.left = false
	}
	delete(a.jobs, req)
}
