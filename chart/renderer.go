// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"context"
	"errors"
	"sync"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// renderer bounds how many charts are rendered at one time. Templates cannot be stopped: one that does not end in
// time is left running and keeps its slot, and its chart is not rendered again until it ends.
type renderer struct {
	slots chan struct{}

	mu sync.Mutex
	// overdue counts the renderings that did not end in time and still go on, by the digest of the chart.
	overdue map[string]int
}

func newRenderer(slots int) *renderer {
	return &renderer{slots: make(chan struct{}, slots), overdue: map[string]int{}}
}

// run calls render in a goroutine of its own and waits for it as long as ctx allows.
func (r *renderer) run(ctx context.Context, digest string, render func() error) error {
	if r.isOverdue(digest) {
		return late(nil, "an earlier rendering of it still goes on")
	}
	select {
	case r.slots <- struct{}{}:
	case <-ctx.Done():
		return late(ctx.Err(), "there was no room to render it in time")
	}
	done := make(chan error, 1)
	job := &job{digest: digest}
	go func() {
		err := render()
		r.ended(job)
		<-r.slots
		done <- err
	}()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			r.overdueNow(job)
		}
		return late(ctx.Err(), "it did not render in time")
	}
}

// job is one rendering. Its fields are guarded by the renderer.
type job struct {
	digest         string
	ended, overdue bool
}

func (r *renderer) isOverdue(digest string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.overdue[digest] > 0
}

func (r *renderer) overdueNow(j *job) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !j.ended {
		j.overdue = true
		r.overdue[j.digest]++
	}
}

func (r *renderer) ended(j *job) {
	r.mu.Lock()
	defer r.mu.Unlock()
	j.ended = true
	if !j.overdue {
		return
	}
	if r.overdue[j.digest]--; r.overdue[j.digest] == 0 {
		delete(r.overdue, j.digest)
	}
}

// late is a failure that another time may not see.
func late(cause error, message string) *Error {
	return &Error{Reason: shipper.ChartError, Message: message, Retry: true, Cause: cause}
}
