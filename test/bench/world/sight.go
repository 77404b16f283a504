// SPDX-License-Identifier: Apache-2.0

package world

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"

	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// Sight is what an administrator sees of all Applications and their Releases, by one watch of each.
type Sight struct {
	mu       sync.Mutex
	changed  chan struct{} // closed when something has
	apps     map[client.ObjectKey]*shipper.Application
	releases map[client.ObjectKey]map[string]*shipper.Release // by their Application, by name
	err      error
}

// Look begins to watch. It ends with ctx.
func (w *World) Look(ctx context.Context) (*Sight, error) {
	s := &Sight{
		changed: make(chan struct{}), apps: map[client.ObjectKey]*shipper.Application{},
		releases: map[client.ObjectKey]map[string]*shipper.Release{},
	}
	// Informers, and no plain watches, which the API server ends after half an hour.
	informers, err := cache.New(w.Fleet.Management.Config, cache.Options{Scheme: w.Management.Scheme()})
	if err != nil {
		return nil, fmt.Errorf("watching: %w", err)
	}
	for _, kind := range []client.Object{&shipper.Application{}, &shipper.Release{}} {
		informer, err := informers.GetInformer(ctx, kind, cache.BlockUntilSynced(false))
		if err != nil {
			return nil, fmt.Errorf("watching: %w", err)
		}
		_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
			AddFunc:    func(object any) { s.take(object, false) },
			UpdateFunc: func(_, object any) { s.take(object, false) },
			DeleteFunc: func(object any) {
				if unknown, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
					object = unknown.Obj
				}
				s.take(object, true)
			},
		})
		if err != nil {
			return nil, fmt.Errorf("watching: %w", err)
		}
	}
	go func() {
		err := informers.Start(ctx)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.err = errors.Join(err, errors.New("the watch has ended"))
		s.wake()
	}()
	return s, nil
}

// take sees an object. A deleted one may have been replaced by another of its name already.
func (s *Sight) take(object any, gone bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch o := object.(type) {
	case *shipper.Application:
		if s.apps[client.ObjectKeyFromObject(o)] = o; gone {
			delete(s.apps, client.ObjectKeyFromObject(o))
		}
	case *shipper.Release:
		of := client.ObjectKey{Namespace: o.Namespace, Name: o.Labels[shipper.AppLabel]}
		if s.releases[of] == nil {
			s.releases[of] = map[string]*shipper.Release{}
		}
		if s.releases[of][o.Name] = o; gone {
			delete(s.releases[of], o.Name)
		}
	}
	s.wake()
}

// newest is the newest Release of an Application; nil when there is none. s.mu is held.
func (s *Sight) newest(of client.ObjectKey) *shipper.Release {
	var out *shipper.Release
	for _, rel := range s.releases[of] {
		if out == nil || generation(out) < generation(rel) {
			out = rel
		}
	}
	return out
}

// wake wakes the waiting callers. s.mu is held.
func (s *Sight) wake() {
	close(s.changed)
	s.changed = make(chan struct{})
}

func generation(rel *shipper.Release) int {
	n, _ := strconv.Atoi(rel.Annotations[shipper.ReleaseGenerationAnnotation]) // always there
	return n
}

// Until waits until something is so of each of some Applications and its newest Release, which may be nil. A state that was seen once
// is not looked at again.
func (s *Sight) Until(ctx context.Context, of []client.ObjectKey, so func(*shipper.Application, *shipper.Release) bool) error {
	left := of
	for {
		s.mu.Lock()
		var next []client.ObjectKey
		for _, key := range left {
			if app := s.apps[key]; app == nil || !so(app, s.newest(key)) {
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
	return s.newest(of).DeepCopy()
}

// Application is one as it was seen last; nil when there is none.
func (s *Sight) Application(of client.ObjectKey) *shipper.Application {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.apps[of].DeepCopy()
}

// Achieved reports whether the Release of a generation has achieved a step.
func Achieved(rel *shipper.Release, of int, step int32) bool {
	return rel != nil && generation(rel) == of && rel.Spec.TargetStep == step && rel.Status.ObservedGeneration == rel.Generation &&
		rel.Status.AchievedStep != nil && rel.Status.AchievedStep.Step == step
}
