// SPDX-License-Identifier: Apache-2.0

package world

import (
	"context"
	"fmt"
	"strconv"
	"sync"

	apiwatch "k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// Sight is what an administrator sees of all Applications and their newest Releases, by one watch of each.
type Sight struct {
	mu       sync.Mutex
	changed  chan struct{} // closed when something has
	apps     map[client.ObjectKey]*shipper.Application
	releases map[client.ObjectKey]*shipper.Release // the newest, by their Application
	err      error
}

// Look begins to watch. It ends with ctx.
func (w *World) Look(ctx context.Context) (*Sight, error) {
	s := &Sight{
		changed: make(chan struct{}), apps: map[client.ObjectKey]*shipper.Application{},
		releases: map[client.ObjectKey]*shipper.Release{},
	}
	for _, kind := range []client.ObjectList{&shipper.ApplicationList{}, &shipper.ReleaseList{}} {
		watch, err := w.Management.Watch(ctx, kind)
		if err != nil {
			return nil, fmt.Errorf("watching: %w", err)
		}
		go func() {
			for err == nil {
				for event := range watch.ResultChan() {
					s.take(event)
				}
				// An API server ends the watch of who is slower than events come. Another one begins with all there is.
				watch, err = w.Management.Watch(ctx, kind)
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			s.err = fmt.Errorf("watching again: %w", err)
			s.tell()
		}()
	}
	return s, nil
}

func (s *Sight) take(event apiwatch.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch o := event.Object.(type) {
	case *shipper.Application:
		if s.apps[client.ObjectKeyFromObject(o)] = o; event.Type == apiwatch.Deleted {
			delete(s.apps, client.ObjectKeyFromObject(o))
		}
	case *shipper.Release:
		of := client.ObjectKey{Namespace: o.Namespace, Name: o.Labels[shipper.AppLabel]}
		if known := s.releases[of]; event.Type != apiwatch.Deleted && (known == nil || generation(known) <= generation(o)) {
			s.releases[of] = o
		}
	}
	s.tell()
}

// tell wakes who waits. s.mu is held.
func (s *Sight) tell() {
	close(s.changed)
	s.changed = make(chan struct{})
}

func generation(rel *shipper.Release) int {
	n, _ := strconv.Atoi(rel.Annotations[shipper.ReleaseGenerationAnnotation]) // always there
	return n
}

// Until waits until something is so of each of some Applications and its newest Release, which may be nil. What was so once
// is not looked at again.
func (s *Sight) Until(ctx context.Context, of []client.ObjectKey, so func(*shipper.Application, *shipper.Release) bool) error {
	left := of
	for {
		s.mu.Lock()
		var next []client.ObjectKey
		for _, key := range left {
			if app := s.apps[key]; app == nil || !so(app, s.releases[key]) {
				next = append(next, key)
			}
		}
		changed, err := s.changed, s.err
		s.mu.Unlock()
		if left = next; len(left) == 0 || err != nil {
			return err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("%d of %d Applications are not there, %s among them: %w", len(left), len(of), left[0], context.Cause(ctx))
		}
	}
}

// Newest is the newest Release of an Application; nil when there is none.
func (s *Sight) Newest(of client.ObjectKey) *shipper.Release {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.releases[of].DeepCopy()
}

// Achieved tells whether the Release of a generation has achieved a step.
func Achieved(rel *shipper.Release, of int, step int32) bool {
	return rel != nil && generation(rel) == of && rel.Spec.TargetStep == step && rel.Status.ObservedGeneration == rel.Generation &&
		rel.Status.AchievedStep != nil && rel.Status.AchievedStep.Step == step
}
