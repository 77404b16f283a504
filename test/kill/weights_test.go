// SPDX-License-Identifier: Apache-2.0

package kill

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// slack is by how much the events of two clusters may come in another order than what they tell of was done.
const slack = 2 * time.Second

// weights is what Releases were asked to weigh, and when.
type weights struct {
	mu    sync.Mutex
	spans map[string][]span // by Release
}

// span is from when on a Release weighs nothing, and was told to have no traffic, until it is asked for some again; a Release that
// is gone is not judged.
type span struct {
	from, to time.Time // to is zero while it lasts
}

// newWeights watches TrafficTargets until ctx ends.
func newWeights(ctx context.Context, management client.WithWatch, namespace string) (*weights, error) {
	all := &weights{spans: map[string][]span{}}
	w, err := management.Watch(ctx, &shipper.TrafficTargetList{}, client.InNamespace(namespace))
	if err != nil {
		return nil, fmt.Errorf("watching TrafficTargets: %w", err)
	}
	go func() {
		defer w.Stop()
		for event := range w.ResultChan() {
			if tt, ok := event.Object.(*shipper.TrafficTarget); ok {
				all.take(tt, event.Type == watch.Deleted || tt.DeletionTimestamp != nil)
			}
		}
	}()
	return all, nil
}

func (w *weights) take(tt *shipper.TrafficTarget, gone bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	weighs := slices.ContainsFunc(tt.Spec.Clusters, func(c shipper.ClusterTrafficTarget) bool { return c.Weight > 0 })
	settled := tt.Status.ObservedGeneration == tt.Generation && shipper.ConditionTrue(tt.Status.Conditions, shipper.TargetReady)
	list := w.spans[tt.Name]
	out := len(list) > 0 && list[len(list)-1].to.IsZero()
	switch {
	case out && (weighs || gone):
		list[len(list)-1].to = time.Now()
	case !out && !weighs && settled && !gone:
		w.spans[tt.Name] = append(list, span{from: time.Now()})
	}
}

// none reports whether a Release weighed nothing at a time, without doubt.
func (w *weights) none(release string, at time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.ContainsFunc(w.spans[release], func(s span) bool {
		return at.After(s.from.Add(slack)) && (s.to.IsZero() || at.Before(s.to.Add(-slack)))
	})
}
