// SPDX-License-Identifier: Apache-2.0

package state

import (
	"context"
	"fmt"
	"sync/atomic"

	"golang.org/x/sync/singleflight"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"shipper.dev/shipper/apis/rules/placement"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// lastApplied is kubectl's copy of the whole object, which the webhook never reads.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// Strip removes the parts of a cached object that the webhook never reads: managed fields, kubectl's copy of the object, and
// the status of Releases and Clusters except the fields that show whether a rollout goes back, and those that placements read, and
// of runs all but what other runs are judged by. It is a transform for the cache that Watch gets.
func Strip(o any) (any, error) {
	if meta, ok := o.(metav1.Object); ok {
		meta.SetManagedFields(nil)
		if annotations := meta.GetAnnotations(); annotations[lastApplied] != "" {
			delete(annotations, lastApplied)
			meta.SetAnnotations(annotations)
		}
	}
	switch o := o.(type) {
	case *shipper.Release:
		was := o.Status
		o.Status = shipper.ReleaseStatus{AchievedStep: was.AchievedStep}
		if c := shipper.FindCondition(was.Conditions, shipper.ReleaseComplete); c != nil {
			o.Status.Conditions = []shipper.Condition{{Type: c.Type, Status: c.Status}}
		}
	case *shipper.Cluster:
		o.Status = placement.StatusOf(o.Status)
		for i := range o.Status.Conditions {
			if c := &o.Status.Conditions[i]; c.Status == corev1.ConditionTrue {
				c.Reason, c.Message = "", ""
			}
		}
	case *shipper.SequenceRun:
		stripRun(o)
	}
	return o, nil
}

// Watched is a Reader that follows the API server.
type Watched struct {
	*Reader
	stream     *Stream
	synced     func() bool
	done       atomic.Bool
	confirming singleflight.Group
}

// Watch returns a Reader that follows the API server through c. c must transform with Strip and must not be started yet. Watch
// reads through live the objects that c does not have, and RolloutBlocks while s is down; s must track the watches of c.
func Watch(
	ctx context.Context, c cache.Cache, s *Stream, live client.Reader, globalNamespace string,
) (*Watched, error) {
	w := &watcher{ctx: ctx, cache: c}
	known := Indexers{
		Blocks:       w.indexer(&shipper.RolloutBlock{}, nil),
		Releases:     w.indexer(&shipper.Release{}, releaseIndices),
		Applications: w.indexer(metadata(shipper.GroupVersion.String(), "Application"), nil),
		Clusters:     w.indexer(&shipper.Cluster{}, nil),
		Checks:       w.indexer(&shipper.Check{}, nil),
		Shipyards:    w.indexer(&shipper.Shipyard{}, nil),
		Runs:         w.indexer(&shipper.SequenceRun{}, runIndices),
		Namespaces:   w.indexer(metadata(corev1.SchemeGroupVersion.String(), "Namespace"), nil),
	}
	if w.err != nil {
		return nil, w.err
	}
	return &Watched{Reader: New(known, live, globalNamespace), stream: s, synced: w.synced}, nil
}

// Synced reports whether every watch has delivered its initial list. Once true it stays true.
func (w *Watched) Synced() bool {
	if w.done.Load() {
		return true
	}
	if !w.synced() {
		return false
	}
	w.done.Store(true)
	return true
}

// watcher collects informers, and the first error.
type watcher struct {
	ctx       context.Context //nolint:containedctx // lives only inside Watch
	cache     cache.Cache
	informers []cache.Informer
	err       error
}

func (w *watcher) indexer(o client.Object, indices toolscache.Indexers) toolscache.Indexer {
	if w.err != nil {
		return nil
	}
	informer, err := w.cache.GetInformer(w.ctx, o, cache.BlockUntilSynced(false))
	if err != nil {
		w.err = fmt.Errorf("watching %T: %w", o, err)
		return nil
	}
	shared, ok := informer.(toolscache.SharedIndexInformer)
	if !ok {
		w.err = fmt.Errorf("watching %T: informer %T has no index to read", o, informer)
		return nil
	}
	if len(indices) > 0 {
		if err := shared.AddIndexers(indices); err != nil {
			w.err = fmt.Errorf("indexing %T: %w", o, err)
			return nil
		}
	}
	w.informers = append(w.informers, informer)
	return shared.GetIndexer()
}

func (w *watcher) synced() bool {
	for _, i := range w.informers {
		if !i.HasSynced() {
			return false
		}
	}
	return true
}

func metadata(apiVersion, kind string) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: apiVersion, Kind: kind}}
}
