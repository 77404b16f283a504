// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"shipper.dev/shipper/test/fleet"
)

// sight is what the floor sees of its namespace, by watches.
type sight struct {
	factory   informers.SharedInformerFactory
	namespace string
	changed   chan struct{}
}

// look begins to watch a namespace, or all when it is empty. It ends with ctx.
func look(ctx context.Context, typed kubernetes.Interface, namespace string) (informers.SharedInformerFactory, error) {
	factory := informers.NewSharedInformerFactoryWithOptions(typed, 0, informers.WithNamespace(namespace))
	informersOf(factory)
	factory.Start(ctx.Done())
	for kind, synced := range factory.WaitForCacheSync(ctx.Done()) {
		if !synced {
			return nil, fmt.Errorf("watching %s: %w", kind, context.Cause(ctx))
		}
	}
	return factory, nil
}

// informersOf are those that the floor needs.
func informersOf(factory informers.SharedInformerFactory) []cache.SharedIndexInformer {
	return []cache.SharedIndexInformer{
		factory.Apps().V1().Deployments().Informer(),
		factory.Core().V1().Pods().Informer(),
		factory.Discovery().V1().EndpointSlices().Informer(),
	}
}

// sightOf is the sight of a namespace by informers that see it.
func sightOf(factory informers.SharedInformerFactory, namespace string) (*sight, error) {
	s := &sight{factory: factory, namespace: namespace, changed: make(chan struct{}, 1)}
	tell := func(o any) {
		if meta, err := cache.DeletionHandlingObjectToName(o); err == nil && meta.Namespace == namespace {
			s.tell()
		}
	}
	for _, i := range informersOf(factory) {
		if _, err := i.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc: tell, UpdateFunc: func(_, o any) { tell(o) }, DeleteFunc: tell,
		}); err != nil {
			return nil, fmt.Errorf("watching %s: %w", namespace, err)
		}
	}
	return s, nil
}

func (s *sight) tell() {
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// until waits until something is so. It is looked at again with each event.
func (s *sight) until(ctx context.Context, so func() bool) error {
	for !so() {
		select {
		case <-s.changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// available is how many Pods a Deployment has, when all of them are available and no other is left; -1 otherwise.
func (s *sight) available(name string) int32 {
	d, err := s.factory.Apps().V1().Deployments().Lister().Deployments(s.namespace).Get(name)
	if err != nil || d.Status.ObservedGeneration != d.Generation || d.Status.Replicas != ptr.Deref(d.Spec.Replicas, 1) ||
		d.Status.AvailableReplicas != d.Status.Replicas {
		return -1
	}
	return d.Status.Replicas
}

// ready lists the Pods of a version that are ready and not about to go.
func (s *sight) ready(version int) []*corev1.Pod {
	of := labels.SelectorFromSet(labels.Set{versionLabel: fmt.Sprint(version)})
	all, _ := s.factory.Core().V1().Pods().Lister().Pods(s.namespace).List(of)
	var out []*corev1.Pod
	for _, p := range all {
		if p.DeletionTimestamp == nil && fleet.PodReady(p) {
			out = append(out, p)
		}
	}
	return out
}

// endpoints counts the Pods of a Deployment that are ready endpoints.
func (s *sight) endpoints(deployment string) int {
	slices, _ := s.factory.Discovery().V1().EndpointSlices().Lister().EndpointSlices(s.namespace).List(labels.Everything())
	n := 0
	for _, slice := range slices {
		for _, e := range slice.Endpoints {
			if ptr.Deref(e.Conditions.Ready, true) && e.TargetRef != nil && strings.HasPrefix(e.TargetRef.Name, deployment+"-") {
				n++
			}
		}
	}
	return n
}
