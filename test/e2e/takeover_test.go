// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/fleet"
)

// conditionWitness records every condition of Shipper's objects in one namespace that changed from True to another status.
type conditionWitness struct {
	mu     sync.Mutex
	seen   map[string]int64 // revision of the last write by key
	turned []string
	ended  bool
}

// stopsAPIServer stops a cluster's API server. Later changes of the conditions of the original's Releases are not recorded.
func (s *fixture) stopsAPIServer(cluster *fleet.Cluster) {
	s.Helper()
	for _, left := range world.inherited {
		left.conditions.mu.Lock()
		left.conditions.ended = true
		left.conditions.mu.Unlock()
	}
	s.Must("stopping an API server", cluster.StopAPIServer())
}

// conditioned is the part of an object that a conditionWitness reads.
type conditioned struct {
	Status struct {
		Conditions []shipper.Condition `json:"conditions"`
		Clusters   []struct {
			Name       string              `json:"name"`
			Conditions []shipper.Condition `json:"conditions"`
		} `json:"clusters"`
	} `json:"status"`
}

// newConditionWitness records until ctx ends.
func newConditionWitness(ctx context.Context, management *fleet.Cluster, namespace string) (*conditionWitness, error) {
	since, err := management.Revision(ctx)
	if err != nil {
		return nil, fmt.Errorf("following conditions in %s: %w", management.Name, err)
	}
	var prefixes []string
	for _, kind := range []string{"applications", "releases", "installationtargets", "capacitytargets", "traffictargets"} {
		prefixes = append(prefixes, "shipper.booking.com/"+kind+"/"+namespace+"/")
	}
	w := &conditionWitness{seen: map[string]int64{}}
	go func() {
		err := management.Follow(ctx, since, prefixes, w.take)
		w.mu.Lock()
		defer w.mu.Unlock()
		w.turned = append(w.turned, fmt.Sprintf("not every write was seen: %v", err))
	}()
	return w, nil
}

func (w *conditionWitness) take(change fleet.Change) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen[change.Key] = change.Revision
	if w.ended || len(change.Before) == 0 || len(change.After) == 0 {
		return
	}
	var was, is conditioned
	for raw, into := range map[*[]byte]*conditioned{&change.Before: &was, &change.After: &is} {
		if err := json.Unmarshal(*raw, into); err != nil {
			w.turned = append(w.turned, fmt.Sprintf("%s cannot be read: %v", change.Key, err))
			return
		}
	}
	w.compare(change.Key, was.Status.Conditions, is.Status.Conditions)
	for _, before := range was.Status.Clusters {
		for _, after := range is.Status.Clusters {
			if before.Name == after.Name {
				w.compare(change.Key+" in "+before.Name, before.Conditions, after.Conditions)
			}
		}
	}
}

// compare leaves out what a lost cluster changes, as a busy machine may miss its heartbeats: the conditions of that cluster, and those over
// all clusters, whose messages have the reason of each. Another cluster's fault is found in the conditions of that cluster.
func (w *conditionWitness) compare(of string, was, is []shipper.Condition) {
	for _, c := range is {
		lost := c.Reason == shipper.ClusterUnreachable || strings.Contains(c.Message, ": "+shipper.ClusterUnreachable+" ")
		if c.Status != corev1.ConditionTrue && shipper.ConditionTrue(was, c.Type) && !lost {
			w.turned = append(w.turned, fmt.Sprintf("%s of %s: %s %s %s", c.Type, of, c.Status, c.Reason, c.Message))
		}
	}
}

// turnedNothingFalse fails if a condition that the original left True had another status until now. StrategyExecuted of a
// step that is not achieved is the exception (ruling 3).
func (s *fixture) turnedNothingFalse(left *inheritance) {
	s.Helper()
	key := "shipper.booking.com/releases/" + s.Namespace + "/" + left.contender
	s.Eventually("whether every write to "+left.contender+" was seen", "it was", func() (string, error) {
		rel, err := s.Get(left.contender)
		if err != nil {
			return "", err
		}
		revision, err := strconv.ParseInt(rel.ResourceVersion, 10, 64)
		left.conditions.mu.Lock()
		defer left.conditions.mu.Unlock()
		if left.conditions.seen[key] < revision {
			return "not yet", err
		}
		return "it was", err
	})
	left.conditions.mu.Lock()
	defer left.conditions.mu.Unlock()
	turned := slices.DeleteFunc(slices.Clone(left.conditions.turned), func(turned string) bool {
		return left.Stuck && strings.HasPrefix(turned, shipper.ReleaseStrategyExecuted+" of "+key)
	})
	for _, one := range turned {
		s.Errorf("it was True: %s", one)
	}
}

// refusedInEveryCluster returns when Shipper reports that the original's accounts have too few rights, and has reconciled
// every Release that the original left.
func refusedInEveryCluster(ctx context.Context) error {
	for _, name := range []string{west, east} {
		err := until(ctx, &shipper.ClusterList{}, func(o client.Object) bool {
			cluster, ok := o.(*shipper.Cluster)
			ready := &shipper.Condition{}
			if ok && cluster.Name == name {
				ready = shipper.FindCondition(cluster.Status.Conditions, shipper.ClusterReady)
			}
			return ready != nil && ready.Reason == shipper.CredentialsRefused
		})
		if err != nil {
			return fmt.Errorf("waiting until Cluster %s refuses the original's account: %w", name, err)
		}
	}
	for _, left := range world.inherited {
		for _, name := range []string{left.incumbent, left.contender} {
			err := until(ctx, &shipper.ReleaseList{}, func(o client.Object) bool {
				rel, ok := o.(*shipper.Release)
				return ok && rel.Name == name && rel.Namespace == left.Namespace && rel.Status.ObservedGeneration == rel.Generation
			})
			if err != nil {
				return fmt.Errorf("waiting until Release %s/%s is judged: %w", left.Namespace, name, err)
			}
		}
	}
	return nil
}

// until returns when an object in the management cluster satisfies a predicate.
func until(ctx context.Context, list client.ObjectList, is func(client.Object) bool) error {
	if err := world.Management.List(ctx, list); err != nil {
		return fmt.Errorf("listing: %w", err)
	}
	objects, err := meta.ExtractList(list)
	if err != nil {
		return fmt.Errorf("reading a list: %w", err)
	}
	for _, each := range objects {
		if o, ok := each.(client.Object); ok && is(o) {
			return nil
		}
	}
	return changed(ctx, list, is)
}

// changed waits for an object that satisfies a predicate, from the version of a list on. The API server ends watches that are not read.
func changed(ctx context.Context, list client.ObjectList, is func(client.Object) bool) error {
	watcher := &cache.ListWatch{WatchFuncWithContext: func(ctx context.Context, from metav1.ListOptions) (watch.Interface, error) {
		return world.Management.Watch(ctx, list, &client.ListOptions{Raw: &from})
	}}
	_, err := watchtools.Until(ctx, list.GetResourceVersion(), watcher, func(e watch.Event) (bool, error) {
		if e.Type == watch.Error {
			return false, apierrors.FromObject(e.Object)
		}
		o, ok := e.Object.(client.Object)
		return ok && e.Type != watch.Deleted && is(o), nil
	})
	return err
}
